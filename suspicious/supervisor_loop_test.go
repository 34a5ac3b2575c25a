package suspicious_test

import (
	"context"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/perf/tsc"
	"github.com/pmdperf/pmdperf/suspicious"
)

// Of stalls at 1 kHz every injected iteration is accounted for exactly once:
// reported, merged or counted as not captured. PMDPERF_LONG=1 makes it 10,000.
func TestEveryStallIsAccountedForOnce(t *testing.T) {
	stalls := 400
	if need.Long() {
		stalls = 10000
	}
	limits := suspicious.Limits{Iteration: 100 * time.Microsecond}
	for _, tt := range []struct {
		name     string
		settings suspicious.Settings
		captures int
		every    time.Duration // between two looks of the supervisor
	}{
		{"each for itself", suspicious.Settings{On: true, Before: 2, After: 2, Limits: limits}, 0, 0},
		{"in each other's neighborhoods", suspicious.Settings{On: true, Before: 100, After: 200, Extend: true, Limits: limits}, 0, 0},
		{"a supervisor that is late", suspicious.Settings{On: true, Before: 2, After: 2, Limits: limits}, 2, 50 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := perf.New(perf.Config{Level: perf.Detailed, Captures: tt.captures, Polling: perf.Polling{RxQueues: []perf.Queue{{Port: "p0"}}}})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.SetSuspicion(t.Context(), tt.settings); err != nil {
				t.Fatal(err)
			}

			seen := make(map[uint64]int) // how often an iteration was reported or merged
			var events, merged, unnamed, records uint64
			s := suspicious.NewSupervisor(suspicious.Options{
				Sources:   func() []suspicious.Source { return []suspicious.Source{r} },
				Every:     tt.every,
				PerMinute: -1,
				Sinks: []suspicious.Sink{func(rep *suspicious.Report) {
					events++
					records += uint64(len(rep.Records))
					seen[rep.Iteration]++
					for _, m := range rep.Merged {
						seen[m.Iteration]++
					}
					merged += rep.MergedCount
					unnamed += rep.MergedCount - uint64(len(rep.Merged))
				}},
			})
			ctx, stop := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { s.Run(ctx); close(done) }()
			injected := run(t, r, stalls)
			stop()
			<-done

			var snap perf.Snapshot
			if err := r.Snapshot(t.Context(), perf.Want{}, &snap); err != nil {
				t.Fatal(err)
			}
			counts := snap.Suspicious
			missing := uint64(0)
			for _, n := range injected {
				if seen[n] == 0 {
					missing++
				}
			}
			for n, times := range seen {
				if times != 1 {
					t.Errorf("iteration %d was reported %d times", n, times)
				}
			}
			if counts.Iterations < uint64(stalls) || counts.Iterations != events+merged+counts.NotCaptured || counts.Merged != merged {
				t.Errorf("%+v: %d events and %d merged", counts, events, merged)
			}
			if missing > counts.NotCaptured+unnamed {
				t.Errorf("%d injected iterations are missing: %d were not captured, %d merged without a name", missing, counts.NotCaptured, unnamed)
			}
			if s.Reported() != events || s.HeldBack() != 0 {
				t.Errorf("%d of %d events reported, %d held back", s.Reported(), events, s.HeldBack())
			}
			t.Logf("%d stalls injected; %d suspicious iterations: %d events, %d merged, %d not captured; %d records",
				len(injected), counts.Iterations, events, merged, counts.NotCaptured, records)
		})
	}
}

// run runs a loop that stalls at 1 kHz, so many times, and returns the numbers of the
// iterations in which it did.
func run(t *testing.T, r *perf.Recorder, stalls int) (injected []uint64) {
	defer r.Close()
	if err := r.Start(); err != nil {
		t.Error(err)
		return nil
	}
	clock := tsc.System()
	spin := func(d time.Duration) {
		for end := tsc.Now() + clock.Ticks(d); tsc.Now() < end; {
		}
	}
	every := clock.Ticks(time.Millisecond)
	next := tsc.Now() + every
	for n := uint64(0); len(injected) < stalls; n++ {
		r.Poll(0)
		r.Batch(int(n%3), 0)
		if tsc.Now() >= next {
			next += every
			injected = append(injected, n)
			spin(120 * time.Microsecond)
		} else {
			spin(5 * time.Microsecond)
		}
		r.End()
	}
	return injected
}

// A real loop that is stuck is reported meanwhile, and when it goes on.
func TestWatchdogOnALoop(t *testing.T) {
	r, err := perf.New(perf.Config{Core: 3})
	if err != nil {
		t.Fatal(err)
	}
	reports := make(chan suspicious.Stall, 1000)
	w := &suspicious.Watchdog{Threshold: 50 * time.Millisecond, Report: func(s suspicious.Stall) { reports <- s },
		Loops: func() []suspicious.Pinger { return []suspicious.Pinger{r} }}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { w.Run(ctx); close(done) }()
	defer func() { stop(); <-done }()
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const patience = 30 * time.Second
	// The loop is this test, which is stuck while it waits for the reports.
	for n := 1; n <= 3; n++ {
		select {
		case s := <-reports:
			if s.Report != n || s.Over || s.Core != 3 || s.For < 50*time.Millisecond {
				t.Errorf("%+v", s)
			}
		case <-time.After(patience):
			t.Fatal("a loop that is stuck is not reported")
		}
	}
	for begun := time.Now(); ; time.Sleep(100 * time.Microsecond) {
		r.End()
		if len(reports) > 0 {
			if s := <-reports; s.Over && s.For >= 150*time.Millisecond {
				return
			}
		}
		if time.Since(begun) > patience {
			t.Fatal("a loop that goes on is not reported")
		}
	}
}
