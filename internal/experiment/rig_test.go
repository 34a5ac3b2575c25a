package experiment

import (
	"strings"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/dataplane"
)

// TestNothingComes: an experiment on ports where nobody sends ends with an error.
func TestNothingComes(t *testing.T) {
	w, err := openRig(dataplane.Config{Profile: dataplane.ProfileIdle}, begin("test"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	w.silence = 50 * time.Millisecond
	if err := w.warmUp(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "need somebody who sends") {
		t.Errorf("got %v", err)
	}
}

// TestNewSlice: rates of several PMDs add up, whatever the lengths of their slices.
func TestNewSlice(t *testing.T) {
	const hz = 1e9
	from := []dataplane.Mark{{Tick: 1000, Rx: 5, Taken: 7}, {Tick: 2000, Rx: 9}}
	to := []dataplane.Mark{{Tick: 1000 + 1e6, Rx: 5 + 4000, Tx: 3000, Drops: 1000, Batches: 100, Slept: 1, Taken: 8}, {Tick: 2000 + 2e6, Rx: 9 + 2000, Missed: 50}}
	s := newSlice(from, to, hz)
	if s.mpps != 4+1 || s.cycles != 3e6/6000 {
		t.Errorf("%v Mpps, %v cycles a packet, want 5 and 500", s.mpps, s.cycles)
	}
	if want := (dataplane.Mark{Tick: 1.5e6, Rx: 6000, Tx: 3000, Drops: 1000, Missed: 50, Batches: 100, Slept: 1, Taken: 1}); s.Mark != want {
		t.Errorf("%+v, want %+v", s.Mark, want)
	}
	if s := newSlice(from, from, hz); !(s.mpps > 0) {
		t.Errorf("nothing done: %+v", s)
	}
}
