package perf

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/perf/tsc"
)

// checkSnapshot checks what must hold in every snapshot.
func checkSnapshot(t *testing.T, s *Snapshot, want Want) {
	t.Helper()
	fail := func(what string, got, want uint64) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	n := &s.Totals
	fail("values in cycles/it", s.Cycles.Count(), n.Iterations)
	fail("values in the bins of cycles/it", s.Cycles.Bins.Total(), n.Iterations)
	fail("sum of cycles/it", s.Cycles.Sum(), n.Cycles)
	fail("values in packets/it", s.Packets.Count(), n.Iterations)
	fail("sum of packets/it", s.Packets.Sum(), n.RxPackets)
	fail("values in queue fill", s.QueueFill.Count(), n.DetailIterations)
	fail("values in upcalls/it", s.Upcalls.Count(), n.DetailIterations)
	fail("values in pkts/batch", s.BatchPackets.Count(), n.RxBatches)
	fail("values in cycles/upcall", s.CyclesPerUpcall.Count(), s.Upcalls.Sum())
	fail("sum of cycles/upcall", s.CyclesPerUpcall.Sum(), n.UpcallCycles)
	fail("idle + busy iterations", n.IdleIterations()+n.BusyIterations, n.Iterations)
	var gaps, queue uint64
	for _, g := range s.Gaps {
		gaps += g.Ticks
	}
	fail("cycles + sleep + gaps", n.Cycles+n.Sleep+gaps, s.Wall())
	fail("reloads", s.Reloads.Count(), s.Gaps[history.Reload].Count)
	for _, q := range s.RxQueues {
		queue += q.BusyCycles
	}
	if queue+s.Gone.BusyCycles > n.BusyCycles {
		t.Errorf("queues used %d of %d busy cycles", queue, n.BusyCycles)
	}
	var its, cycles uint64
	for _, m := range append(s.Millis, s.OpenMilli) {
		fail("a row's length", m.Duration, m.Cycles+m.Sleep+m.Gap)
		its += uint64(m.Iterations)
		cycles += m.Cycles
	}
	if want.Millis >= history.Shown && len(s.Millis) < history.Shown {
		fail("iterations in the rows", its, n.Iterations)
		fail("cycles in the rows", cycles, n.Cycles)
	}
	if len(s.Iterations) > 0 {
		last := s.Iterations[len(s.Iterations)-1]
		if last.End > s.Until || s.State == Running && last.End > s.Now {
			t.Errorf("the last record ends at %d, the snapshot at %d", last.End, s.Until)
		}
		for i, rec := range s.Iterations[1:] {
			if rec.Start() < s.Iterations[i].End {
				t.Errorf("record %d begins before the one before it ends", i+1)
			}
		}
	}
	if s.Until < s.Since || s.Now < s.Until {
		t.Errorf("since %d until %d now %d", s.Since, s.Until, s.Now)
	}
	for _, c := range s.Counters {
		// The loop adds 2 to the second for every one of the first, in one pass.
		if c.Name == "twos" && c.Count != 2*s.Counters[0].Count {
			t.Errorf("counters %v", s.Counters)
		}
	}
}

// Readers at full speed beside a loop that parks, reloads, sleeps and at last ends
// by a panic: every snapshot agrees with itself, no request is lost, none is late
// by more than its deadline and a little.
func TestStress(t *testing.T) {
	length := 1500 * time.Millisecond
	if need.Long() {
		length = 20 * time.Second
	}
	r, err := New(Config{Level: Detailed, Counters: []string{"ones", "twos"}, Timers: []string{"work"},
		Polling: Polling{RxQueues: []Queue{{Port: "a"}, {Port: "b"}}}})
	if err != nil {
		t.Fatal(err)
	}
	ones, _ := r.Counter("ones")
	twos, _ := r.Counter("twos")
	var stop, blocked atomic.Bool
	var all sync.WaitGroup
	all.Go(func() { // the owner
		runtime.LockOSThread()
		defer func() { recover() }()
		defer r.Close()
		r.Start()
		for i := 0; ; i++ {
			r.Poll(0)
			if i%3 == 0 {
				r.Batch(1+i%32, i%100)
				tm := r.StartTimer()
				r.Count(ones, 1)
				r.Count(twos, 2)
				r.Upcall(r.StopNamed(tm, 0), i%2 == 0)
			}
			r.Poll(1)
			if i%5 == 0 {
				r.Batch(32, 0)
				r.Tx(32, 1)
			}
			if i%1000 == 0 {
				r.SleepBegin()
				time.Sleep(10 * time.Microsecond)
				r.SleepEnd()
			}
			r.End()
			switch {
			case i%5000 == 0:
				r.Park()
				if i%10000 == 0 {
					time.Sleep(100 * time.Microsecond)
				}
				r.Resume(&Polling{RxQueues: []Queue{{Port: "a"}, {Port: "b"}, {Port: "c", ID: i % 7}}[:2+i/5000%2]})
			case i%200000 == 1:
				// A loop that is stuck without having parked.
				blocked.Store(true)
				time.Sleep(30 * time.Millisecond)
				blocked.Store(false)
			}
			if stop.Load() {
				panic("the loop ends")
			}
			runtime.Gosched()
		}
	})
	var snapshots, stalls, clears atomic.Int64
	end := time.Now().Add(length)
	for id := range 4 {
		all.Go(func() {
			s := new(Snapshot)
			for i := 0; time.Now().Before(end); i++ {
				want := Want{i % 1200, history.Shown}
				timeout := time.Second
				if i%2 == 1 {
					timeout = 10 * time.Millisecond
				}
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				began := time.Now()
				var err error
				switch {
				case id == 0 && i%10 == 9:
					if err = r.Clear(ctx); err == nil {
						clears.Add(1)
						mark := tsc.Now()
						if err := r.Snapshot(t.Context(), want, s); err == nil && s.Since > mark {
							t.Errorf("a clear took effect after it returned")
						}
					}
				case id == 1 && i%20 == 19:
					err = r.SetLevel(ctx, Level(i/20%3))
				default:
					if err = r.Snapshot(ctx, want, s); err == nil {
						snapshots.Add(1)
						checkSnapshot(t, s, want)
					}
				}
				cancel()
				var stalled *StalledError
				switch {
				case errors.As(err, &stalled):
					stalls.Add(1)
				case err != nil && !errors.Is(err, context.DeadlineExceeded):
					t.Errorf("unexpected error: %v", err)
				}
				// Generous for a machine that has other things to do.
				if late := time.Since(began) - timeout; late > 2*time.Second {
					t.Errorf("an answer came %v after its deadline", late)
				}
			}
		})
	}
	time.Sleep(time.Until(end))
	stop.Store(true)
	all.Wait()
	t.Logf("%d snapshots, %d clears, %d stalls", snapshots.Load(), clears.Load(), stalls.Load())
	if snapshots.Load() < 100 || clears.Load() < 5 {
		t.Errorf("only %d snapshots and %d clears", snapshots.Load(), clears.Load())
	}
	if r.State() != Closed {
		t.Errorf("after a panic the recorder is %v", r.State())
	}
	s := new(Snapshot)
	if err := r.Snapshot(t.Context(), Want{1000, 1000}, s); err != nil {
		t.Errorf("after the loop's end: %v", err)
	}
	checkSnapshot(t, s, Want{1000, 1000})
}
