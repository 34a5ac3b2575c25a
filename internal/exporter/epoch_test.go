package exporter

import (
	"math"
	"testing"
	"time"
)

func TestEpoch(t *testing.T) {
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	type step struct {
		sent, arrived int     // ms
		seconds       float64 // that the text says
		raw           uint64
		want          uint64 // exported
		created       int    // the step, from 0, whose reading began the epoch
	}
	nan := math.NaN()
	negative := ^uint64(999) // -1000
	tests := map[string][]step{
		"counts on": {{0, 5, 10, 100, 100, 0}, {1000, 1003, 11.001, 150, 150, 0}, {2000, 2900, 12.4, 151, 151, 0}},
		"cleared":   {{0, 5, 10, 100, 100, 0}, {1000, 1003, 0.5, 20, 20, 1}, {2000, 2001, 1.5, 40, 40, 1}},
		// More than before: only the duration tells.
		"cleared and overtaken": {{0, 5, 10, 100, 100, 0}, {1000, 1003, 0.5, 2000, 2000, 1}},
		// An answer that took long does not make the ones before it forgotten.
		"cleared after a slow answer": {{0, 5, 10, 100, 100, 0}, {1000, 9000, 11, 150, 150, 0}, {10000, 10003, 15, 2000, 2000, 2}},
		// Another program answers, which has run for longer.
		"exchanged":          {{0, 5, 10, 100, 100, 0}, {1000, 1003, 50, 2000, 2000, 1}},
		"a pass of a second": {{0, 5, 10, 1000, 1000, 0}, {1000, 1003, 11, 400, 1000, 0}, {2000, 2001, 12, 500, 1100, 0}},
		"below zero":         {{0, 5, 10, 900, 900, 0}, {1000, 1003, 11, negative, 900, 0}, {2000, 2001, 12, 200, 1100, 0}},
		"no duration":        {{0, 5, nan, 100, 100, -1}, {1000, 1003, nan, 150, 150, -1}, {2000, 2001, nan, 10, 10, 2}, {3000, 3001, nan, 11, 11, 2}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			var e epoch
			var created []time.Time
			for i, s := range steps {
				e.see(at(s.sent), at(s.arrived), s.seconds, map[string]uint64{"n": s.raw})
				created = append(created, e.created)
				if v, ok := e.value("n"); !ok || v != s.want {
					t.Errorf("step %d: exports %d, want %d", i, v, s.want)
				}
				var want time.Time
				if s.created >= 0 {
					want = created[s.created]
				}
				if !e.created.Equal(want) {
					t.Errorf("step %d: created %v, want that of step %d", i, e.created.Sub(start), s.created)
				}
				if i > 0 && s.created == i && !e.created.After(created[i-1]) {
					t.Errorf("step %d: a new epoch was created at %v, not after %v", i, e.created, created[i-1])
				}
				if s.created == i && !e.created.Before(at(s.arrived)) {
					t.Errorf("step %d: created %v after the answer", i, e.created.Sub(start))
				}
			}
			if _, ok := e.value("m"); ok {
				t.Error("a counter that was never seen has a value")
			}
		})
	}
}

// TestEpochJitter has answers take all sorts of time, which must not look like clears.
func TestEpochJitter(t *testing.T) {
	cleared := time.Now()
	var e epoch
	var first time.Time
	sent := cleared.Add(time.Second)
	for i := range 10000 {
		printed := sent.Add(time.Duration(i*7919%50) * time.Millisecond)
		arrived := printed.Add(time.Duration(i*104729%70) * time.Millisecond)
		seconds := float64(printed.Sub(cleared).Milliseconds()) / 1000
		e.see(sent, arrived, seconds, map[string]uint64{"n": uint64(i)})
		if i == 0 {
			first = e.created
		}
		if !e.created.Equal(first) {
			t.Fatalf("answer %d: an epoch began without a clear", i)
		}
		sent = sent.Add(time.Duration(100+i%13) * time.Millisecond)
	}
	// A clear 10 ms before the text is printed is one.
	e.see(sent, sent.Add(time.Millisecond), 0.010, map[string]uint64{"n": 1 << 40})
	if e.created.Equal(first) {
		t.Error("a clear was not seen")
	}
}
