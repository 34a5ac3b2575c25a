package experiment

import (
	"context"
	"strings"
	"testing"
	"time"
)

func smallProfiles() ProfilesConfig {
	return ProfilesConfig{
		Flows: 200, Outputs: 8, RingSize: 1024, Flush: 50 * time.Microsecond, Searches: 1,
		Trial: time.Millisecond, Resolution: 0.25, Loss: 0.9,
	}
}

// TestProfiles: every combination is there, with a rate, and the paths differ in how
// many packets go in a batch, which no other load on the machine changes.
func TestProfiles(t *testing.T) {
	r, err := Profiles(t.Context(), smallProfiles())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 16 {
		t.Fatalf("%d rows, want 16", len(r.Rows))
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		mpps, _ := row.Figure("Mpps")
		trials, _ := row.Figure("trials")
		batch, _ := row.Figure("batch")
		if mpps.Value <= 0 || trials.Value < 2 || batch.Value < 1 || batch.Value > 32 {
			t.Errorf("%s: %+v", row.title(), row.Figures)
		}
		if row.Label("traffic") == "scatter" && row.Label("path") == "at once" && batch.Value > 1.1 {
			t.Errorf("%s: %v packets a batch, want 1", row.title(), batch.Value)
		}
	}
}

func TestProfilesInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := smallProfiles()
	c.Searches = 1 << 20
	c.Progress = func(how string) {
		if strings.Contains(how, "search 3 of") {
			cancel()
		}
	}
	r, err := Profiles(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if mpps, _ := r.Rows[0].Figure("Mpps"); !r.Interrupted || len(r.Rows) != 4 || mpps.N != 2 {
		t.Errorf("interrupted %v, %d rows, %d searches, want 4 and 2", r.Interrupted, len(r.Rows), mpps.N)
	}
}

// TestPassed: the threshold is a share of all packets that came.
func TestPassed(t *testing.T) {
	var s slice
	s.Rx, s.Missed, s.Drops = 980, 15, 5
	for loss, want := range map[float64]bool{0: false, 0.02: false, 0.0202: true} {
		if got := (&ProfilesConfig{Loss: loss}).passed(s); got != want {
			t.Errorf("20 of 995 lost, %v allowed: %v", loss, got)
		}
	}
	if !(&ProfilesConfig{}).passed(slice{}) {
		t.Error("nothing came and nothing was lost, but that did not pass")
	}
}

func TestProfilesValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(*ProfilesConfig)
		want  string
	}{
		"ring":       {func(c *ProfilesConfig) { c.RingSize = 1000 }, "no power of two"},
		"trial":      {func(c *ProfilesConfig) { c.Trial = time.Microsecond }, "finer than the clock"},
		"resolution": {func(c *ProfilesConfig) { c.Resolution = 1e-6 }, "finer than a packet in trials of 1ms"},
		"coarse":     {func(c *ProfilesConfig) { c.Resolution = 2 }, "a resolution of 2"},
		"loss":       {func(c *ProfilesConfig) { c.Loss = 1 }, "a loss of 1"},
		"outputs":    {func(c *ProfilesConfig) { c.Outputs = 0 }, "0 output ports"},
		"many":       {func(c *ProfilesConfig) { c.Outputs = 100 }, "sinks 100"},
		"searches":   {func(c *ProfilesConfig) { c.Searches = 0 }, "0 searches"},
		"flush":      {func(c *ProfilesConfig) { c.Flush = 0 }, "both paths are the same"},
		"flows":      {func(c *ProfilesConfig) { c.Flows = 1 << 30 }, "flows 1073741824"},
	} {
		c := smallProfiles()
		tt.spoil(&c)
		_, err := Profiles(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
