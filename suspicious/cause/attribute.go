package cause

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pmdperf/pmdperf/history"
)

// minShare is the share below which a cause is not worth a line.
const minShare = 0.02

// Attribute says why an iteration took long: the causes that the evidence shows, the
// one that explains most first. Their parts never add up to more than the iteration;
// what nothing explains is there as Unknown. The list is never empty. Evidence is that
// of the iteration's own time.
//
// It reads no clock and no file, and any goroutine may call it.
func Attribute(it Iteration, ev Evidence) []Cause {
	a := &attribution{it: &it, ev: &ev, total: int64(it.Duration())}
	a.rest = a.total
	if it.Gap && it.GapKind == history.Reload {
		a.add(Cause{Kind: Reload, How: Exact, Evidence: "the loop was parked between two passes"}, a.rest)
		return a.list()
	}
	if it.Gap && it.GapKind == history.Off {
		a.add(Cause{Kind: Unknown, How: Exact, Evidence: "recording was off"}, a.rest)
		return a.list()
	}
	switch {
	case ev.Switches:
		a.offCore()
	case ev.Thread != nil && ev.Thread.CPU >= 0:
		a.offByCounters()
	default:
		a.unseen = true
	}
	a.onCore()
	return a.list()
}

// attribution is one iteration being explained.
type attribution struct {
	it    *Iteration
	ev    *Evidence
	total int64 // ns
	rest  int64 // ns not explained yet

	// unseen says that no probe tells whether the thread ran.
	unseen bool

	causes []Cause
}

// add books up to part ns to a cause; several of the same kind and name are one.
func (a *attribution) add(c Cause, part int64) {
	part = min(part, a.rest)
	if part <= 0 {
		return
	}
	a.rest -= part
	for i := range a.causes {
		if b := &a.causes[i]; b.Kind == c.Kind && b.Name == c.Name && b.PID == c.PID {
			b.Part += time.Duration(part)
			b.How = min(b.How, c.How)
			return
		}
	}
	c.Part = time.Duration(part)
	a.causes = append(a.causes, c)
}

// list returns what is worth telling.
func (a *attribution) list() []Cause {
	a.add(Cause{Kind: Unknown, Evidence: a.blind()}, a.rest)
	var list []Cause
	for _, c := range a.causes {
		if a.total > 0 {
			c.Share = float64(c.Part) / float64(a.total)
		}
		if c.Share >= minShare {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(x, y Cause) int { return cmp.Compare(y.Part, x.Part) })
	if len(list) == 0 {
		list = []Cause{{Kind: Unknown, Evidence: "the iteration took no time"}}
	}
	return list
}

// blind says what could not be seen.
func (a *attribution) blind() string {
	if a.unseen {
		return "no probe tells whether the thread ran"
	}
	return "no counter moved"
}

// offCore books the time in which the thread was off its core, as recorded.
func (a *attribution) offCore() {
	for i := range a.ev.Spells {
		s := &a.ev.Spells[i]
		from, to := s.within(a.it.Start, a.it.End)
		if from >= to {
			continue
		}
		if s.runnable() {
			a.waited(s, from, to)
			continue
		}
		if s.Woken != 0 && s.Woken < to {
			woken := max(s.Woken, from)
			a.asleep(s, from, woken)
			a.waited(s, woken, to)
			continue
		}
		a.asleep(s, from, to)
	}
}

// throttled returns for how long the thread's cgroup was out of quota.
func (a *attribution) throttled() time.Duration {
	if a.ev.System == nil || a.ev.System.ThrottleCount <= 0 && a.ev.System.Throttled <= 0 {
		return 0
	}
	return max(a.ev.System.Throttled, 1)
}

// waited books a time in which the thread wanted its core.
func (a *attribution) waited(s *Spell, from, to int64) {
	quota := a.throttled()
	// A group without quota stays off the core for as long as the counter says.
	if quota >= time.Duration(to-from)*3/4 {
		c := Cause{Kind: Throttled, How: Sampled, Evidence: fmt.Sprintf("runnable, off its core, and its cgroup throttled for %v", round(quota))}
		a.add(c, to-from)
		return
	}
	if len(s.Ran) == 0 {
		a.add(Cause{Kind: Preempted, How: Exact, Evidence: "it left the core while it was runnable" + a.sawCall(s)}, to-from)
		return
	}
	for _, r := range s.Ran {
		part := min(r.To, to) - max(r.From, from)
		if part <= 0 {
			continue
		}
		if r.PID == 0 {
			a.idle(quota, part)
			continue
		}
		c := Cause{Kind: Preempted, Name: r.Name, PID: r.PID, How: Exact}
		c.Evidence = fmt.Sprintf("task %d had the core while the thread was runnable", r.PID)
		if r.Name == "" {
			c.Evidence = fmt.Sprintf("task %d, which is gone, had the core while the thread was runnable", r.PID)
		}
		a.add(c, part)
	}
}

func (a *attribution) sawCall(s *Spell) string {
	if s.Call == "sched_yield" {
		return ", by sched_yield"
	}
	return ""
}

// idle books a time in which the thread was runnable and yet its core idle.
func (a *attribution) idle(quota time.Duration, part int64) {
	if quota > 0 {
		a.add(Cause{Kind: Throttled, How: Sampled, Evidence: "runnable, its core idle, and its cgroup was throttled"}, part)
		return
	}
	a.add(Cause{Kind: Unknown, How: Inferred, Evidence: "runnable, and yet its core was idle"}, part)
}

// asleep books a time in which the thread didn't want its core.
func (a *attribution) asleep(s *Spell, from, to int64) {
	switch s.State {
	case "stopped", "traced", "frozen":
		a.add(stopped(s.State, Exact, "it left its core in that state"), to-from)
		return
	}
	how, call := Exact, s.Call
	if call == "" && !a.ev.States {
		how = Sampled
		for _, m := range a.ev.Samples {
			if m.Time < from || m.Time > to {
				continue
			}
			if name := sampledStop(m.State); name != "" {
				a.add(stopped(name, Sampled, "found in that state"), to-from)
				return
			}
			if m.Call != "" {
				call = m.Call
			}
		}
	}
	a.sleeping(call, how, from, to)
}

// sampledStop returns how a thread in a state of ps is stopped.
func sampledStop(state string) string {
	switch state {
	case "T":
		return "stopped"
	case "t":
		return "traced"
	}
	return ""
}

func stopped(state string, how Exactness, evidence string) Cause {
	name := map[string]string{"stopped": "by a signal", "traced": "by a debugger", "frozen": "by a freezer"}[state]
	return Cause{Kind: Stopped, Name: name, How: how, Evidence: evidence}
}

// sleeping books a time asleep in a system call, "" if it is not known in which.
func (a *attribution) sleeping(call string, how Exactness, from, to int64) {
	part := to - from
	switch {
	case call == "" && a.ev.Go.collecting():
		// First, as a collection stops the reader too.
		a.add(a.runtime(Inferred, "it slept while a collection was under way"), part)
	case call == "" && a.reader(from, to):
		a.add(stopped("stopped", Inferred, "the thread slept, and all others of the process did nothing just then"), part)
	case call == "":
		a.sleptOr(Cause{Kind: Blocked, How: Inferred, Evidence: "it slept in the kernel; no sample shows in which call"}, part)
	case call == "none" && a.ev.Thread != nil && a.ev.Thread.Major > 0:
		a.add(Cause{Kind: Faults, How: Sampled, Evidence: "it slept outside of any system call; faults that waited for a disk were counted"}, part)
	case call == "none":
		a.add(Cause{Kind: Unknown, How: how, Evidence: "it slept in the kernel outside of any system call"}, part)
	case call == "futex" && a.ev.Own:
		a.add(a.runtime(how, "its thread slept in futex"), part)
	case strings.HasSuffix(call, "nanosleep"):
		a.sleptOr(blocked(call, how), part)
	default:
		a.add(blocked(call, how), part)
	}
}

// sleptOr books up to what the loop says it slept as that, and the rest as c.
func (a *attribution) sleptOr(c Cause, part int64) {
	own := min(a.it.ticks(a.it.Record.Sleep), part)
	for _, b := range a.causes {
		if b.Kind == Slept {
			own = min(own, a.it.ticks(a.it.Record.Sleep)-int64(b.Part))
		}
	}
	if own > 0 {
		a.add(Cause{Kind: Slept, How: Exact, Evidence: "the loop recorded a sleep"}, own)
		part -= own
	}
	a.add(c, part)
}

func blocked(call string, how Exactness) Cause {
	evidence := "it left its core in that call"
	if how < Exact {
		evidence = "it was found in that call"
	}
	return Cause{Kind: Blocked, Name: call, How: how, Evidence: evidence}
}

// reader reports whether the reader of the probes, a thread of the same process, was
// silent all the while, and for about as long without wanting for a core.
func (a *attribution) reader(from, to int64) bool {
	const least, slack = int64(5 * readEvery), int64(3 * readEvery)
	begun, done := a.ev.SilentFrom, a.ev.SilentFrom+int64(a.ev.Silent)
	return a.ev.Own && to-from >= least && begun <= from+slack && done >= to-slack &&
		int64(a.ev.Silent-a.ev.SilentWait) >= (to-from)*3/4
}

// runtime returns the cause of a park, with the occasion that the runtime's metrics
// name.
func (a *attribution) runtime(how Exactness, evidence string) Cause {
	c := Cause{Kind: Runtime, How: how}
	g := a.ev.Go
	switch {
	case g == nil:
		c.Evidence = evidence
		return c
	case g.Pauses > 0 && g.Cycles == 0 && !g.Marking:
		c.Name = "garbage collection, stop at its start"
	case g.Pauses > 0 && g.Cycles > 0 && g.Marking && g.Pauses == 1:
		c.Name = "garbage collection, stop at its end"
	case g.Pauses > 0:
		c.Name = "garbage collection, stop at its start or end"
	case g.collecting():
		c.Name = "garbage collection, marking"
	case g.Others > 0:
		c.Name = "stop of the world, not for a collection"
	default:
		c.Name = "scheduler"
	}
	c.Evidence = fmt.Sprintf("%s; within %v %d collections ended, the world stopped %d times for one and %d times for something else",
		evidence, round(g.Over), g.Cycles, g.Pauses, g.Others)
	return c
}

// offByCounters books the time off the core where only sums are known.
func (a *attribution) offByCounters() {
	t := a.ev.Thread
	off := min(int64(t.Over-t.CPU), a.total)
	wait := int64(max(t.Wait, 0))
	// Readings are not taken all at once.
	if off < a.total/20 {
		return
	}
	if apart := int64(t.Over) - a.total; a.wide(t.Over) {
		// Much of that may have been before or after: only what can't have been is sure.
		off, wait = max(int64(t.Over-t.CPU)-apart, 0), max(wait-apart, 0)
		ran := max(int64(t.CPU)-apart, 0)
		defer a.add(Cause{Kind: Unknown, Evidence: fmt.Sprintf("the readings are %v apart, too much to tell", round(t.Over))}, a.total-off-ran)
	}
	wait = min(wait, off)
	if wait > 0 {
		if quota := a.throttled(); quota >= time.Duration(wait)*3/4 {
			a.add(Cause{Kind: Throttled, How: Inferred, Evidence: fmt.Sprintf("it waited for a core, and its cgroup was throttled for %v", round(quota))}, wait)
		} else {
			a.add(Cause{Kind: Preempted, How: Inferred, Evidence: fmt.Sprintf("within %v it was runnable and waited for %v", round(t.Over), round(t.Wait))}, wait)
		}
	}
	left := off - wait
	if left < a.total/20 {
		return
	}
	if quota := a.throttled(); quota >= time.Duration(left)*3/4 {
		a.add(Cause{Kind: Throttled, How: Inferred, Evidence: fmt.Sprintf("it didn't run, and its cgroup was throttled for %v", round(quota))}, left)
		return
	}
	var call string
	for _, m := range a.ev.Samples {
		if name := sampledStop(m.State); name != "" {
			a.add(stopped(name, Sampled, "found in that state"), left)
			return
		}
		if m.Call != "" {
			call = m.Call
		}
	}
	if call == "" && t.Wait < 0 {
		a.add(Cause{Kind: Unknown, Evidence: "it was off its core; nothing tells why"}, left)
		return
	}
	// Where within the iteration it slept is not known: when the reader was silent, say.
	from := min(max(a.ev.SilentFrom, a.it.Start), a.it.End-left)
	a.sleeping(call, Sampled, from, from+left)
}

// onCore books the time in which the thread ran, as far as is known.
func (a *attribution) onCore() {
	if a.unseen {
		a.upcalls()
		return
	}
	a.interrupts()
	a.pauses()
	a.steal()
	a.faults()
	a.upcalls()
	a.work()
}

// pauses books the time in which the core, though busy, got none of its timer
// interrupts. Nothing in the machine does that for long but the kernel itself, with
// interrupts off. A loop that began or ended the iteration in between was not paused:
// a host that is busy may be late with timers alone.
func (a *attribution) pauses() {
	const slack = int64(50 * time.Microsecond)
	for _, p := range a.ev.Pauses {
		from, to := max(p.From, a.it.Start), min(p.To, a.it.End)
		if p.From < a.it.Start-slack || p.To > a.it.End+slack {
			continue
		}
		part := to - from
		for i := range a.ev.Spells {
			if out, in := a.ev.Spells[i].within(from, to); in > out {
				part -= in - out
			}
		}
		a.add(Cause{Kind: Hypervisor, Name: "pause", How: Sampled, Evidence: "the thread had its core, and the timer interrupts due didn't come"}, part)
	}
}

// steal books what the hypervisor took without a trace but the thread's CPU time, from
// which the kernel leaves that out.
func (a *attribution) steal() {
	s := a.ev.System
	moved := s != nil && s.Steal > 0
	part, ok := a.missing()
	switch {
	case ok:
		c := Cause{Kind: Hypervisor, Name: "steal", How: Inferred}
		c.Evidence = fmt.Sprintf("within %v it was on its core for %v, and its CPU time lacks %v of that",
			round(a.ev.Thread.Over), round(a.ev.Thread.Over-a.ev.Thread.Off), round(part))
		switch {
		case moved:
			c.How = Sampled
			c.Evidence += fmt.Sprintf("; the core's steal grew by %v", s.Steal)
		case !a.ev.Timed:
			// Some kernels leave interrupts out too.
			c.Kind, c.Name = Unknown, ""
			c.Evidence += ": steal or interrupts"
		}
		if a.wide(a.ev.Thread.Over) {
			c.How = Inferred
		}
		a.add(c, a.share(int64(part), a.ev.Thread.Over))
	case moved && !a.ev.exactCPU():
		// The counter moves in steps of 10 ms.
		c := Cause{Kind: Hypervisor, Name: "steal", How: Inferred, Evidence: fmt.Sprintf("within %v the core's steal grew by %v", round(s.Over), s.Steal)}
		a.add(c, int64(float64(s.Steal)*min(1, float64(a.total)/float64(max(s.Over, 1)))))
	}
}

// wide reports whether two readings are so far apart that what lies between them need
// not be the iteration's.
func (a *attribution) wide(over time.Duration) bool { return int64(over) > 3*a.total }

// share returns the iteration's part of a sum between two readings: all of it, as the
// iteration is what was slow, unless they are far apart.
func (a *attribution) share(sum int64, over time.Duration) int64 {
	if !a.wide(over) {
		return sum
	}
	return int64(float64(sum) * float64(a.total) / float64(over))
}

// missing returns what the thread's CPU time lacks to the time that it had its core.
func (a *attribution) missing() (part time.Duration, ok bool) {
	if !a.ev.exactCPU() {
		return 0, false
	}
	t := a.ev.Thread
	part = t.Over - t.Off - t.CPU
	for _, c := range a.causes {
		if c.Kind == Interrupts || c.Kind == Hypervisor {
			part -= c.Part // some kernels leave them out too
		}
	}
	// The readings take some time themselves.
	return part, part > 50*time.Microsecond && part > time.Duration(a.total)/20
}

// interrupts books the interrupts that came while the thread was on its core.
func (a *attribution) interrupts() {
	if a.ev.Timed {
		for _, i := range a.ev.Interrupts {
			part := min(i.To, a.it.End) - max(i.From, a.it.Start)
			if part <= 0 || a.away(i.From) {
				continue
			}
			a.add(Cause{Kind: Interrupts, Name: i.Name, How: Exact, Evidence: "timed at its entry and exit"}, part)
		}
		return
	}
	// One tick in an interrupt is chance.
	if s := a.ev.System; s != nil && s.Interrupt >= 20*time.Millisecond {
		part := float64(s.Interrupt) * min(1, float64(a.total)/float64(max(s.Over, 1)))
		c := Cause{Kind: Interrupts, How: Inferred, Evidence: fmt.Sprintf("within %v the core's tick found it in interrupts for %v", round(s.Over), s.Interrupt)}
		if len(s.Lines) > 0 {
			c.Name = s.Lines[0].Name
			c.Evidence += fmt.Sprintf("; most were %s, %d within %v", s.Lines[0].Name, s.Lines[0].N, round(s.LinesOver))
		}
		a.add(c, int64(part))
	}
}

// away reports whether the thread was off its core.
func (a *attribution) away(t int64) bool {
	return slices.ContainsFunc(a.ev.Spells, func(s Spell) bool { return s.Out <= t && (s.In == 0 || t < s.In) })
}

// faults books page faults at the price that one had.
func (a *attribution) faults() {
	t := a.ev.Thread
	if t == nil || t.Faults <= 0 || a.ev.FaultPrice <= 0 {
		return
	}
	c := Cause{Kind: Faults, How: Inferred, Evidence: fmt.Sprintf("%d page faults within %v, of about %v each", t.Faults, round(t.Over), round(a.ev.FaultPrice))}
	a.add(c, t.Faults*int64(a.ev.FaultPrice))
}

// upcalls books what the loop measured in upcalls.
func (a *attribution) upcalls() {
	r := &a.it.Record
	if a.it.Gap || r.Upcalls == 0 || r.UpcallCycles == 0 {
		return
	}
	how := Exact
	if len(a.causes) > 0 {
		how = Inferred // what else there was may have been within them
	}
	part := a.it.ticks(r.UpcallCycles)
	a.add(Cause{Kind: Upcalls, Name: plural(int64(r.Upcalls), "upcall"), How: how, Evidence: fmt.Sprintf("the loop timed them: %v", round(time.Duration(part)))}, part)
}

// work books the rest to the loop's own code.
func (a *attribution) work() {
	var name string
	r := &a.it.Record
	switch {
	case a.it.Gap:
		name = "the recorder's " + a.it.GapKind.String()
	case a.timer() != "":
		name = "timer " + a.timer()
	case a.it.Queue != "":
		name = fmt.Sprintf("queue %s, %s", a.it.Queue, plural(int64(r.Rx), "packet"))
	default:
		if q, ok := r.Flags.Queue(); ok {
			name = fmt.Sprintf("queue %d, %s", q, plural(int64(r.Rx), "packet"))
		} else if r.Rx > 0 {
			name = plural(int64(r.Rx), "packet")
		}
	}
	c := Cause{Kind: Work, Name: name, How: Inferred}
	switch {
	case a.ev.Timed && a.ev.Ticking && !a.stolen():
		c.How, c.Evidence = Exact, "it had its core; the interrupts that it got are accounted for"
	case a.ev.Timed:
		c.Evidence = "it had its core; whether the machine stood still for some of it can't be told"
	case a.ev.Switches:
		c.Evidence = "it had its core; interrupts are not timed"
	default:
		c.Evidence = fmt.Sprintf("within %v it ran for %v; interrupts are not timed", round(a.ev.Thread.Over), round(a.ev.Thread.CPU))
	}
	a.add(c, a.rest)
}

// stolen reports whether the hypervisor had some of the time, more or less.
func (a *attribution) stolen() bool {
	return slices.ContainsFunc(a.causes, func(c Cause) bool { return c.Kind == Hypervisor })
}

// timer returns the name of the timer that covers most of what is left.
func (a *attribution) timer() string {
	if len(a.it.Timers) == 0 {
		return ""
	}
	most := slices.MaxFunc(a.it.Timers, func(x, y Timer) int { return cmp.Compare(x.Cycles, y.Cycles) })
	if a.it.ticks(most.Cycles) < a.rest/2 {
		return ""
	}
	return most.Name
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
