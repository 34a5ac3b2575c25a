package cause

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/internal/human"
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
	a := &attribution{it: &it, ev: &ev, total: int64(it.Duration()), most: Exact}
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

	most   Exactness // that a cause may have now
	causes []Cause
}

// add books up to part ns to a cause; several of the same kind and name are one.
func (a *attribution) add(c Cause, part int64) {
	part = min(part, a.rest)
	if part <= 0 {
		return
	}
	a.rest -= part
	c.How = min(c.How, a.most)
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
			a.waited(s, from, to, Exact)
			continue
		}
		woken, how := a.woken(s)
		if woken = max(woken, from); woken < to {
			a.most = how
			a.asleep(s, from, woken)
			a.most = Exact
			a.waited(s, woken, to, how)
			continue
		}
		a.asleep(s, from, to)
	}
	for _, g := range a.ev.Gaps {
		c := Cause{Kind: Unknown, Evidence: "it left its core or came back, and the record of that is missing"}
		a.add(c, min(g.To, a.it.End)-max(g.From, a.it.Start))
	}
}

// woken returns when a thread that had left its core asleep wanted it again, never if
// that is not known.
func (a *attribution) woken(s *Spell) (t int64, how Exactness) {
	const never = math.MaxInt64
	switch c := a.ev.Thread; {
	case s.Woken != 0:
		return s.Woken, Exact
	case a.ev.States || s.In == 0 || c == nil || c.Wait < 0 || c.Off < 0 || c.Sleeps == 0:
		return never, Exact
	default:
		// What it waited more than it was preempted, it did after it was woken. Of several
		// sleeps each has its part of that.
		waited := int64(min(c.Wait-c.Preempted, c.Asleep))
		if c.Sleeps > 1 {
			waited = int64(float64(waited) * float64(s.In-s.Out) / float64(c.Asleep))
		}
		const little = int64(50 * time.Microsecond)
		if waited < little {
			return never, Exact
		}
		if c.Sleeps > 1 {
			return s.In - waited, Inferred
		}
		return s.In - waited, Sampled
	}
}

// throttled returns for how long the thread's cgroup was out of quota.
func (a *attribution) throttled() time.Duration {
	if a.ev.System == nil || a.ev.System.ThrottleCount <= 0 && a.ev.System.Throttled <= 0 {
		return 0
	}
	return max(a.ev.System.Throttled, 1)
}

// waited books a time in which the thread wanted its core. how says how sure it is that
// it did.
func (a *attribution) waited(s *Spell, from, to int64, how Exactness) {
	quota := a.throttled()
	// A group without quota stays off the core for as long as the counter says.
	if quota >= time.Duration(to-from)*3/4 {
		c := Cause{Kind: Throttled, How: Sampled, Evidence: fmt.Sprintf("runnable, off its core, and its cgroup throttled for %v", short(quota))}
		a.add(c, to-from)
		return
	}
	if len(s.Ran) == 0 {
		c := Cause{Kind: Preempted, How: how, Evidence: "it left the core while it was runnable" + a.sawCall(s)}
		if !s.runnable() {
			c.Evidence = "it was awake again, and waited for its core"
		}
		a.add(c, to-from)
		return
	}
	known := from
	for _, r := range s.Ran {
		part := min(r.To, to) - max(r.From, from)
		if part <= 0 {
			continue
		}
		known = min(r.To, to)
		if r.PID == 0 {
			a.idle(quota, part)
			continue
		}
		c := Cause{Kind: Preempted, Name: r.Name, PID: r.PID, How: how}
		c.Evidence = fmt.Sprintf("task %d had the core while the thread was runnable", r.PID)
		if r.Name == "" {
			c.Evidence = fmt.Sprintf("task %d, which is gone, had the core while the thread was runnable", r.PID)
		}
		a.add(c, part)
	}
	a.add(Cause{Kind: Preempted, How: how, Evidence: "so many tasks had the core that not all were noted"}, to-known)
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
	case !a.ev.States && a.continued(from, to):
		a.add(stopped("stopped", Sampled, "all of the process was still, and then it was continued by a signal"), part)
	case call == "" && a.ev.Go.collecting():
		a.add(a.runtime(Inferred, "it slept while a collection was under way"), part)
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

// continued reports whether the thread's process was continued at the end of a time in
// which the thread slept and the reader of the probes, a thread of the same process, was
// silent.
func (a *attribution) continued(from, to int64) bool {
	const slack = int64(3 * readEvery)
	return a.ev.Own && slices.ContainsFunc(a.ev.Silences, func(g Gap) bool {
		return g.From <= from+slack && g.To >= to-slack && slices.ContainsFunc(a.ev.Continued, func(t int64) bool {
			return t >= to-slack && t <= max(to, g.To)+int64(contLag)
		})
	})
}

// contLag is how late the reader may learn of the signal once it reads again: a goroutine
// of the runtime's hands it on.
const contLag = 100 * time.Millisecond

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
		evidence, short(g.Over), g.Cycles, g.Pauses, g.Others)
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
		defer a.add(Cause{Kind: Unknown, Evidence: fmt.Sprintf("the readings are %v apart, too much to tell", short(t.Over))}, a.total-off-ran)
	}
	wait = min(wait, off)
	if wait > 0 {
		if quota := a.throttled(); quota >= time.Duration(wait)*3/4 {
			a.add(Cause{Kind: Throttled, How: Inferred, Evidence: fmt.Sprintf("it waited for a core, and its cgroup was throttled for %v", short(quota))}, wait)
		} else {
			a.add(Cause{Kind: Preempted, How: Inferred, Evidence: fmt.Sprintf("within %v it was runnable and waited for %v", short(t.Over), short(t.Wait))}, wait)
		}
	}
	left := off - wait
	if left < a.total/20 {
		return
	}
	if quota := a.throttled(); quota >= time.Duration(left)*3/4 {
		a.add(Cause{Kind: Throttled, How: Inferred, Evidence: fmt.Sprintf("it didn't run, and its cgroup was throttled for %v", short(quota))}, left)
		return
	}
	var call string
	found := make(map[string]int64)
	for _, m := range a.ev.Samples {
		if name := sampledStop(m.State); name != "" {
			a.add(stopped(name, Sampled, "found in that state"), left)
			return
		}
		if m.Call != "" {
			if found[m.Call]++; found[m.Call] >= found[call] {
				call = m.Call
			}
		}
	}
	// A call that it was found in for a moment need not be the one that took long.
	how := Sampled
	if 2*found[call]*int64(readEvery) < left {
		how = Inferred
	}
	if call == "" && t.Wait < 0 {
		a.add(Cause{Kind: Unknown, Evidence: "it was off its core; nothing tells why"}, left)
		return
	}
	// Where within the iteration it slept is not known: when the reader was silent, say.
	from := a.it.Start
	if len(a.ev.Silences) > 0 {
		longest := slices.MaxFunc(a.ev.Silences, func(x, y Gap) int { return cmp.Compare(x.To-x.From, y.To-y.From) })
		from = max(from, longest.From)
	}
	from = min(from, a.it.End-left)
	a.sleeping(call, how, from, from+left)
}

// onCore books the time in which the thread ran, as far as is known.
func (a *attribution) onCore() {
	if a.unseen {
		a.upcalls()
		return
	}
	a.interrupts()
	a.faults()
	a.pauses()
	a.steal()
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
		c := Cause{Kind: Hypervisor, Name: "pause", How: Sampled, Evidence: fmt.Sprintf("the thread had its core, and %s due didn't come", plural(int64(p.Missed), "timer interrupt"))}
		if p.Missed < 2 {
			c.How = Inferred // one is late now and then
		}
		a.add(c, part)
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
			short(a.ev.Thread.Over), short(a.ev.Thread.Over-a.ev.Thread.Off), short(part))
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
		c := Cause{Kind: Hypervisor, Name: "steal", How: Inferred, Evidence: fmt.Sprintf("within %v the core's steal grew by %v", short(s.Over), s.Steal)}
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
		c := Cause{Kind: Interrupts, How: Inferred, Evidence: fmt.Sprintf("within %v the core's tick found it in interrupts for %v", short(s.Over), s.Interrupt)}
		if len(s.Lines) > 0 {
			c.Name = s.Lines[0].Name
			c.Evidence += fmt.Sprintf("; most were %s, %d within %v", s.Lines[0].Name, s.Lines[0].N, short(s.LinesOver))
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
	c := Cause{Kind: Faults, How: Inferred, Evidence: fmt.Sprintf("%d page faults within %v, of about %v each", t.Faults, short(t.Over), short(a.ev.FaultPrice))}
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
	a.add(Cause{Kind: Upcalls, Name: plural(int64(r.Upcalls), "upcall"), How: how, Evidence: fmt.Sprintf("the loop timed them: %v", short(time.Duration(part)))}, part)
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
		c.Evidence = fmt.Sprintf("within %v it ran for %v; interrupts are not timed", short(a.ev.Thread.Over), short(a.ev.Thread.CPU))
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

// short writes a time for people.
func short(d time.Duration) string { return human.Duration(d.Seconds()) }

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
