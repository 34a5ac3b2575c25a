package explain_test

import (
	"context"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/dataplane"
	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/cause"
	"github.com/pmdperf/pmdperf/suspicious/explain"
)

// A PMD stalls at 1 kHz. Every suspicious iteration is accounted for exactly once, and
// none is of the supervisor's own making: no thread of this process ran in the PMD's
// place, and no garbage that it made had to be collected. PMDPERF_LONG=1 makes it 10,000
// stalls.
func TestNoneOfOwnMaking(t *testing.T) {
	need.Root(t) // to be told who ran instead
	duration := 1500 * time.Millisecond
	if need.Long() {
		duration = 10500 * time.Millisecond
	}
	defer debug.SetGCPercent(debug.SetGCPercent(2000))

	g := new(perf.Registry)
	e := explain.New(cause.Options{})
	settings := suspicious.Settings{On: true, Before: 5, After: 5, Limits: suspicious.Limits{Iteration: 200 * time.Microsecond}}
	set := make(map[*perf.Recorder]bool)
	seen := make(map[uint64]int) // reports and merges of an iteration
	var merged, unnamed uint64
	var reports []*suspicious.Report
	var before, after debug.GCStats
	s := suspicious.NewSupervisor(suspicious.Options{
		Sources: func() (all []suspicious.Source) {
			for _, r := range g.Recorders() {
				set[r] = set[r] || r.SetSuspicion(context.Background(), settings) == nil
				e.Watch(r.Name(), r.ThreadID(), r.Core())
				all = append(all, r)
			}
			return all
		},
		Causes: e.Causes, PerMinute: -1,
		Sinks: []suspicious.Sink{func(r *suspicious.Report) {
			seen[r.Iteration]++
			for _, m := range r.Merged {
				seen[m.Iteration]++
			}
			merged += r.MergedCount
			unnamed += r.MergedCount - uint64(len(r.Merged))
			r.Records = nil
			if reports = append(reports, r); len(reports) == 100 {
				debug.ReadGCStats(&before) // what the start made is collected by now
			}
		}},
	})
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { s.Run(ctx) })
	inject := dataplane.Injection{Kind: dataplane.InjectCompute, Duration: 210 * time.Microsecond, Every: time.Millisecond}
	debug.ReadGCStats(&before)
	result, err := dataplane.Run(context.Background(), dataplane.Config{
		Duration: duration, Rate: 100000, Flows: 10, Level: perf.Detailed, Registry: g, Inject: []dataplane.Injection{inject},
	})
	debug.ReadGCStats(&after)
	stop()
	all.Wait()
	own := make(map[int]bool)
	tasks, readErr := os.ReadDir("/proc/self/task")
	if readErr != nil {
		t.Fatal(readErr)
	}
	for _, f := range tasks {
		if tid, err := strconv.Atoi(f.Name()); err == nil {
			own[tid] = true
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		need.Skip(t, err.Error())
	}

	r := g.Recorders()[0]
	var snap perf.Snapshot
	if err := r.Snapshot(t.Context(), perf.Want{}, &snap); err != nil {
		t.Fatal(err)
	}
	counts := snap.Suspicious
	for n, times := range seen {
		if times != 1 {
			t.Errorf("iteration %d was reported %d times", n, times)
		}
	}
	if n := uint64(len(reports)); counts.Iterations != n+merged+counts.NotCaptured || counts.Merged != merged ||
		counts.Iterations != uint64(len(seen))+unnamed+counts.NotCaptured || counts.Iterations < result.Injected[0]*9/10 {
		t.Errorf("%d injected, %+v: %d reports, %d merged, %d named", result.Injected[0], counts, n, merged, len(seen))
	}

	bySupervisor := 0
	for _, rep := range reports {
		for _, c := range rep.Causes {
			if c.Kind == suspicious.CausePreempted && own[c.PID] {
				bySupervisor++
				t.Logf("iteration %d: %v", rep.Iteration, c)
			}
		}
	}
	if bySupervisor > 0 {
		t.Errorf("threads of this process ran in the PMD's place in %d of %d iterations", bySupervisor, len(reports))
	}
	if n := after.NumGC - before.NumGC; n > 0 {
		t.Errorf("%d garbage collections", n)
	}
	t.Logf("%d stalls, %d suspicious iterations: %d reports, %d merged, %d not captured", result.Injected[0], counts.Iterations, len(reports), merged, counts.NotCaptured)
}
