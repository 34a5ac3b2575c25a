package suspicious

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pmdperf/pmdperf/history"
)

// sample is the report of the second of two stalls, of two reasons and with one merged.
func sample() *Report {
	src := newSource(3, 4)
	src.d.Set(Settings{On: true, Before: 1, After: 2, Limits: Limits{Iteration: 100e3, QueueFill: 128}}, hz, &src.ring, 0)
	src.pass(history.Record{Cycles: 1e6, Sleep: 1e6, Flags: history.Detailed}, 0, true)
	for range 4 {
		src.pass(history.Record{Cycles: 10, Flags: history.Detailed}, 0, true)
	}
	src.pass(history.Record{Cycles: 12, Rx: 3, Tx: 3, Batches: 1, Flags: history.Detailed.WithQueue(0).WithGap(history.Accounting)}, 3, true)
	src.pass(history.Record{Cycles: 250, UpcallCycles: 61, Sleep: 5, Rx: 64, Tx: 62, Batches: 2, Upcalls: 1, Fill: 200, Drops: 2, Full: 1,
		InRow: 4, Flags: (history.Detailed | history.RxDropped).WithQueue(1).WithTimer(1, 100)}, 0, true)
	src.pass(history.Record{Cycles: 130, Rx: 1, Tx: 1, Batches: 1, Flags: history.Detailed.WithQueue(1)}, 0, true)
	src.pass(history.Record{Cycles: 10, Flags: history.Detailed.WithQueue(0)}, 0, true)
	var got []*Report
	s := NewSupervisor(Options{Sources: func() []Source { return []Source{src} }, Sinks: []Sink{func(r *Report) { got = append(got, r) }}})
	s.poll()
	r := got[1]
	r.HeldBack = 3
	r.Causes = []Cause{
		{Kind: CausePreempted, Name: "sh", PID: 4242, Part: 189 * time.Microsecond, Share: 189.0 / 250, How: Exact, Evidence: "task 4242 had the core while the thread was runnable"},
		{Kind: CauseUpcalls, Name: "1 upcall", Part: 61 * time.Microsecond, Share: 61.0 / 250, How: Inferred, Evidence: "the loop timed them: 61µs"},
	}
	return r
}

func TestReports(t *testing.T) {
	s := NewReports(3)
	if got := s.Last(); len(got) != 0 {
		t.Errorf("%v", got)
	}
	for n := range 5 {
		s.Add(&Report{Sequence: uint64(n)})
	}
	var got []uint64
	for _, r := range s.Last() {
		got = append(got, r.Sequence)
	}
	if diff := cmp.Diff([]uint64{4, 3, 2}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestToLog(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	ToLog(log)(sample())
	want := `level=WARN msg="suspicious iteration" id=20260201T000001-c03-6 pmd=pmd-c03/id:7 core=3 iteration=6 ` +
		`ended=2026-02-01T00:00:01.000Z took=250µs slept=5µs reasons=cycles,queue_fill rx=64 tx=62 causes="preempted by sh 76 %, upcalls: 1 upcall 24 %" port=vhu-a queue=3 merged=1 held_back=3` + "\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Tasks of the same name are one.
func TestExplanation(t *testing.T) {
	r := &Report{}
	if got := r.Explanation(); got != "" {
		t.Errorf("no causes: %q", got)
	}
	r.Causes = []Cause{{Kind: CausePreempted, Name: "go", PID: 1, Share: 0.5}, {Kind: CauseFaults, Share: 0.1}, {Kind: CausePreempted, Name: "go", PID: 2, Share: 0.3}}
	if got, want := r.Explanation(), "preempted by go 80 %, page faults 10 %"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
