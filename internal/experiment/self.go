package experiment

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"
	"unsafe"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/perf/tsc"
	"github.com/pmdperf/pmdperf/suspicious"
)

// SelfConfig says how Self measures.
type SelfConfig struct {
	Common
	Rounds int
}

// Validate returns what is wrong with the configuration on this machine.
func (c *SelfConfig) Validate() error {
	if c.Rounds < 1 {
		return fmt.Errorf("%d rounds: choose at least 1", c.Rounds)
	}
	cfg := c.dataplane()
	return cfg.Validate()
}

// subject is what is measured: calls of a function, in ticks each.
type subject struct {
	call func(n int)
	best float64
}

// Calls in a slice: some tens of microseconds.
const selfCalls = 1024

// Self measures the recorder by itself. As design and benchmarks have it, the fastest
// slice counts.
func Self(ctx context.Context, c SelfConfig) (r *Report, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r = begin("self", parameter("rounds", c.Rounds), parameter("calls in a slice", selfCalls))
	defer r.end(ctx)
	done := make(chan error)
	go func() { done <- r.self(ctx, &c) }() // the thread that it pins ends with the goroutine
	if err := <-done; notInterrupted(ctx, err) != nil {
		return nil, err
	}
	return r, nil
}

func (r *Report) self(ctx context.Context, c *SelfConfig) error {
	runtime.LockOSThread()
	var recs [4]*perf.Recorder
	for i, l := range []perf.Level{perf.Off, perf.Detailed, perf.Detailed, perf.Detailed} {
		var err error
		if recs[i], err = selfRecorder(l); err != nil {
			return err
		}
		defer recs[i].Close()
	}
	off, detailed, detecting, sizing := recs[0], recs[1], recs[2], recs[3]
	// All criteria, with thresholds that nothing here comes near: batches of 32 are not full.
	detecting.Park()
	all := suspicious.Settings{On: true, Before: 5, After: 5, Limits: suspicious.Limits{
		Iteration: time.Minute, PollGap: time.Minute, Gap: time.Minute, QueueFill: 1000, CyclesPerPacket: 1e9,
		Upcalls: 1000, CyclesPerUpcall: 1e9, FullBatches: 1000, Drops: 1000}}
	if err := detecting.SetSuspicion(ctx, all); err != nil {
		return err
	}
	if err := detecting.Resume(nil); err != nil {
		return err
	}
	sizes := make([]uint16, 32)
	for i := range sizes {
		sizes[i] = [...]uint16{60, 60, 60, 60, 60, 60, 60, 590, 590, 590, 590, 1514}[i*7%12]
	}
	var sink uint64
	subjects := []subject{
		{call: func(n int) {
			for range n {
				sink += tsc.Now()
			}
		}},
		{call: func(n int) { passes(off, n) }},
		{call: func(n int) { passes(detailed, n) }},
		{call: func(n int) {
			for range n {
				detailed.Poll(1)
				passes(detailed, 1)
			}
		}},
		{call: func(n int) {
			for range n {
				passes(detailed, 1)
			}
		}},
		{call: func(n int) { passes(detecting, n) }},
		{call: func(n int) {
			for range n {
				sizing.RxSizes(0, sizes)
				sizing.TxSizes(0, sizes)
				passes(sizing, 1)
			}
		}},
	}
	for i := range subjects {
		subjects[i].best = math.Inf(1)
	}
	for n := range c.Rounds {
		if n%64 == 0 {
			c.progress("round %d of %d", n, c.Rounds)
			if err := ctx.Err(); err != nil {
				break // with what there is
			}
		}
		for i := range subjects {
			s := &subjects[i]
			began := tsc.Now()
			s.call(selfCalls)
			s.best = min(s.best, float64(tsc.Now()-began)/selfCalls)
		}
	}
	runtime.KeepAlive(sink)
	if math.IsInf(subjects[0].best, 1) {
		return nil
	}
	clock, offPass, pass, twoQueues, alone, detect, sized := subjects[0].best, subjects[1].best, subjects[2].best, subjects[3].best, subjects[4].best, subjects[5].best, subjects[6].best
	r.budget("a busy pass, all but sizes", "clock readings", pass/clock, 3.5)
	r.budget("a pass at level off", "clock readings", offPass/clock, 0.3)
	r.budget("a further receive queue", "clock readings", (twoQueues-alone)/clock, 1.3)
	r.budget("detection, all criteria", "cycles/pass", detect-pass, 8)
	r.budget("all but sizes, batches of 32", "cycles/packet", pass/32, 4)
	r.budget("packet sizes, a direction", "cycles/packet", (sized-alone)/64, 1.5)
	for _, w := range []struct {
		what   string
		want   perf.Want
		budget float64
	}{{"a scrape", perf.Want{}, 6}, {"a show of 1000 iterations and ms", perf.Want{Iterations: 1000, Millis: 1000}, 25}} {
		us, err := answerTime(ctx, w.want)
		if err != nil {
			return err
		}
		r.budget(w.what, "us of the loop", us, w.budget)
	}
	r.budget("memory of a recorder, without captures", "KiB", float64(unsafe.Sizeof(perf.Recorder{}))/1024, 512)
	r.note("A clock reading takes %.1f cycles here. Budgets that need the recorder's inside, such as a capture's, are measured by its benchmarks.", clock)
	return nil
}

// budget adds a row.
func (r *Report) budget(what, unit string, cost, budget float64) {
	if math.IsNaN(cost) {
		return
	}
	met := "yes"
	if !(cost <= budget) {
		met = "no"
	}
	r.Rows = append(r.Rows, Row{
		Labels:  []Parameter{{"what", what}, {"unit", unit}, {"met", met}},
		Figures: []Figure{exact("cost", "cost", cost), exact("budget", "budget", budget)},
	})
}

func selfRecorder(l perf.Level) (*perf.Recorder, error) {
	r, err := perf.New(perf.Config{Level: l, BatchSize: 64, Polling: perf.Polling{
		RxQueues: []perf.Queue{{Port: "a"}, {Port: "b"}}, TxQueues: []perf.Queue{{Port: "a"}}}})
	if err != nil {
		return nil, err
	}
	return r, r.Start()
}

// passes makes n passes as a forwarder makes them: one queue, one full batch, some hits.
func passes(r *perf.Recorder, n int) {
	for range n {
		r.Poll(0)
		r.Batch(32, 32)
		r.Count(perf.EMCHit, 32)
		r.Tx(32, 1)
		r.End()
	}
}

// answerTime returns the least time in us that a loop needs to answer a reader.
func answerTime(ctx context.Context, want perf.Want) (us float64, err error) {
	r, err := selfRecorder(perf.Detailed)
	if err != nil {
		return 0, err
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer r.Close()
		for {
			select {
			case <-stop:
				return
			default:
				passes(r, 64)
			}
		}
	}()
	defer func() { close(stop); <-ended }()
	// An answer is booked after it was given: the next snapshot tells.
	s := new(perf.Snapshot)
	var before perf.GapStats
	best := uint64(math.MaxUint64)
	for n := 0; n < 200; n++ {
		if err := r.Snapshot(ctx, want, s); err != nil {
			return 0, err
		}
		g := s.Gaps[history.Answering]
		if len(s.Iterations) < want.Iterations || len(s.Millis) < want.Millis {
			n = 0 // the histories are not full yet
		} else if n > 1 && g.Count > before.Count {
			best = min(best, g.Ticks-before.Ticks)
		}
		before = g
	}
	if best == math.MaxUint64 {
		return math.NaN(), nil
	}
	return tsc.Duration(best, r.Hz()).Seconds() * 1e6, nil
}
