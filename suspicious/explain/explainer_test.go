package explain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/cause"
)

// report is of a PMD of 1 GHz whose tick 0 was at 5 s of CLOCK_MONOTONIC.
func report(reasons suspicious.Reasons, rec history.Record, gap uint64) *suspicious.Report {
	r := &suspicious.Report{Name: "pmd-c01/id:8", Core: 1, Hz: 1e9, AnchorTicks: 3e9, Anchor: time.Now()}
	r.Event = suspicious.Event{Iteration: 9, First: 9, Reasons: reasons, Records: []history.Record{rec}}
	r.Values[suspicious.Gap] = gap
	r.Polled = []suspicious.Polled{{From: 0, Queues: []suspicious.Queue{{Port: "p0", ID: 4}}}}
	return r
}

// What is explained is the iteration, or the gap before it where that is what was
// suspicious and long.
func TestIteration(t *testing.T) {
	const anchor = 8e9 // of tick 3e9
	rec := history.Record{End: 2e9, Cycles: 3e6, Sleep: 1e6, Rx: 32, Flags: history.Flags(0).WithQueue(0).WithGap(history.Accounting).WithGap(history.Reload)}
	iteration9 := cause.Iteration{Start: 7e9 - 4e6, End: 7e9, Record: rec, Hz: 1e9, Queue: "p0:4"}
	gap := iteration9
	gap.Start, gap.End, gap.Gap, gap.GapKind = 7e9-4e6-9e6, 7e9-4e6, true, history.Reload
	for name, tt := range map[string]struct {
		r    *suspicious.Report
		want cause.Iteration
	}{
		"iteration":   {report(1<<suspicious.Cycles, rec, 0), iteration9},
		"long gap":    {report(1<<suspicious.Cycles|1<<suspicious.Gap, rec, 9e6), gap},
		"short gap":   {report(1<<suspicious.Cycles|1<<suspicious.Gap, rec, 2e6), iteration9},
		"other value": {report(1<<suspicious.Cycles, rec, 9e6), iteration9},
	} {
		if diff := cmp.Diff(tt.want, iteration(tt.r, anchor)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for flags, want := range map[history.Flags]history.Gap{
		0: history.Accounting,
		history.Flags(0).WithGap(history.Accounting).WithGap(history.Answering):                  history.Answering,
		history.Flags(0).WithGap(history.Off).WithGap(history.Answering):                         history.Off,
		history.Flags(0).WithGap(history.Off).WithGap(history.Answering).WithGap(history.Reload): history.Reload,
		history.Flags(0).WithGap(history.Accounting).WithQueue(history.MaxQueues - 1):            history.Accounting,
	} {
		if got := gapKind(flags); got != want {
			t.Errorf("flags %x: %v, want %v", flags, got, want)
		}
	}
}

// Without probes there is what the loop recorded itself.
func TestUnwatched(t *testing.T) {
	e := New(cause.Options{})
	reload := report(1<<suspicious.Gap, history.Record{End: 2e9, Cycles: 10, Flags: history.Flags(0).WithGap(history.Reload)}, 9e6)
	if got := e.Causes(reload); len(got) != 1 || got[0].Kind != suspicious.CauseReload || got[0].Part != 9*time.Millisecond {
		t.Errorf("reload: %v", got)
	}
	upcalls := report(1<<suspicious.Cycles, history.Record{End: 2e9, Cycles: 1e6, Upcalls: 3, UpcallCycles: 9e5}, 0)
	if got := e.Causes(upcalls); len(got) != 2 || got[0].Kind != suspicious.CauseUpcalls || got[1].Kind != suspicious.CauseUnknown {
		t.Errorf("upcalls: %v", got)
	}
	// Probes that are being opened saw nothing of what was before.
	opening := &loop{ready: make(chan struct{})}
	opening.since.Store(1 << 62)
	e.loops[upcalls.Name] = opening
	if got := e.Causes(upcalls); len(got) != 2 || got[1].Evidence != "the probes of its thread were not open yet" {
		t.Errorf("too early: %v", got)
	}
	delete(e.loops, upcalls.Name)
	stall := suspicious.Stall{Name: "pmd-c01/id:8"}
	if e.Examine(&stall); stall.Doing != "" || stall.Stack != nil {
		t.Errorf("a thread that is not watched: %+v", stall)
	}
	e.Watch("none", 0, 1)
	if got := e.Status(); len(got) != 0 {
		t.Errorf("a loop without a thread has probes: %v", got)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	e.Watch("late", 1, 1)
	if got := e.Status(); len(got) != 0 {
		t.Errorf("probes were opened after the end: %v", got)
	}
}
