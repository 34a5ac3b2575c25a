package explain

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/cause"
)

// An Explainer keeps the probes of loops. Any goroutine may use it, but no loop's.
type Explainer struct {
	options cause.Options
	opening sync.WaitGroup

	mu     sync.Mutex // guards what follows, not what probes do
	closed bool
	loops  map[string]*loop // by name
}

// loop is one that is watched. Its probes are there when ready is closed.
type loop struct {
	name      string
	tid, core int
	ready     chan struct{}
	since     atomic.Int64  // when the probes were open, CLOCK_MONOTONIC; until then never
	probes    *cause.Probes // nil if err is not
	err       error
}

// A Status says which probes a loop has, or why none.
type Status struct {
	Name   string // of the loop
	Probes []cause.Status
	Err    error
}

// New returns an explainer that is to be closed.
func New(o cause.Options) *Explainer {
	return &Explainer{options: o, loops: make(map[string]*loop)}
}

// Watch opens the probes of the loop of that name, whose thread is tid, the only one on
// core. It does not wait for them, which takes a tenth of a second, and does nothing
// where the loop has them already or tid is 0, so that it may be called again and again.
// A loop that has another thread than before gets new probes.
func (e *Explainer) Watch(name string, tid, core int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.loops[name]
	if tid == 0 || e.closed || old != nil && old.tid == tid {
		return
	}
	l := &loop{name: name, tid: tid, core: core, ready: make(chan struct{})}
	l.since.Store(math.MaxInt64)
	e.loops[name] = l
	e.opening.Go(func() {
		if old != nil {
			old.close()
		}
		l.probes, l.err = cause.Open(tid, core, e.options)
		l.since.Store(monotonic())
		close(l.ready)
	})
}

// Unwatch closes the probes of the loop of that name, which ended or is about to. It
// does not wait for that.
func (e *Explainer) Unwatch(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.loops[name]; l != nil && !e.closed {
		delete(e.loops, name)
		e.opening.Go(func() { _ = l.close() }) // there is nobody to be told
	}
}

// close closes the probes once they are open.
func (l *loop) close() error {
	<-l.ready
	if l.err != nil {
		return nil
	}
	return l.probes.Close()
}

// open returns the probes if they are open.
func (l *loop) open() *cause.Probes {
	select {
	case <-l.ready:
		return l.probes
	default:
		return nil
	}
}

// Status waits for the probes that are being opened and says which there are, in the
// order of the loops' names.
func (e *Explainer) Status() []Status {
	e.mu.Lock()
	var loops []*loop
	for _, l := range e.loops {
		loops = append(loops, l)
	}
	e.mu.Unlock()
	slices.SortFunc(loops, func(a, b *loop) int { return cmp.Compare(a.name, b.name) })
	var all []Status
	for _, l := range loops {
		<-l.ready
		s := Status{Name: l.name, Err: l.err}
		if l.err == nil {
			s.Probes = l.probes.Report()
		}
		all = append(all, s)
	}
	return all
}

// Causes says why the iteration of a report took long; it is for suspicious.Options. The
// list is never empty. A report that was made more than two seconds ago is too old for
// most probes.
func (e *Explainer) Causes(r *suspicious.Report) []suspicious.Cause {
	it := iteration(r, monotonicAt(r.Anchor))
	ev := cause.Evidence{From: it.Start, To: it.End}
	e.mu.Lock()
	defer e.mu.Unlock() // no probes are closed meanwhile
	l := e.loops[r.Name]
	if l != nil {
		if p := l.open(); p != nil {
			ev = p.Between(it.Start, it.End)
		}
	}
	causes := cause.Attribute(it, ev)
	if l != nil && it.Start < l.since.Load() {
		for i := range causes {
			if causes[i].Kind == cause.Unknown {
				causes[i].Evidence = "the probes of its thread were not open yet"
			}
		}
	}
	return causes
}

// Examine fills in what the thread of a stuck loop is doing in the kernel, and where in
// its Go code it is; it is for suspicious.Watchdog. It stops nothing and sends no signal:
// the loop doesn't notice, nor do others. It takes some 30 ms.
func (e *Explainer) Examine(s *suspicious.Stall) {
	sample, tid, ok := e.sample(s.Name)
	if !ok {
		return
	}
	s.Doing = doing(sample)
	stack, err := goStack(tid)
	if err != nil {
		s.Doing += fmt.Sprintf(" (no stack: %v)", err)
		return
	}
	s.Stack = stack
}

func (e *Explainer) sample(name string) (s cause.Sample, tid int, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.loops[name]; l != nil {
		if p := l.open(); p != nil {
			return p.Sample(), l.tid, true
		}
	}
	return s, 0, false
}

// doing puts into words what a thread was found doing.
func doing(s cause.Sample) string {
	var text string
	switch s.State {
	case "R":
		return "running, or waiting for its core"
	case "T":
		return "stopped by a signal"
	case "t":
		return "stopped by a debugger"
	case "S":
		text = "asleep"
	case "D":
		text = "in uninterruptible sleep"
	case "":
		text = "in a state that is not known"
	default:
		text = "in state " + s.State
	}
	if s.Call != "" && s.Call != "none" {
		text += " in system call " + s.Call
	}
	if s.Wchan != "" {
		text += ", in the kernel's " + s.Wchan
	}
	return text
}

// Close closes all probes. What comes later is explained by what the loop recorded
// alone.
func (e *Explainer) Close() error {
	e.mu.Lock()
	e.closed = true
	loops := e.loops
	e.loops = nil
	e.mu.Unlock()
	e.opening.Wait()
	var errs []error
	for _, l := range loops {
		if err := l.close(); err != nil {
			errs = append(errs, fmt.Errorf("probes of %s: %w", l.name, err))
		}
	}
	return errors.Join(errs...)
}

// monotonicAt returns CLOCK_MONOTONIC, in ns, at the time t.
func monotonicAt(t time.Time) int64 { return monotonic() - int64(time.Since(t)) }

// iteration returns what took long in a report: its iteration, or the gap before it
// where that is among the reasons and took longer. anchor is CLOCK_MONOTONIC at the
// report's anchor.
func iteration(r *suspicious.Report, anchor int64) cause.Iteration {
	rec := r.Culprit()
	ns := func(ticks uint64) int64 { return int64(math.Round(float64(ticks) / r.Hz * 1e9)) }
	at := func(tick uint64) int64 {
		if tick >= r.AnchorTicks {
			return anchor + ns(tick-r.AnchorTicks)
		}
		return anchor - ns(r.AnchorTicks-tick)
	}
	it := cause.Iteration{Start: at(rec.Start()), End: at(rec.End), Record: rec, Hz: uint64(math.Round(r.Hz))}
	if q, ok := r.SlowestQueue(r.Iteration); ok {
		it.Queue = fmt.Sprintf("%s:%d", q.Port, q.ID)
	}
	if name, ticks := r.SlowestTimer(); name != "" {
		it.Timers = []cause.Timer{{Name: name, Cycles: ticks}}
	}
	if gap := r.Values[suspicious.Gap]; r.Reasons.Has(suspicious.Gap) && gap > rec.Cycles+rec.Sleep {
		it.Gap, it.GapKind = true, gapKind(rec.Flags)
		it.Start, it.End = at(rec.Start()-min(gap, rec.Start())), it.Start
	}
	return it
}

// gapKind returns the kind that, of those that lie between two passes, takes longest.
func gapKind(f history.Flags) history.Gap {
	for _, g := range []history.Gap{history.Reload, history.Off, history.Answering} {
		if f.After(g) {
			return g
		}
	}
	return history.Accounting
}
