package experiment

import (
	"context"
	"strings"
	"testing"
)

// TestSelf: all budgets are there with a cost that is possible. Whether they are met is
// a matter of a quiet machine.
func TestSelf(t *testing.T) {
	r, err := Self(t.Context(), SelfConfig{Rounds: 70})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 9 {
		t.Fatalf("%d rows, want 9: %+v", len(r.Rows), r.Rows)
	}
	costs := make(map[string]float64)
	for i := range r.Rows {
		row := &r.Rows[i]
		cost, _ := row.Figure("cost")
		budget, ok := row.Figure("budget")
		if !ok || (row.Label("met") == "yes") != (cost.Value <= budget.Value) || cost.Value > 100*budget.Value {
			t.Errorf("%s: %+v", row.title(), row.Figures)
		}
		costs[row.Label("what")] = cost.Value
	}
	pass, off, show := costs["a busy pass, all but sizes"], costs["a pass at level off"], costs["a show of 1000 iterations and ms"]
	if off <= 0 || pass < 2*off || show <= costs["a scrape"] {
		t.Errorf("costs %v", costs)
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "A clock reading takes") {
		t.Errorf("notes %q", r.Notes)
	}
}

func TestSelfInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Self(ctx, SelfConfig{Rounds: 10}); err != nil || !r.Interrupted || len(r.Rows) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Self(t.Context(), SelfConfig{}); err == nil {
		t.Error("no rounds are accepted")
	}
}
