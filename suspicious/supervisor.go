package suspicious

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// A Source is where events come from, as a *perf.Recorder. It is used as the key of
// a map.
type Source interface {
	Name() string
	Core() int
	NUMA() int
	Hz() float64
	// Clock returns one instant as a tick and as wall-clock time.
	Clock() (ticks uint64, wall time.Time)
	// Polled returns the rx queues that iterations first to last polled.
	Polled(first, last uint64) []Polled
	// TakeEvent returns an event that is the caller's until ReleaseEvent, or nil.
	TakeEvent() *Event
	ReleaseEvent()
}

// A Sink gets every report, on the supervisor's goroutine. While it works no event is
// taken, and those for which no capture is free are only counted.
type Sink func(*Report)

// Options describe a supervisor. But for Sources, the zero value of every field is
// usable.
type Options struct {
	// Sources returns where events come from now. It is called at every look; one that
	// it no longer returns is looked at once more.
	Sources func() []Source
	// Sinks get the reports, one after the other.
	Sinks []Sink
	// Causes says why the iteration of a report took long, for Report.Causes; nil
	// leaves them empty. It runs on the supervisor's goroutine before the sinks do.
	Causes func(*Report) []Cause
	// Every is the time between two looks, 0 for 5 ms.
	Every time.Duration
	// PerMinute is how many reports of a PMD may be made a minute, and how many at once
	// after a quiet minute; 0 for 600, as in Open vSwitch, negative for any number.
	PerMinute int
}

// The defaults of Options. A recorder has 8 captures for the events of a look's
// time.
const (
	defaultEvery     = 5 * time.Millisecond
	defaultPerMinute = 600
)

// takenAtOnce is how many events of a source are taken before it is the others' turn.
const takenAtOnce = 64

// A Supervisor turns the events of detectors into reports. It looks for them by
// itself: no loop ever wakes it.
type Supervisor struct {
	options  Options
	watched  map[Source]*watched
	look     uint64 // counts looks
	sequence uint64
	taken    []*Report // memory of take

	reported, held atomic.Uint64
}

// watched is what a supervisor keeps of a source.
type watched struct {
	limiter limiter
	look    uint64 // in which it was there last
}

// NewSupervisor returns a supervisor that is to be Run.
func NewSupervisor(o Options) *Supervisor {
	if o.Every <= 0 {
		o.Every = defaultEvery
	}
	if o.PerMinute == 0 {
		o.PerMinute = defaultPerMinute
	}
	return &Supervisor{options: o, watched: make(map[Source]*watched)}
}

// Run reports events until ctx ends, and then once more what is there. To lose no
// event, close the recorders first. No two goroutines may run supervisors of the same
// source.
func (s *Supervisor) Run(ctx context.Context) {
	tick := time.NewTicker(s.options.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			for s.poll() {
			}
			return
		case <-tick.C:
			s.poll()
		}
	}
}

// Reported returns how many reports were made. Any goroutine may call it.
func (s *Supervisor) Reported() uint64 { return s.reported.Load() }

// HeldBack returns how many events the rate limit held back. Any goroutine may call
// it.
func (s *Supervisor) HeldBack() uint64 { return s.held.Load() }

// poll looks at all sources once. It returns whether there may be more.
func (s *Supervisor) poll() (more bool) {
	s.look++
	for _, src := range s.options.Sources() {
		w := s.watched[src]
		if w == nil {
			w = &watched{limiter: newLimiter(max(0, s.options.PerMinute))}
			s.watched[src] = w
		}
		w.look = s.look
		more = s.take(src, w) || more
	}
	for src, w := range s.watched {
		if w.look != s.look {
			for s.take(src, w) {
			}
			delete(s.watched, src)
		}
	}
	return more
}

// take reports the events of a source, oldest first, which is not the order of its
// captures. It returns whether there may be more.
func (s *Supervisor) take(src Source, w *watched) (more bool) {
	s.taken = s.taken[:0]
	more = true
	for range takenAtOnce {
		e := src.TakeEvent()
		if e == nil {
			more = false
			break
		}
		if pass, held := w.limiter.pass(time.Now()); pass {
			r := newReport(src, e)
			r.HeldBack = held
			s.taken = append(s.taken, r)
		} else {
			s.held.Add(1)
		}
		src.ReleaseEvent()
	}
	slices.SortFunc(s.taken, func(a, b *Report) int { return cmp.Compare(a.Iteration, b.Iteration) })
	for _, r := range s.taken {
		s.sequence++
		r.Sequence = s.sequence
		if s.options.Causes != nil {
			r.Causes = s.options.Causes(r)
		}
		for _, sink := range s.options.Sinks {
			sink(r)
		}
		s.reported.Add(1)
	}
	clear(s.taken)
	return more
}
