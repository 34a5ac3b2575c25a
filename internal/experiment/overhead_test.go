package experiment

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func smallOverhead() OverheadConfig {
	return OverheadConfig{Flows: []int{100}, Subtables: []int{1, 3}, Slice: 500 * time.Microsecond, Rounds: 6}
}

// TestOverhead: every cell has all rows, with what a reader of the report relies on. On
// a machine that others use too nobody can say what the figures are.
func TestOverhead(t *testing.T) {
	c := smallOverhead()
	said := 0
	c.Progress = func(string) { said++ }
	r, err := Overhead(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Interrupted || r.Experiment != "overhead" || r.Seconds <= 0 {
		t.Errorf("%+v", r)
	}
	if want := 2*5 + 1; len(r.Rows) != want {
		t.Fatalf("%d rows, want %d", len(r.Rows), want)
	}
	for _, flows := range []string{"100"} {
		for _, subtables := range []string{"1", "3"} {
			for _, level := range []string{levelOff, levelOffAgain, levelBasic, levelDetailed, levelEverything} {
				row := r.Find("flows", flows, "subtables", subtables, "level", level)
				if row == nil {
					t.Fatalf("no row for %s, %s, %s", flows, subtables, level)
				}
				for _, name := range []string{"Mpps", "cycles"} {
					if f, ok := row.Figure(name); !ok || f.Value <= 0 || f.N != 6 || len(f.Parts) != 6 {
						t.Errorf("%s: %+v", level, f)
					}
				}
				f, ok := row.Figure("change")
				if !ok || (level != levelOff) != (f.Interval != nil) || level != levelOff && f.N != 6 {
					t.Errorf("%s: change %+v", level, f)
				}
			}
		}
	}
	if r.Find("level", levelProbes) == nil {
		t.Error("no row of the probes")
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "The generator alone makes") {
		t.Errorf("notes %q say nothing of the generator", r.Notes)
	}
}

// TestOverheadInterrupted: what there is by then is reported.
func TestOverheadInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := smallOverhead()
	c.Rounds = 1 << 20
	c.Progress = func(how string) {
		if !strings.Contains(how, "round 0 of") {
			cancel() // after a block of rounds
		}
	}
	r, err := Overhead(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Interrupted || len(r.Rows) != 6 {
		t.Errorf("interrupted %v with %d rows, want those of one cell and the probes", r.Interrupted, len(r.Rows))
	}
	cancel()
	if r, err = Overhead(ctx, c); err != nil || len(r.Rows) != 0 {
		t.Errorf("interrupted before it began: %+v, %v", r, err)
	}
}

// TestOverheadBudget: an experiment ends in its time, with something in every cell, or it
// says how many have nothing.
func TestOverheadBudget(t *testing.T) {
	c := smallOverhead()
	c.Rounds, c.Budget = 1<<20, time.Second
	r, err := Overhead(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	missing := strings.Contains(strings.Join(r.Notes, "\n"), "The time was over before")
	if r.Interrupted || (len(r.Rows) != 11) != missing || r.Seconds > 30 {
		t.Errorf("interrupted %v, %d rows in %.1f s, notes %q", r.Interrupted, len(r.Rows), r.Seconds, r.Notes)
	}
}

// TestOverheadUntil: it goes on after the rounds while intervals are wide, here until the
// time is over.
func TestOverheadUntil(t *testing.T) {
	c := smallOverhead()
	c.Subtables, c.Rounds, c.Until, c.Budget = []int{1}, 1, 0.01, 2*time.Second
	r, err := Overhead(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if f, _ := r.Find("level", levelBasic).Figure("change"); f.N <= 1 {
		t.Errorf("%+v, want more rounds", f)
	}
}

func TestOverheadValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(*OverheadConfig)
		want  string
	}{
		"no flows":   {func(c *OverheadConfig) { c.Flows = nil }, "no flows"},
		"flows":      {func(c *OverheadConfig) { c.Flows = []int{1 << 30} }, "flows 1073741824"},
		"subtables":  {func(c *OverheadConfig) { c.Subtables = []int{0, 1000} }, "subtables 1000"},
		"slice":      {func(c *OverheadConfig) { c.Slice = time.Nanosecond }, "finer than the clock"},
		"long slice": {func(c *OverheadConfig) { c.Slice = time.Hour }, "slices of 1h0m0s"},
		"rounds":     {func(c *OverheadConfig) { c.Rounds = 0 }, "0 rounds"},
		"until":      {func(c *OverheadConfig) { c.Until = -1 }, "interval of -1 points"},
		"cores":      {func(c *OverheadConfig) { c.Cores = []int{1000} }, "core 1000 is not there"},
		"ports":      {func(c *OverheadConfig) { c.Ports = []string{"nonsense"} }, "unknown port"},
	} {
		c := smallOverhead()
		tt.spoil(&c)
		_, err := Overhead(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
