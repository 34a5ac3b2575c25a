package perf

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/perf/tsc"
	"github.com/pmdperf/pmdperf/suspicious"
)

// Want says how much history a snapshot is to hold: at most the last
// history.Shown iterations and milliseconds. Sums and histograms are always there.
type Want struct {
	Iterations, Millis int
}

func (w Want) clip() Want {
	return Want{min(max(w.Iterations, 0), history.Shown), min(max(w.Millis, 0), history.Shown)}
}

func (w Want) covers(o Want) bool { return w.Iterations >= o.Iterations && w.Millis >= o.Millis }

// answerTime is how long an answer of a running loop may take without anything being
// wrong: the owner answers once a millisecond, and readers sleep between two looks.
const answerTime = 5 * time.Millisecond

// stallTimeout is how long an owner may leave a request unanswered before readers
// without a deadline give up and new ones fail at once. A thread that shares its
// core can be off it for tens of milliseconds.
const stallTimeout = time.Second

// stallKnown is when new readers fail at once: a little before the first one gives
// up, who posted its request a moment after its time began.
const stallKnown = stallTimeout * 9 / 10

// A StalledError says that a recorder's owner completed no pass in time.
type StalledError struct {
	Name string        // of the recorder
	For  time.Duration // for at least so long
}

// Unwrap makes errors.Is find context.DeadlineExceeded.
func (e *StalledError) Unwrap() error { return context.DeadlineExceeded }

// Error says which loop is stuck.
func (e *StalledError) Error() string {
	return fmt.Sprintf("%s: no iteration completed for %v", e.Name, e.For.Round(100*time.Microsecond))
}

// A request is an errand that a reader has for the owner. One at a time is under way.
type request struct {
	errand
	short bool // into had too little room
	done  atomic.Bool
}

// errand is what a reader asks for: any of a clear, a change of level or of what is
// suspicious, and a copy, in that order.
type errand struct {
	clear     bool
	suspicion *suspicious.Settings
	usual     uint64 // ticks; 0 to leave it
	setLevel  bool
	level     Level
	into      *Snapshot
	want      Want
}

// reader is the readers' half of a recorder. turn is taken by one at a time; it
// guards what has no lock of its own.
type reader struct {
	turn chan struct{}

	// The answer of the owner, which readers that came before it was asked for share.
	box     *Snapshot
	boxNum  uint64 // number of the request that it answers, 0 for none
	boxWant Want

	owed        *request  // not answered yet, after its reader gave up
	made        time.Time // origin of asked
	clearedTick uint64    // tick of the last clear, and its time
	cleared     time.Time

	asked   atomic.Int64 // when the unanswered request was posted, ns since made; 0 if none
	num     atomic.Uint64
	queues  atomic.Pointer[queueSet]
	polled  atomic.Pointer[[]suspicious.Polled]
	scratch request

	numQueues atomic.Uint32 // how many queues to make room for

	adaptive bool  // iterations are compared with what is usual
	usual    usual // what that is

	thread atomic.Int32 // kernel's number of the owner's thread
}

func (d *reader) init(r *Recorder) {
	d.turn = make(chan struct{}, 1)
	d.made = time.Now()
}

// Snapshot copies the recorder's state between two passes into s. The owner of a
// running loop is asked for it, and answers at the end of a pass, at most once a
// millisecond; readers who wait at the same time share an answer.
//
// Any goroutine may call it but the owner of a running loop, who would wait for
// itself. It returns a *StalledError if the owner completes no pass before ctx ends or,
// where ctx has no deadline, within a second; and at once if somebody else has been
// waiting for a second already. It returns ctx's error if ctx was cancelled, gave less
// than some milliseconds, or ended in a queue of readers. s is as it was then.
func (r *Recorder) Snapshot(ctx context.Context, want Want, s *Snapshot) error {
	want = want.clip()
	arrived := r.reader.num.Load()
	return r.inTurn(ctx, func(ctx context.Context) error {
		d := &r.reader
		if !d.serves(arrived, want) {
			d.boxNum = 0
			if err := r.fill(ctx, want); err != nil {
				return err
			}
			d.boxNum, d.boxWant = d.num.Load(), want
		}
		d.box.copyTo(s, want)
		return nil
	})
}

// serves reports whether the box has what a reader wants who came when arrived requests
// had been posted: an answer to a later one.
func (d *reader) serves(arrived uint64, want Want) bool {
	return d.boxNum > arrived && d.boxWant.covers(want)
}

// fill has the box filled with an answer of the owner.
func (r *Recorder) fill(ctx context.Context, want Want) error {
	d := &r.reader
	if d.box == nil {
		d.box = new(Snapshot)
	}
	for {
		// The owner may still owe an answer to an earlier reader, in the same box.
		if err := r.collect(ctx); err != nil {
			return err
		}
		d.box.room(want, int(d.numQueues.Load()), len(r.setup.Counters), len(r.setup.Timers))
		short, err := r.ask(ctx, errand{want: want, into: d.box})
		if err != nil {
			return err
		}
		if !short {
			break
		}
	}
	s := d.box
	s.settle()
	s.Name, s.Core, s.NUMA = r.setup.Name, r.setup.Core, r.setup.NUMA
	s.Hz = r.setup.hz
	s.Anchor = tsc.Take()
	s.State = r.State()
	if s.Since != d.clearedTick {
		// Once for every clear: by another pair of the clocks it would differ a little.
		d.clearedTick, d.cleared = s.Since, s.Time(s.Since)
	}
	s.Cleared = d.cleared
	for i, name := range r.setup.Counters {
		s.Counters[i].Name = name
	}
	for i, name := range r.setup.Timers {
		s.Timers[i].Name = name
	}
	return nil
}

// Clear sets all sums, maxima and histories to nothing; iteration numbers and queue
// usage go on. When it returns nil, every later snapshot counts from the clear. Any
// goroutine may call it; errors are those of Snapshot, and then nothing was cleared.
func (r *Recorder) Clear(ctx context.Context) error {
	return r.inTurn(ctx, func(ctx context.Context) error {
		_, err := r.ask(ctx, errand{clear: true})
		return err
	})
}

// SetLevel changes the level between two passes. Any goroutine may call it; errors
// are those of Snapshot, and then the level is as before.
func (r *Recorder) SetLevel(ctx context.Context, l Level) error {
	if l > Off {
		return fmt.Errorf("unknown %v: use Off, Basic or Detailed", l)
	}
	return r.inTurn(ctx, func(ctx context.Context) error {
		_, err := r.ask(ctx, errand{setLevel: true, level: l})
		return err
	})
}

// SetSuspicion changes what iterations are suspicious, between two passes. A
// neighborhood that is being collected ends with what there is. Any goroutine may call
// it; errors are what is wrong with the settings and those of Snapshot, and then the
// settings are as before.
//
// Thresholds of queue fill, upcalls, full batches need level Detailed.
func (r *Recorder) SetSuspicion(ctx context.Context, s suspicious.Settings) error {
	if err := s.Check(); err != nil {
		return err
	}
	return r.inTurn(ctx, func(ctx context.Context) error {
		_, err := r.ask(ctx, errand{suspicion: &s})
		if err == nil {
			r.reader.adaptive = s.On && s.Adaptive > 0
		}
		return err
	})
}

// TakeEvent returns the next suspicious iteration whose neighborhood is complete, or
// nil. The event is the caller's until ReleaseEvent, which has to follow before the
// next call. One goroutine at a time may call them, any; they never wait.
func (r *Recorder) TakeEvent() *suspicious.Event { return r.detector.Take() }

// ReleaseEvent gives back the event that TakeEvent returned.
func (r *Recorder) ReleaseEvent() { r.detector.Release() }

// State returns what the owner is doing. Any goroutine may call it.
func (r *Recorder) State() State {
	if s := State(r.state.Load()); s != copying {
		return s
	}
	return Parked
}

// inTurn calls f when it is this reader's turn.
func (r *Recorder) inTurn(ctx context.Context, f func(context.Context) error) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, stallTimeout)
		defer cancel()
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", r.setup.Name, err)
	}
	if since := r.unanswered(); since > stallKnown {
		return &StalledError{r.setup.Name, since}
	}
	select {
	case r.reader.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%s: waiting for other readers: %w", r.setup.Name, ctx.Err())
	}
	defer func() { <-r.reader.turn }()
	return f(ctx)
}

// unanswered returns how long a request has been waiting.
func (r *Recorder) unanswered() time.Duration {
	at := r.reader.asked.Load()
	// While the owner is parked readers answer themselves.
	if at == 0 || r.State() != Running {
		return 0
	}
	return time.Since(r.reader.made) - time.Duration(at)
}

// gaveUp returns why a reader whose request is not answered gives up: a loop that had
// no time to answer is not called stalled.
func (r *Recorder) gaveUp(ctx context.Context) error {
	since := r.unanswered()
	if ctx.Err() == context.Canceled || since < answerTime {
		return fmt.Errorf("%s: %w", r.setup.Name, ctx.Err())
	}
	return &StalledError{r.setup.Name, since}
}

// ask posts a request for the errand and waits until it is done; short is that of
// the request.
func (r *Recorder) ask(ctx context.Context, e errand) (short bool, err error) {
	d := &r.reader
	if err := r.collect(ctx); err != nil {
		return false, err
	}
	req := &d.scratch
	req.errand, req.short = e, false
	req.done.Store(false)
	d.post(r, req, max(1, int64(time.Since(d.made))))
	if r.wait(ctx, req) {
		return req.short, nil
	}
	err = r.gaveUp(ctx)
	if ctx.Err() == context.Canceled && r.request.CompareAndSwap(req, nil) {
		d.asked.Store(0)
		return false, err
	}
	if req.into == nil {
		if !r.request.CompareAndSwap(req, nil) {
			// The owner took it: it is doing it right now.
			for !req.done.Load() {
				time.Sleep(maxPause)
			}
			return false, nil
		}
		// What would change something must not happen later. A request that changes
		// nothing takes its place, so that one can tell when the loop goes on.
		req.errand = errand{}
		d.post(r, req, d.asked.Load())
	}
	d.owed = req
	return false, err
}

// collect waits for the answer to a request whose reader gave up, if there is one.
func (r *Recorder) collect(ctx context.Context) error {
	d := &r.reader
	if d.owed != nil && !r.wait(ctx, d.owed) {
		return r.gaveUp(ctx)
	}
	d.owed = nil
	return nil
}

// post posts a request that counts as asked at the given time, in ns since made.
func (d *reader) post(r *Recorder, req *request, at int64) {
	d.num.Add(1)
	d.asked.Store(at)
	r.request.Store(req)
}

// maxPause is the longest that a reader sleeps between two looks.
const maxPause = 200 * time.Microsecond

// wait waits until req is done and answers it itself while the owner is parked. It
// returns false when ctx ends first.
func (r *Recorder) wait(ctx context.Context, req *request) bool {
	pause := 10 * time.Microsecond
	for !req.done.Load() {
		if !r.answerParked() {
			if ctx.Err() != nil {
				return false
			}
			time.Sleep(pause)
			pause = min(2*pause, maxPause)
		}
	}
	return true
}

// answerIdle answers a request at the tick now while no pass is under way because the
// loop is, or is about to be, parked. Time at the one side of a change between off and
// on is booked as what it was.
func (r *Recorder) answerIdle(req *request, now uint64) {
	was := r.level
	r.answer(req, now, math.MaxInt)
	if (was == Off) != (r.level == Off) && r.started {
		kind := history.Reload
		if was == Off {
			kind = history.Off
		}
		r.gap(kind, now-r.start, now)
		r.record().Flags = r.record().Flags.WithGap(kind)
		r.start = now
	}
}

// answerParked answers the request in the owner's place if the owner is parked.
func (r *Recorder) answerParked() bool {
	s := r.state.Load()
	if s != uint32(Parked) && s != uint32(Closed) || !r.state.CompareAndSwap(s, uint32(copying)) {
		return false
	}
	// The owner may have answered before it parked.
	if req := r.request.Swap(nil); req != nil {
		r.answerIdle(req, max(r.clock(), r.start))
	}
	r.state.Store(s)
	return true
}

// room makes sure that s can be filled without allocation.
func (s *Snapshot) room(want Want, queues, counters, timers int) {
	s.Iterations = slices.Grow(s.Iterations[:0], want.Iterations)
	s.Millis = slices.Grow(s.Millis[:0], want.Millis)
	s.RxQueues = slices.Grow(s.RxQueues[:0], queues)
	s.TxQueues = slices.Grow(s.TxQueues[:0], queues)
	s.Usage = slices.Grow(s.Usage[:0], UsageIntervals)
	s.usage = slices.Grow(s.usage[:0], queues*UsageIntervals)
	s.Counters = slices.Grow(s.Counters[:0], counters)[:counters]
	s.Timers = slices.Grow(s.Timers[:0], timers)[:timers]
}

// settle does what the owner leaves to readers.
func (s *Snapshot) settle() {
	s.Cycles.Settle(cyclesBinner)
	s.CyclesPerPacket.Settle(cyclesPerPacketBinner)
}

// reset empties s but keeps the memory of its slices.
func (s *Snapshot) reset() {
	iterations, millis, rx, tx := s.Iterations[:0], s.Millis[:0], s.RxQueues[:0], s.TxQueues[:0]
	usage, queues := s.Usage[:0], s.usage[:0]
	*s = Snapshot{}
	s.Iterations, s.Millis, s.RxQueues, s.TxQueues = iterations, millis, rx, tx
	s.Usage, s.usage = usage, queues
}

// copyTo makes dst equal to s but for the history, of which it takes what is
// wanted.
func (s *Snapshot) copyTo(dst *Snapshot, want Want) {
	dst.room(want, max(len(s.RxQueues), len(s.TxQueues)), len(s.Counters), len(s.Timers))
	s.Reloads.CopyTo(&dst.Reloads)
	s.Cycles.CopyTo(&dst.Cycles)
	s.Packets.CopyTo(&dst.Packets)
	s.CyclesPerPacket.CopyTo(&dst.CyclesPerPacket)
	s.BatchPackets.CopyTo(&dst.BatchPackets)
	s.QueueFill.CopyTo(&dst.QueueFill)
	s.Upcalls.CopyTo(&dst.Upcalls)
	s.CyclesPerUpcall.CopyTo(&dst.CyclesPerUpcall)

	dst.Kind, dst.Name, dst.Core, dst.NUMA = s.Kind, s.Name, s.Core, s.NUMA
	dst.Level, dst.State, dst.Isolated, dst.MaxSleep = s.Level, s.State, s.Isolated, s.MaxSleep
	dst.Hz, dst.Anchor = s.Hz, s.Anchor
	dst.Since, dst.Until, dst.Now, dst.Cleared = s.Since, s.Until, s.Now, s.Cleared
	dst.Totals, dst.Gaps, dst.ClockBack, dst.Counts = s.Totals, s.Gaps, s.ClockBack, s.Counts
	copy(dst.Counters, s.Counters)
	copy(dst.Timers, s.Timers)
	dst.Suspicious, dst.Suspicion = s.Suspicious, s.Suspicion
	dst.Slowest, dst.SlowestIteration = s.Slowest, s.SlowestIteration

	dst.RxQueues = append(dst.RxQueues, s.RxQueues...)
	dst.TxQueues = append(dst.TxQueues, s.TxQueues...)
	dst.Gone = s.Gone
	for _, u := range s.Usage {
		first := len(dst.usage)
		dst.usage = append(dst.usage, u.Queues...)
		u.Queues = dst.usage[first:]
		dst.Usage = append(dst.Usage, u)
	}

	dst.NextIteration, dst.OpenMilli = s.NextIteration, s.OpenMilli
	dst.Iterations = append(dst.Iterations, last(s.Iterations, want.Iterations)...)
	dst.Millis = append(dst.Millis, last(s.Millis, want.Millis)...)
}

func last[T any](s []T, n int) []T { return s[max(0, len(s)-n):] }
