package experiment

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/dataplane"
)

func smallReload() ReloadConfig {
	return ReloadConfig{PMDs: []int{1}, Reloads: 8, Rate: 1e5, RingSize: 1024, Queues: 2, Window: 500 * time.Microsecond}
}

// TestReload: every reload and window is in one row, and sleeping PMDs need longer
// than those that wait busily, on any machine.
func TestReload(t *testing.T) {
	c := smallReload()
	if len(dataplane.Cores()) > 1 {
		c.PMDs = []int{1, 2}
	}
	r, err := Reload(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	sums := make(map[[3]string]float64)
	for i := range r.Rows {
		row := &r.Rows[i]
		what, name := row.Label("gap of the"), "gaps"
		if what == "" {
			what, name = "window", "windows"
		}
		n, ok := row.Figure(name)
		if !ok || n.Value < 1 {
			t.Fatalf("%s: %+v", row.title(), n)
		}
		sums[[3]string{row.Label("PMDs"), row.Label("scheme") + row.Label("reload"), what}] += n.Value
		if what == "window" {
			continue
		}
		var v []float64
		for _, name := range []string{"min", "median", "p99", "max"} {
			f, _ := row.Figure(name)
			v = append(v, f.Value)
		}
		if !slices.IsSorted(v) || v[0] <= 0 {
			t.Errorf("%s: min, median, p99, max are %v", row.title(), v)
		}
	}
	for key, n := range sums {
		want := float64(c.Reloads)
		switch {
		case key[2] == "queue":
			want *= 2
		case key[2] == "thread" && key[0] == "2":
			want *= 2
		}
		if n != want {
			t.Errorf("%v: %v, want %v", key, n, want)
		}
	}
	if want := len(c.PMDs) * 10; len(sums) != want {
		t.Errorf("%d kinds of rows, want %d: %v", len(sums), want, sums)
	}
}

// TestBlockingIsSlower: PMDs that sleep need longer than those that wait busily. The
// shortest gaps tell, on any machine.
func TestBlockingIsSlower(t *testing.T) {
	r, err := Reload(t.Context(), smallReload())
	if err != nil {
		t.Fatal(err)
	}
	shortest := func(scheme dataplane.ReloadScheme) float64 {
		least := 1e18
		for i := range r.Rows {
			if f, ok := r.Rows[i].Figure("min"); ok && r.Rows[i].Label("scheme") == string(scheme) {
				least = min(least, f.Value)
			}
		}
		return least
	}
	handover, busy, blocking := shortest(dataplane.ReloadHandover), shortest(dataplane.ReloadBusy), shortest(dataplane.ReloadBlocking)
	if handover >= blocking || busy >= blocking {
		t.Errorf("shortest gaps: handover %.0f, busy %.0f, blocking %.0f cycles", handover, busy, blocking)
	}
}

func TestReloadInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := smallReload()
	c.Reloads = 1 << 20
	c.Progress = func(how string) {
		if strings.Contains(how, ": 16 of") {
			cancel()
		}
	}
	r, err := Reload(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || r.Find("scheme", "busy") == nil || r.Find("reload", "none") == nil {
		t.Errorf("%+v", r)
	}
}

func TestReloadValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(*ReloadConfig)
		want  string
	}{
		"ring":    {func(c *ReloadConfig) { c.RingSize = 1000 }, "ring size 1000 is no power of two"},
		"reloads": {func(c *ReloadConfig) { c.Reloads = 0 }, "0 reloads"},
		"rate":    {func(c *ReloadConfig) { c.Rate = 0 }, "rate 0"},
		"window":  {func(c *ReloadConfig) { c.Window = 1 }, "finer than the clock"},
		"no PMDs": {func(c *ReloadConfig) { c.PMDs = nil }, "no number of PMDs"},
		"PMDs":    {func(c *ReloadConfig) { c.PMDs, c.Cores = []int{2}, []int{0} }, "2 PMDs on 1 cores"},
		"many":    {func(c *ReloadConfig) { c.PMDs = []int{1 << 20} }, "1048576 PMDs need a core each"},
	} {
		c := smallReload()
		tt.spoil(&c)
		_, err := Reload(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

func TestGapFigures(t *testing.T) {
	var ticks []uint64
	for i := range 200 {
		ticks = append(ticks, uint64(200-i))
	}
	figures, h := gapFigures(ticks)
	row := Row{Figures: figures}
	for name, want := range map[string]float64{"gaps": 200, "min": 1, "average": 100.5, "median": 100.5, "p99": 198, "max": 200} {
		if f, _ := row.Figure(name); f.Value != want {
			t.Errorf("%s: %v, want %v", name, f.Value, want)
		}
	}
	n := uint64(0)
	for _, b := range h.Buckets {
		n += b.Count
	}
	if n != 200 {
		t.Errorf("the histogram has %d values", n)
	}
	if figures, _ = gapFigures([]uint64{7}); figures[5].Value != 7 {
		t.Errorf("p99 of one: %v", figures[5].Value)
	}
}
