package suspicious

import (
	"cmp"
	"context"
	"slices"
	"sync"
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
	// TimerNames returns the names of timers by their number in a record's flags.
	TimerNames() []string
	// TakeEvent returns an event that is the caller's until ReleaseEvent, or nil.
	TakeEvent() *Event
	ReleaseEvent()
}

// An Adapter is a Source that learns what is usual (Limits.Adaptive).
type Adapter interface {
	// Adapt is called once a second, and not again before it returns. It may take long
	// where the loop is stuck.
	Adapt(context.Context) error
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
	// Causes says why the iteration of a report took long, for Report.Causes, the cause
	// that explains most first; nil leaves them empty. It runs on the supervisor's
	// goroutine before the sinks do, and not before the iteration is 10 ms old: the
	// kernel's counters move that late. It is also asked about merged iterations, as if
	// the report were about them, for Report.MergedCauses.
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

// settling is how long a report waits for its causes: a tick of the slowest kernel.
const settling = 10 * time.Millisecond

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
	waiting  []*Report // for their causes, in the order in which they were taken

	adapting sync.WaitGroup

	mu     sync.Mutex
	counts map[string]*ReportCounts // by the name of the PMD
}

// ReportCounts are what a supervisor did with the events of a PMD.
type ReportCounts struct {
	Reported uint64
	HeldBack uint64 // by the rate limit
	// Causes are how many reports have each kind as the cause that explains most. Their
	// sum is Reported where there are causes (Options.Causes), else they are zero.
	Causes [NumCauseKinds]uint64
}

// watched is what a supervisor keeps of a source.
type watched struct {
	limiter limiter
	look    uint64 // in which it was there last
	adapted time.Time
	adapts  atomic.Bool
}

// NewSupervisor returns a supervisor that is to be Run.
func NewSupervisor(o Options) *Supervisor {
	if o.Every <= 0 {
		o.Every = defaultEvery
	}
	if o.PerMinute == 0 {
		o.PerMinute = defaultPerMinute
	}
	return &Supervisor{options: o, watched: make(map[Source]*watched), counts: make(map[string]*ReportCounts)}
}

// Run reports events until ctx ends, and then once more what is there. To lose no
// event, close the recorders first. No two goroutines may run supervisors of the same
// source.
func (s *Supervisor) Run(ctx context.Context) {
	tick := time.NewTicker(s.options.Every)
	defer tick.Stop()
	defer s.adapting.Wait()
	for {
		select {
		case <-ctx.Done():
			for s.poll() {
			}
			if len(s.waiting) > 0 {
				time.Sleep(settling)
				s.settle(time.Now())
			}
			return
		case <-tick.C:
			s.poll()
			s.adapt(ctx)
		}
	}
}

// adaptEvery is how often sources learn what is usual.
const adaptEvery = time.Second

// adapt has the sources that can do it learn what is usual, each beside all else.
func (s *Supervisor) adapt(ctx context.Context) {
	now := time.Now()
	for src, w := range s.watched {
		a, ok := src.(Adapter)
		if !ok || now.Sub(w.adapted) < adaptEvery || !w.adapts.CompareAndSwap(false, true) {
			continue
		}
		w.adapted = now
		s.adapting.Go(func() {
			defer w.adapts.Store(false)
			_ = a.Adapt(ctx) // a loop that is stuck is the watchdog's; the next second it is tried again
		})
	}
}

// Reported returns how many reports were made. Any goroutine may call it.
func (s *Supervisor) Reported() uint64 { return s.total().Reported }

// HeldBack returns how many events the rate limit held back. Any goroutine may call
// it.
func (s *Supervisor) HeldBack() uint64 { return s.total().HeldBack }

// Counts returns what was done with the events of the PMD of that name, which may
// have gone since. Any goroutine may call it.
func (s *Supervisor) Counts(name string) ReportCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.counts[name]; c != nil {
		return *c
	}
	return ReportCounts{}
}

// total sums up the counts of all PMDs, without their causes.
func (s *Supervisor) total() (sum ReportCounts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.counts {
		sum.Reported += c.Reported
		sum.HeldBack += c.HeldBack
	}
	return sum
}

// count changes what is counted of a PMD.
func (s *Supervisor) count(name string, change func(*ReportCounts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts[name]
	if c == nil {
		c = new(ReportCounts)
		s.counts[name] = c
	}
	change(c)
}

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
	s.settle(time.Now())
	return more
}

// settle reports what has waited long enough.
func (s *Supervisor) settle(now time.Time) {
	n := 0
	for _, r := range s.waiting {
		if s.options.Causes != nil {
			if now.Sub(r.Anchor) < settling {
				break
			}
			s.explain(r)
		}
		n++
		s.sequence++
		r.Sequence = s.sequence
		for _, sink := range s.options.Sinks {
			sink(r)
		}
		s.count(r.Name, func(c *ReportCounts) {
			c.Reported++
			if len(r.Causes) > 0 && r.Causes[0].Kind < NumCauseKinds {
				c.Causes[max(0, r.Causes[0].Kind)]++
			}
		})
	}
	s.waiting = slices.Delete(s.waiting, 0, n)
}

// mergedExplained is of how many merged iterations of a report the causes are asked for.
const mergedExplained = 4

// explain asks for the causes.
func (s *Supervisor) explain(r *Report) {
	r.Causes = s.options.Causes(r)
	for _, m := range r.longestMerged(mergedExplained) {
		if r.MergedCauses == nil {
			r.MergedCauses = make(map[uint64][]Cause)
		}
		r.MergedCauses[m.Iteration] = s.options.Causes(r.merged(m))
	}
}

// take takes the events of a source, oldest first, which is not the order of its
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
			s.count(src.Name(), func(c *ReportCounts) { c.HeldBack++ })
		}
		src.ReleaseEvent()
	}
	slices.SortFunc(s.taken, func(a, b *Report) int { return cmp.Compare(a.Iteration, b.Iteration) })
	s.waiting = append(s.waiting, s.taken...)
	clear(s.taken)
	return more
}
