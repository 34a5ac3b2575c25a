package cause

import "slices"

// eventKind is what happened to the watched thread or its core.
type eventKind uint32

const (
	evOut   eventKind = 1 + iota // the thread left its core; pid is who runs next
	evIn                         // it is back
	evOther                      // meanwhile, pid runs next
	evWake                       // it is runnable again
	evIRQ                        // an interrupt of the core ended
	evTick                       // a timer interrupt of the core ended
	evLost                       // an unknown number of events is missing here
)

// event is one record of a source of context switches.
type event struct {
	time  int64
	kind  eventKind
	pid   int // thread id, -1 unknown
	comm  string
	state uint32 // of the thread that left, as the kernel numbers it; kind of an interrupt
	call  int    // number of the system call it was in, noCall or unknownCall
	span  int64  // ns, of an interrupt
}

const (
	noCall      = -1 // in no system call
	unknownCall = -2
)

// States of a task in the kernel's include/linux/sched.h.
const (
	taskRunning         = 0
	taskInterruptible   = 1
	taskUninterruptible = 2
	taskStopped         = 4
	taskTraced          = 8
	taskFrozen          = 0x8000

	// taskAsleep stands for not running, which is all that some sources tell.
	taskAsleep = 1 << 30
)

// stateName returns what a state means, "" for asleep in a way not known.
func stateName(s uint32) string {
	switch {
	case s == taskRunning:
		return "runnable"
	case s&taskStopped != 0:
		return "stopped"
	case s&taskTraced != 0:
		return "traced"
	case s&taskFrozen != 0:
		return "frozen"
	case s&taskUninterruptible != 0:
		return "uninterruptible"
	case s&taskInterruptible != 0:
		return "sleeping"
	default:
		return ""
	}
}

// A Spell is a time in which the thread was not on its core. Times are CLOCK_MONOTONIC,
// in ns.
type Spell struct {
	Out   int64 `json:"out"`
	In    int64 `json:"in"`              // 0 while it lasts
	Woken int64 `json:"woken,omitempty"` // when it was runnable again, 0 if not known

	// State is what the thread was as it left: "runnable" (so somebody took the core),
	// "sleeping", "uninterruptible", "stopped", "traced", "frozen" or, not known but not
	// runnable, "".
	State string `json:"state,omitempty"`

	// Call is the system call in which it slept: "" if not known, "none" if in none.
	Call string `json:"call,omitempty"`

	// Ran is who had the core, in order of time, where that is known. More says that
	// the list ends early.
	Ran  []Ran `json:"ran,omitempty"`
	More bool  `json:"more,omitempty"`
}

// Ran is a task that had the core from From to To.
type Ran struct {
	From int64  `json:"from"`
	To   int64  `json:"to"`
	PID  int    `json:"pid"` // thread id, 0 for the idle task
	Name string `json:"name"`
}

// runnable reports whether the thread wanted to go on as it left.
func (s *Spell) runnable() bool { return s.State == "runnable" }

// within returns the part of the spell between from and to; it ends before it begins if
// there is none.
func (s *Spell) within(from, to int64) (out, in int64) {
	if s.In != 0 {
		to = min(to, s.In)
	}
	return max(s.Out, from), to
}

// An Interrupt is a time in which an interrupt had the core.
type Interrupt struct {
	From int64  `json:"from"`
	To   int64  `json:"to"`
	Name string `json:"name"`
}

// How much is kept. At a thousand switches a second that is seconds.
const (
	maxSpells = 2048
	maxIRQs   = 2048
	maxLost   = 16
	maxTicks  = 2048
)

// span is a stretch of time, in ns.
type span struct{ from, to int64 }

// switches joins events to spells. Its methods need a lock of the caller's.
type switches struct {
	begun  int64 // since when there are events
	spells ring[Spell]
	irqs   ring[Interrupt]
	lost   ring[span]
	ticks  ring[int64]
	gaps   []int64 // memory of pauses
	open   *Spell  // the spell under way
	last   int64   // time of the last event
	at     int64   // when the thread was last seen leaving or coming
	miss   bool    // events were lost after last
	others int

	callName func(int) string
}

func newSwitches(begun int64, callName func(int) string) *switches {
	return &switches{
		begun: begun, last: begun, at: begun, callName: callName,
		spells: ring[Spell]{size: maxSpells}, irqs: ring[Interrupt]{size: maxIRQs}, lost: ring[span]{size: maxLost},
		ticks: ring[int64]{size: maxTicks},
	}
}

// add takes the next event. Events of two cores may be a little out of order.
func (w *switches) add(e event) {
	if e.kind == evLost {
		w.miss = true
		w.open = nil // whatever it was, its end may be lost
		return
	}
	if w.miss {
		w.lost.push(span{w.last, e.time})
		w.miss = false
	}
	w.last = max(w.last, e.time)
	switch e.kind {
	case evOut:
		w.unended(e.time)
		w.at, w.others = e.time, 0
		w.open = &Spell{Out: e.time, State: stateName(e.state), Call: w.callName(e.call)}
		w.run(e)
	case evOther:
		w.run(e)
	case evWake:
		// A thread that is woken as it is about to sleep, or again, stays as it is.
		if w.open != nil && w.open.Woken == 0 && e.time >= w.open.Out {
			w.open.Woken = e.time
		}
	case evIn:
		if s := w.open; s != nil {
			s.In = e.time
			s.end(e.time)
			w.spells.push(*s)
		} else {
			w.lost.push(span{w.at, e.time}) // it must have left
		}
		w.at, w.open = e.time, nil
	case evTick:
		w.ticks.push(e.time - e.span)
		w.irqs.push(Interrupt{e.time - e.span, e.time, e.comm})
	case evIRQ:
		w.irqs.push(Interrupt{e.time - e.span, e.time, e.comm})
	}
}

// unended ends the spell under way though its end is missing: the thread must have come
// back between the last that is known of the spell and now.
func (w *switches) unended(now int64) {
	s := w.open
	if s == nil {
		return
	}
	known := s.Out
	if n := len(s.Ran); n > 0 && s.Ran[n-1].To == 0 {
		known = max(known, s.Ran[n-1].From)
		s.Ran = s.Ran[:n-1]
	}
	w.lost.push(span{known, now})
	if known > s.Out {
		s.In = known
		w.spells.push(*s)
	}
}

// run notes who has the core now.
func (w *switches) run(e event) {
	s := w.open
	if s == nil || e.pid < 0 {
		return
	}
	s.end(e.time)
	w.others++
	if w.others > maxRan {
		s.More = true
		return
	}
	name := e.comm
	if e.pid == 0 {
		name = "idle"
	}
	s.Ran = append(s.Ran, Ran{From: e.time, PID: e.pid, Name: name})
}

// maxRan bounds the list of a spell.
const maxRan = 256

// end closes the entry of who ran last.
func (s *Spell) end(now int64) {
	if n := len(s.Ran); n > 0 && s.Ran[n-1].To == 0 {
		s.Ran[n-1].To = now
	}
}

// between returns the spells and interrupts that touch a stretch of time, the gaps in it
// from which events are missing, and whether more of it than these gaps is missing.
func (w *switches) between(from, to int64) (spells []Spell, irqs []Interrupt, gaps []Gap, complete bool) {
	complete = from >= w.begun && !w.miss
	for l := range w.lost.all() {
		if l.from < to && l.to > from {
			gaps = append(gaps, Gap{l.from, l.to})
		}
	}
	if oldest, full := w.spells.oldest(); full && oldest.In > from {
		complete = false
	}
	for s := range w.spells.all() {
		if s.Out < to && s.In > from {
			spells = append(spells, s)
		}
	}
	if w.open != nil && w.open.Out < to {
		s := *w.open
		s.Ran = append([]Ran(nil), s.Ran...)
		s.end(max(to, s.Out))
		spells = append(spells, s)
	}
	for i := range w.irqs.all() {
		if i.From < to && i.To > from {
			irqs = append(irqs, i)
		}
	}
	return spells, irqs, gaps, complete
}

// A Gap is a time of which not everything was recorded.
type Gap struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// pauses returns the stretches around a time in which the core's timer interrupts were
// due and didn't come, each without the period that is usual, and false if they don't come
// at regular times. A core that is busy gets them (unless the kernel was told to spare
// it), an idle one doesn't.
func (w *switches) pauses(from, to int64) (list []Pause, ok bool) {
	const enough = 50
	gaps := w.gaps[:0]
	last := int64(0)
	for t := range w.ticks.all() {
		if last != 0 {
			gaps = append(gaps, t-last)
		}
		last = t
	}
	w.gaps = gaps
	if len(gaps) < enough {
		return nil, false
	}
	slices.Sort(gaps)
	period := gaps[len(gaps)/2]
	if gaps[len(gaps)*3/4] > period*5/4 {
		return nil, false
	}
	last = 0
	for t := range w.ticks.all() {
		// The first tick after a pause is late, that is all: those missed don't follow.
		if last != 0 && t-last > 2*period && last < to && t > from {
			list = append(list, Pause{last + period, t, int((t-last)/period) - 1})
		}
		last = t
	}
	return list, true
}

// A Pause is a time in which a busy core got no timer interrupt, though it was due.
type Pause struct {
	From   int64 `json:"from"`
	To     int64 `json:"to"`
	Missed int   `json:"missed"` // how many didn't come
}
