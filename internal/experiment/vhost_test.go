package experiment

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/dataplane"
	"github.com/pmdperf/pmdperf/internal/need"
)

func smallVhost(t *testing.T) VhostConfig {
	if len(dataplane.Cores()) < 2 {
		need.Skip(t, "needs two cores")
	}
	return VhostConfig{Flows: 10, Slice: 200 * time.Microsecond, Rounds: 6}
}

func TestVhost(t *testing.T) {
	r, err := Vhost(t.Context(), smallVhost(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, direction := range []string{"one way", "both ways"} {
		for _, forward := range []string{forwardDrop, forwardPort, forwardNormal} {
			for i, m := range statsModes {
				row := r.Find("direction", direction, "forwarding", forward, "statistics", m.name)
				if row == nil {
					t.Fatalf("no row for %s, %s, %s", direction, forward, m.name)
				}
				mpps, _ := row.Figure("Mpps")
				change, _ := row.Figure("change")
				against, _ := row.Figure("against own")
				if (m.mode == dataplane.StatsShared) != (against.Interval != nil) {
					t.Errorf("%s: against own %+v", row.title(), against)
				}
				if mpps.Value <= 0 || mpps.N != 6 || (i > 0) != (change.Interval != nil) {
					t.Errorf("%s: %+v", row.title(), row.Figures)
				}
			}
		}
	}
	if len(r.Rows) != 24 {
		t.Errorf("%d rows, want 24", len(r.Rows))
	}
}

func TestVhostInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := smallVhost(t)
	c.Rounds = 1 << 20
	c.Progress = func(how string) {
		if strings.Contains(how, "round 2 of") {
			cancel()
		}
	}
	r, err := Vhost(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || len(r.Rows) != 4 {
		t.Errorf("interrupted %v with %d rows, want 4", r.Interrupted, len(r.Rows))
	}
	if f, _ := r.Rows[3].Figure("Mpps"); f.N != 2 {
		t.Errorf("%d rounds, want 2", f.N)
	}
}

func TestVhostValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(*VhostConfig)
		want  string
	}{
		"slice":    {func(c *VhostConfig) { c.Slice = 1 }, "finer than the clock"},
		"rounds":   {func(c *VhostConfig) { c.Rounds = 0 }, "0 rounds"},
		"one core": {func(c *VhostConfig) { c.Cores = []int{0} }, "name two"},
		"cores":    {func(c *VhostConfig) { c.Cores = []int{0, 1000} }, "core 1000 is not there"},
		"flows":    {func(c *VhostConfig) { c.Flows = -1 }, "flows -1"},
	} {
		c := smallVhost(t)
		tt.spoil(&c)
		_, err := Vhost(t.Context(), c)
		if err == nil || !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
