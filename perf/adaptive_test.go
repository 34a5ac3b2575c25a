package perf

import (
	"testing"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/suspicious"
)

// passes ends n passes of the given ticks.
func passes(r *Recorder, n int, ticks uint64) {
	for range n {
		r.end(r.start + ticks)
	}
}

// An iteration is compared with the 99.9th percentile of the last ten seconds that
// Adapt was told of; what came before is forgotten.
func TestAdapt(t *testing.T) {
	now := uint64(1 << 40)
	r, err := newRecorder(Config{}, 1e9, func() uint64 { return now })
	if err != nil {
		t.Fatal(err)
	}
	if err := r.SetSuspicion(t.Context(), suspicious.Settings{On: true, Limits: suspicious.Limits{Adaptive: 10}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	// second feeds a second's passes and has Adapt see them.
	second := func(n int, ticks uint64) {
		t.Helper()
		passes(r, n, ticks)
		now = r.start
		r.Park()
		if err := r.Adapt(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.Resume(nil); err != nil {
			t.Fatal(err)
		}
	}
	suspicious := func(ticks uint64) bool {
		before := r.detector.Counts().ByReason[suspicious.Adaptive]
		passes(r, 1, ticks)
		r.account()
		return r.detector.Counts().ByReason[suspicious.Adaptive] > before
	}
	second(50*usualLeast, 10) // its life so far, of which nobody knows when it was
	if suspicious(1e6) {
		t.Error("what came before the first look is taken for the last second")
	}
	second(usualLeast-2, 100)
	if suspicious(1e6) {
		t.Error("too few iterations were enough to tell")
	}
	second(usualLeast, 100)
	if suspicious(1000) || !suspicious(1001) {
		t.Errorf("limit %d, want 1000", r.detector.Limit())
	}
	// One in a thousand of longer ones is still usual, two are not.
	second(19*usualLeast, 100)
	second(usualLeast/10, 5000)
	if suspicious(10*5000-100) || !suspicious(10*5000*129/128+1) {
		t.Errorf("limit %d, want about 50000", r.detector.Limit())
	}
	for range usualSpans {
		second(usualLeast, 200)
	}
	if suspicious(2000) || !suspicious(2011) {
		t.Errorf("limit %d after ten other seconds, want 2000", r.detector.Limit())
	}
	// A clear begins anew, but what was usual is still known.
	r.Park()
	if err := r.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Resume(nil); err != nil {
		t.Fatal(err)
	}
	second(usualLeast, 200)
	if suspicious(2000) || !suspicious(2011) {
		t.Errorf("limit %d after a clear, want 2000", r.detector.Limit())
	}
}

// Full batches are in a row for each queue by itself, from pass to pass.
func TestFullBatchesOfOneQueue(t *testing.T) {
	r, err := New(Config{Level: Detailed, BatchSize: 4, Polling: Polling{RxQueues: []Queue{{Port: "a"}, {Port: "b"}}}})
	if err != nil {
		t.Fatal(err)
	}
	settings := suspicious.Settings{On: true, Limits: suspicious.Limits{FullBatches: 3}}
	if err := r.SetSuspicion(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	for n, pass := range []struct {
		a, b  []int // batches
		inRow uint16
		full  uint16
	}{
		{a: []int{4}, inRow: 1, full: 1},
		{b: []int{4}, inRow: 1, full: 1},              // the other queue
		{a: []int{4}, b: []int{4}, inRow: 2, full: 2}, // a's row was broken by a pass without
		{a: []int{4}, b: []int{3}, inRow: 2, full: 1},
		{a: []int{4}, b: []int{4}, inRow: 3, full: 2}, // suspicious
		{a: []int{4, 4, 2}, inRow: 5, full: 2},        // suspicious; and then emptied
		{a: []int{5}, inRow: 1, full: 1},
		{},
		{a: []int{4, 4, 4}, inRow: 3, full: 3}, // suspicious
	} {
		for q, batches := range [][]int{pass.a, pass.b} {
			r.Poll(q)
			for _, b := range batches {
				r.Batch(b, 0)
			}
		}
		r.End()
		if rec := r.ring.At(uint64(n)); rec.InRow != pass.inRow || rec.Full != pass.full {
			t.Errorf("pass %d: %d full, %d in a row; want %d, %d", n, rec.Full, rec.InRow, pass.full, pass.inRow)
		}
	}
	r.Park()
	if n := r.detector.Counts().ByReason[suspicious.FullBatches]; n != 3 {
		t.Errorf("%d suspicious iterations, want 3", n)
	}
}

// More full batches than a record can count, in one pass.
func TestFullBatchesSaturate(t *testing.T) {
	r, err := New(Config{Level: Detailed, BatchSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	for range 70000 {
		r.Batch(1, 0)
	}
	if rec := r.record(); rec.Full != 65535 || rec.InRow != 65535 || rec.Batches != 70000 {
		t.Errorf("%d full of %d, %d in a row", rec.Full, rec.Batches, rec.InRow)
	}
}

// The timer that took the longest span is in the record, and drops of rings are apart
// from others.
func TestTimerAndRxDropsInRecord(t *testing.T) {
	r, err := New(Config{Level: Detailed, Timers: []string{"send", "look up"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.SetSuspicion(t.Context(), suspicious.Settings{On: true, Limits: suspicious.Limits{RxDrops: 7}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	at := r.start
	span := func(id int, ticks uint64) {
		tm := r.startTimer(at)
		at += ticks
		r.stopNamed(tm, id, at)
	}
	span(0, 1000)
	span(1, 5000)
	span(0, 900)
	r.RxDrop(4)
	r.RxDrop(-1)
	r.RxDrop(3)
	r.Drop(2)
	r.end(at + 10)
	r.end(at + 20)
	rec := r.ring.At(0)
	id, ticks, ok := rec.Flags.Timer()
	if !ok || id != 1 || ticks < 2500 || ticks > 7500 {
		t.Errorf("timer %d took %d, %v", id, ticks, ok)
	}
	if rec.Drops != 2 || rec.Flags&history.RxDropped == 0 {
		t.Errorf("%+v", rec)
	}
	if _, _, ok := r.ring.At(1).Flags.Timer(); ok || r.ring.At(1).Flags&history.RxDropped != 0 {
		t.Errorf("the pass after it: %x", r.ring.At(1).Flags)
	}
	r.Close()
	var s Snapshot
	if err := r.Snapshot(t.Context(), Want{}, &s); err != nil {
		t.Fatal(err)
	}
	if s.Totals.Drops != 2 || s.Totals.RxDrops != 7 || s.Suspicious.ByReason[suspicious.RxDrops] != 1 || s.Suspicious.ByReason[suspicious.Drops] != 0 {
		t.Errorf("%+v, %+v", s.Totals, s.Suspicious)
	}
	e := r.TakeEvent()
	if e == nil || e.Iteration != 0 || e.Values[suspicious.RxDrops] != 7 {
		t.Errorf("event %+v", e)
	}
	if got := r.TimerNames(); len(got) != 2 || got[1] != "look up" {
		t.Errorf("timers %v", got)
	}
}
