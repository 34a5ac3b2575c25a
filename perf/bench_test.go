package perf

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/perf/tsc"
	"github.com/pmdperf/pmdperf/suspicious"
)

// The budgets. A machine that others use too makes absolute times worthless, so
// each benchmark measures what it compares in slices of some tens of microseconds
// that take turns, and takes the fastest slice of each: what a slice costs when
// nothing disturbs it.

// fastest returns the time in ticks that one call of each function takes, from the
// fastest of many slices of n calls.
func fastest(b *testing.B, n int, funcs ...func(n int)) []float64 {
	best := make([]float64, len(funcs))
	for i := range best {
		best[i] = math.Inf(1)
	}
	slices := max(400, b.N)
	for range slices {
		for i, f := range funcs {
			began := tsc.Now()
			f(n)
			best[i] = min(best[i], float64(tsc.Now()-began)/float64(n))
		}
	}
	b.StopTimer()
	return best
}

func report(b *testing.B, cost, budget float64) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(cost, "cost")
	b.ReportMetric(budget, "budget")
}

// bareTSC is what all is measured against.
func bareTSC(n int) {
	for range n {
		sink += tsc.Now()
	}
}

var sink uint64

func newBench(b *testing.B, l Level) *Recorder {
	r, err := New(Config{Level: l, Polling: Polling{
		RxQueues: []Queue{{Port: "a"}, {Port: "b"}}, TxQueues: []Queue{{Port: "a"}}}})
	if err != nil {
		b.Fatal(err)
	}
	if err := r.Start(); err != nil {
		b.Fatal(err)
	}
	return r
}

// trace is a fixed random trace of passes: 30 % receive nothing, the others 1 to 32
// packets; cycles are log-normal around 12,000. It is so long that no branch
// predictor learns it by heart.
type trace struct {
	passes [1 << 17]tracePass
	at     int
}

type tracePass struct{ rx, cycles uint32 }

// next returns the next n passes. n is a power of two.
func (t *trace) next(n int) []tracePass {
	at := t.at % len(t.passes)
	t.at += n
	return t.passes[at : at+n]
}

func newTrace() *trace {
	rnd := rand.New(rand.NewPCG(1, 2))
	t := new(trace)
	for i := range t.passes {
		p := &t.passes[i]
		if rnd.Float64() >= 0.3 {
			p.rx = uint32(1 + rnd.IntN(32))
		}
		p.cycles = uint32(12_000 * math.Exp(0.5*rnd.NormFloat64()))
	}
	return t
}

// everything has all criteria on, with thresholds that a busy pass does not exceed.
var everything = suspicious.Settings{On: true, Before: 5, After: 5, Limits: suspicious.Limits{
	Iteration: 10 * time.Millisecond, PollGap: 10 * time.Millisecond, Gap: 10 * time.Millisecond, QueueFill: 1000,
	CyclesPerPacket: 1e9, Upcalls: 1000, CyclesPerUpcall: 1e9, FullBatches: 60000, Drops: 1000, RxDrops: 1000, Adaptive: 1000,
}}

// suspect switches the detection on with everything.
func suspect(r *Recorder) {
	r.detector.Set(everything, r.Hz(), &r.ring, r.next)
	r.detector.SetUsual(1e6)
	r.limit = r.detector.Limit()
	r.arm()
}

// busyPass is a pass as a forwarder makes it: one queue, one batch, some hits. Where
// it counts the same is written out, as a call of busyPass would be measured too.
func busyPass(r *Recorder, rx int) {
	r.Poll(0)
	r.Batch(rx, rx)
	r.Count(EMCHit, uint64(rx))
	r.Tx(rx, 1)
	r.End()
}

func BenchmarkBudget(b *testing.B) {
	b.Run("busy_pass/times_TSC_read", func(b *testing.B) {
		r, t := newBench(b, Detailed), newTrace()
		suspect(r)
		c := fastest(b, 1024, bareTSC, func(n int) {
			for _, p := range t.next(n) {
				rx := int(p.rx | 1)
				r.Poll(0)
				r.Batch(rx, rx)
				r.Count(EMCHit, uint64(rx))
				r.Tx(rx, 1)
				r.End()
			}
		})
		report(b, c[1]/c[0], 3.5)
		b.ReportMetric(2.5, "goal")
	})
	// The reference as it is, and without its timers of queues, which ours does not
	// need for a single queue.
	for _, timers := range []bool{true, false} {
		name := "busy_pass/times_reference"
		if !timers {
			name += "_without_queue_timers"
		}
		b.Run(name, func(b *testing.B) { benchReference(b, timers) })
	}
	b.Run("level_off/times_TSC_read", func(b *testing.B) {
		r := newBench(b, Off)
		c := fastest(b, 4096, bareTSC, func(n int) {
			for range n {
				r.Poll(0)
				r.Batch(32, 32)
				r.Count(EMCHit, uint64(32))
				r.Tx(32, 1)
				r.End()
			}
		})
		report(b, c[1]/c[0], 0.3)
	})
	b.Run("further_queue/times_TSC_read", func(b *testing.B) {
		r := newBench(b, Detailed)
		c := fastest(b, 1024, bareTSC, func(n int) {
			for range n {
				busyPass(r, 32)
			}
		}, func(n int) {
			for range n {
				r.Poll(1)
				busyPass(r, 32)
			}
		})
		report(b, (c[2]-c[1])/c[0], 1.3)
	})
	b.Run("detection_all_criteria/cycles", func(b *testing.B) {
		off, on := newBench(b, Detailed), newBench(b, Detailed)
		suspect(on)
		pass := func(r *Recorder) func(int) {
			t := newTrace()
			return func(n int) {
				for _, p := range t.next(n) {
					busyPass(r, int(p.rx|1))
				}
			}
		}
		c := fastest(b, 1024, pass(off), pass(on))
		if n := on.detector.Counts().Iterations; n > on.sums.totals.Iterations/100 {
			b.Fatalf("%d suspicious iterations", n)
		}
		report(b, c[1]-c[0], 8)
	})
	b.Run("capture_of_999/us_in_a_pass", func(b *testing.B) {
		r := newBench(b, Detailed)
		s := suspicious.Settings{On: true, Before: 998, Limits: suspicious.Limits{Drops: 1}}
		r.detector.Set(s, r.Hz(), &r.ring, r.next)
		for range 2000 {
			busyPass(r, 32)
		}
		worst := math.Inf(1)
		for range 50 {
			r.Drop(1)
			for r.next%pending != pending-1 {
				busyPass(r, 32)
			}
			busyPass(r, 32) // accounts and begins the capture
			longest := 0.0
			var e *suspicious.Event
			for e = r.TakeEvent(); e == nil; e = r.TakeEvent() {
				began := tsc.Now()
				r.detector.Advance(&r.ring, r.accounted)
				longest = max(longest, float64(tsc.Now()-began))
			}
			if len(e.Records) != suspicious.MaxRecords {
				b.Fatalf("%d records", len(e.Records))
			}
			r.ReleaseEvent()
			// The fastest of the longest: what a copy costs when nothing disturbs it.
			worst = min(worst, longest)
			for range 1000 {
				busyPass(r, 32)
			}
		}
		report(b, tsc.Duration(uint64(worst), r.Hz()).Seconds()*1e6, 1)
	})
	b.Run("packet_sizes/cycles_per_packet", func(b *testing.B) {
		r := newBench(b, Detailed)
		// The usual internet mix: 7 small packets, 4 of middle size, 1 full one.
		sizes := make([]uint16, 32)
		rnd := rand.New(rand.NewPCG(1, 2))
		for i := range sizes {
			sizes[i] = []uint16{60, 60, 60, 60, 60, 60, 60, 590, 590, 590, 590, 1514}[rnd.IntN(12)]
		}
		c := fastest(b, 1024, func(n int) {
			for range n {
				busyPass(r, 32)
			}
		}, func(n int) {
			for range n {
				r.RxSizes(0, sizes)
				r.TxSizes(0, sizes)
				busyPass(r, 32)
			}
		})
		report(b, (c[1]-c[0])/64, 1.5)
	})
	b.Run("all_but_sizes/cycles_per_packet", func(b *testing.B) {
		r := newBench(b, Detailed)
		c := fastest(b, 1024, func(n int) {
			for range n {
				busyPass(r, 32)
			}
		})
		report(b, c[0]/32, 4)
	})
	b.Run("scrape/us_of_the_owner", func(b *testing.B) { benchAnswer(b, Want{}, 6) })
	b.Run("show_it_1000_ms_1000/us_of_the_owner", func(b *testing.B) { benchAnswer(b, Want{1000, 1000}, 25) })
	b.Run("show_it_1000_ms_1000/us_in_a_pass", benchPieces)
	b.Run("memory/KiB", func(b *testing.B) {
		for b.Loop() {
		}
		report(b, float64(unsafe.Sizeof(Recorder{}))/1024, 512)
	})
}

// benchReference compares a pass with that of the reference algorithm on the same
// trace.
func benchReference(b *testing.B, timers bool) {
	r, t, u := newBench(b, Detailed), newTrace(), newTrace()
	ref := newReference()
	var now uint64
	c := fastest(b, 1024, func(n int) {
		for _, p := range t.next(n) {
			ref.begin()
			var began uint64
			if timers {
				began = tsc.Now()
			}
			if p.rx > 0 {
				ref.received(p.rx, p.rx)
			}
			if timers {
				ref.polled(began, tsc.Now(), uint64(p.rx))
			}
			ref.counters[7] += uint64(p.rx)
			ref.counters[8] += uint64(p.rx)
			ref.counters[9]++
			sink += tsc.Now()
			now += uint64(p.cycles)
			ref.end(now, p.rx, p.rx)
		}
	}, func(n int) {
		at := r.start
		for _, p := range u.next(n) {
			rx := int(p.rx)
			r.Poll(0)
			r.Batch(rx, rx)
			r.Count(EMCHit, uint64(rx))
			r.Tx(rx, 1)
			sink += tsc.Now()
			at = max(at+uint64(p.cycles), r.start)
			r.end(at)
		}
	})
	report(b, c[1]/c[0], 0.4)
}

// busyRecorder returns a recorder with full histories and histograms as a busy loop with
// a few stalls leaves them.
func busyRecorder(b *testing.B) *Recorder {
	r, t := newBench(b, Detailed), newTrace()
	at := r.start
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range 2_000_000 {
		p := t.next(1)[0]
		rx, cycles := int(p.rx), uint64(p.cycles)
		r.Poll(0)
		if rx > 0 {
			r.Batch(rx, rnd.IntN(512))
		}
		if i%1000 == 0 {
			r.Upcall(uint64(rnd.IntN(200_000)), true)
		}
		r.Tx(rx, 1)
		stall := uint64(0)
		if i%997 == 0 {
			stall = uint64(rnd.IntN(10_000_000))
		}
		at = max(at+cycles+stall, r.start)
		r.end(at)
	}
	return r
}

// benchAnswer measures what the answer to a reader costs the owner in all.
func benchAnswer(b *testing.B, want Want, budget float64) {
	r := busyRecorder(b)
	s := new(Snapshot)
	s.room(want, 2, 0, 0)
	c := fastest(b, 1, func(int) {
		req := &request{errand: errand{into: s, want: want}}
		r.answer(req, r.start, math.MaxInt)
	})
	if len(s.Iterations) != want.Iterations || len(s.Millis) != want.Millis {
		b.Fatalf("%d iterations and %d rows", len(s.Iterations), len(s.Millis))
	}
	report(b, tsc.Duration(uint64(c[0]), r.Hz()).Seconds()*1e6, budget)
}

// benchPieces measures the longest pause of the owner for the answer to a full show,
// which it gives in pieces.
func benchPieces(b *testing.B) {
	r := busyRecorder(b)
	s := new(Snapshot)
	want := Want{history.Shown, history.Shown}
	s.room(want, 2, 0, 0)
	best := []float64(nil) // of each piece, when nothing disturbs it
	for range max(400, b.N) {
		req := &request{errand: errand{into: s, want: want}}
		for i := 0; !req.done.Load(); i++ {
			began := tsc.Now()
			if i == 0 {
				r.answer(req, r.start, pieceSize)
			} else {
				r.copyRest(pieceSize)
			}
			took := float64(tsc.Now() - began)
			if i == len(best) {
				best = append(best, took)
			}
			best[i] = min(best[i], took)
		}
	}
	b.StopTimer()
	report(b, tsc.Duration(uint64(slices.Max(best)), r.Hz()).Seconds()*1e6, 25)
	b.ReportMetric(float64(len(best)), "pieces")
}

// The hot path call by call, for benchstat.

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		sink += tsc.Now()
	}
}

func BenchmarkPass(b *testing.B) {
	for _, tt := range []struct {
		name  string
		level Level
	}{{"off", Off}, {"basic", Basic}, {"detailed", Detailed}} {
		b.Run(tt.name+"/busy", func(b *testing.B) {
			r := newBench(b, tt.level)
			for b.Loop() {
				busyPass(r, 32)
			}
		})
		b.Run(tt.name+"/idle", func(b *testing.B) {
			r := newBench(b, tt.level)
			for b.Loop() {
				r.Poll(0)
				r.End()
			}
		})
	}
}

func BenchmarkSnapshot(b *testing.B) {
	r := newBench(b, Detailed)
	r.Park()
	s := new(Snapshot)
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Snapshot(b.Context(), Want{10, 10}, s); err != nil {
			b.Fatal(err)
		}
	}
}
