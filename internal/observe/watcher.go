package observe

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pmdperf/pmdperf/suspicious/cause"
)

const (
	// margin is how long after its end a spell is told: the kernel's events and the
	// counters that bracket it must have been read.
	margin = 10 * time.Millisecond

	// lasting is how long a spell is waited for before it is told though it lasts.
	lasting = time.Second

	// keepSpells is how many spells of a thread are kept for iterations in the log.
	keepSpells = 1024
)

// watcher watches one thread.
type watcher struct {
	task
	probes *cause.Probes // nil once it was closed
	clock  clock
	over   time.Duration // threshold

	since time.Time
	begun int64 // the same, CLOCK_MONOTONIC in ns
	seen  int64 // all until then was told
	told  int64 // when the spell began that was told as lasting
	slept int64 // all samples until then were told, where there is nothing better
	kept  []*Spell
	sum   ThreadSummary

	causes, sharers map[string]*CauseSum
	timed           bool
	interrupts      time.Duration
}

// clock turns CLOCK_MONOTONIC into time.
type clock struct {
	mono int64
	wall time.Time
}

func readClock() clock { return clock{monotonic(), time.Now()} }

func (c clock) time(mono int64) time.Time { return c.wall.Add(time.Duration(mono - c.mono)) }
func (c clock) mono64(t time.Time) int64  { return c.mono + int64(t.Sub(c.wall)) }

func watch(t task, o cause.Options, threshold time.Duration) (*watcher, error) {
	p, err := cause.Open(t.tid, t.core, o)
	if err != nil {
		return nil, err
	}
	now := monotonic()
	return &watcher{
		task: t, probes: p, over: threshold, since: time.Now(), begun: now, seen: now, slept: now, clock: readClock(),
		sum:    ThreadSummary{Name: t.name, TID: t.tid, Core: t.core},
		causes: make(map[string]*CauseSum), sharers: make(map[string]*CauseSum),
	}, nil
}

// close ends the watching and returns what it comes to. The last spells have been told.
func (w *watcher) close() ThreadSummary {
	total := w.probes.Totals()
	w.sum.Wait, w.sum.Faults = total.Wait, total.Faults
	w.sum.Watched = time.Duration(w.seen - w.begun)
	w.sum.Causes, w.sum.Sharers = most(w.causes), most(w.sharers)
	_ = w.probes.Close() // closes files
	w.probes = nil
	return w.sum
}

// most returns the greatest sums.
func most(sums map[string]*CauseSum) (list []CauseSum) {
	const n = 8
	for _, title := range slices.Sorted(maps.Keys(sums)) {
		list = append(list, *sums[title])
	}
	slices.SortStableFunc(list, func(a, b CauseSum) int { return cmp.Compare(b.Took, a.Took) })
	return list[:min(len(list), n)]
}

func add(sums map[string]*CauseSum, title string, took time.Duration) {
	s := sums[title]
	if s == nil {
		s = &CauseSum{Title: title}
		sums[title] = s
	}
	s.Times++
	s.Took += took
}

// tell returns the spells over the threshold that ended since it was called last, until
// now in ns of CLOCK_MONOTONIC, in the order of their ends. last says that it won't be
// called again: then those that last are told too.
func (w *watcher) tell(now int64, last bool) (list []*Spell) {
	to := now - int64(margin)
	if last {
		to = now
	}
	if to <= w.seen {
		return nil
	}
	w.clock = readClock()
	ev := w.probes.Between(w.seen, to)
	if ev.Switches {
		w.sum.Switches = true
		list = w.spells(&ev, last)
	} else {
		list = append(w.sampled(to, last), w.waited(&ev)...)
	}
	list = append(list, w.stolen(&ev)...)
	w.seen = to
	slices.SortStableFunc(list, func(a, b *Spell) int { return a.end().Compare(b.end()) })
	for _, s := range list {
		if s.Lasts && !last {
			continue
		}
		w.sum.Over++
		for _, c := range s.Causes {
			add(w.causes, c.Title(), c.Part)
		}
	}
	w.kept = append(w.kept, list...)
	w.kept = w.kept[max(0, len(w.kept)-keepSpells):]
	return list
}

func (s *Spell) end() time.Time { return s.Begin.Add(s.Took) }

// spells returns the spells off the core that are over.
func (w *watcher) spells(ev *cause.Evidence, last bool) (list []*Spell) {
	for i := range ev.Spells {
		s := &ev.Spells[i]
		if s.Call == "exit" {
			continue // it doesn't come back from that
		}
		took := time.Duration(s.In - s.Out)
		if s.In == 0 || s.In > ev.To {
			took = time.Duration(ev.To - s.Out)
			switch {
			case last && took >= w.over:
			case took >= max(w.over, lasting) && w.told != s.Out:
				w.told = s.Out
			default:
				continue
			}
			list = append(list, w.spell(OffCore, s.Out, ev.To, true))
			if !last {
				continue
			}
		}
		w.count(s, min(s.Out+int64(took), ev.To))
		if took >= w.over && s.In != 0 && s.In <= ev.To {
			list = append(list, w.spell(OffCore, s.Out, s.In, false))
		}
	}
	return list
}

// count adds a spell to the sums, as far as it lies in the time of watching.
func (w *watcher) count(s *cause.Spell, in int64) {
	took := time.Duration(in - max(s.Out, w.begun))
	if took <= 0 {
		return
	}
	w.sum.Spells++
	w.sum.Off += took
	w.sum.Longest = max(w.sum.Longest, took)
	for _, r := range s.Ran {
		if part := min(r.To, in) - max(r.From, w.begun); r.PID != 0 && part > 0 {
			add(w.sharers, r.Name, time.Duration(part))
		}
	}
}

// spell finds the causes of a stretch of time in which the thread did no work.
func (w *watcher) spell(kind Kind, from, to int64, lasts bool) *Spell {
	it := cause.Iteration{Start: from, End: to}
	return &Spell{
		Thread: w.name, TID: w.tid, Core: w.core, Kind: kind, Begin: w.clock.time(from), Took: it.Duration(), Lasts: lasts,
		Causes: cause.Attribute(it, w.probes.Between(from, to)),
	}
}

// stolen returns the interrupts of the core, and the times in which the machine stood
// still, that are over.
func (w *watcher) stolen(ev *cause.Evidence) (list []*Spell) {
	w.timed = w.timed || ev.Timed
	for _, i := range ev.Interrupts {
		if i.To > ev.To {
			continue
		}
		took := time.Duration(i.To - i.From)
		w.interrupts += took
		if took < w.over || w.away(ev, i.From, i.To) {
			continue
		}
		c := cause.Cause{Kind: cause.Interrupts, Name: i.Name, Part: took, Share: 1, How: cause.Exact, Evidence: "timed at its entry and exit"}
		list = append(list, w.made(Interrupt, i.From, c))
	}
	for _, p := range ev.Pauses {
		took := time.Duration(p.To - p.From)
		if p.To > ev.To || p.To <= ev.From || took < w.over || p.Missed < 2 || w.away(ev, p.From, p.To) {
			continue
		}
		c := cause.Cause{Kind: cause.Hypervisor, Name: "pause", Part: took, Share: 1, How: cause.Sampled,
			Evidence: fmt.Sprintf("%d timer interrupts of its core didn't come", p.Missed)}
		list = append(list, w.made(Pause, p.From, c))
	}
	return list
}

// away reports whether the thread was off its core at some time.
func (w *watcher) away(ev *cause.Evidence, from, to int64) bool {
	return slices.ContainsFunc(ev.Spells, func(s cause.Spell) bool { return s.Out < to && (s.In == 0 || s.In > from) })
}

// made makes a spell of one cause that is known.
func (w *watcher) made(kind Kind, from int64, c cause.Cause) *Spell {
	return &Spell{Thread: w.name, TID: w.tid, Core: w.core, Kind: kind, Begin: w.clock.time(from), Took: c.Part, Causes: []cause.Cause{c}}
}

// sampled returns spells where nobody tells of switches: the thread was found asleep or
// stopped again and again.
func (w *watcher) sampled(to int64, last bool) (list []*Spell) {
	samples := w.probes.Between(w.slept, to).Samples
	w.slept = to
	for i := 0; i < len(samples); i++ {
		s := &samples[i]
		if s.State == "R" {
			continue
		}
		n := i
		for n+1 < len(samples) && samples[n+1].State == s.State {
			n++
		}
		took := time.Duration(samples[n].Time - s.Time)
		if n+1 == len(samples) && took < lasting && !last {
			w.slept = s.Time // it may not be over
			break
		}
		if n > i && took >= w.over {
			list = append(list, w.made(OffCore, s.Time, guess(s, took, n-i+1)))
		}
		i = n
	}
	return list
}

// waited returns spells, where nobody tells of switches, in which the thread waited for its
// core.
func (w *watcher) waited(ev *cause.Evidence) (list []*Spell) {
	const step = int64(10 * time.Millisecond)
	for from := ev.From; from < ev.To; from += step {
		to := min(from+step, ev.To)
		e := w.probes.Between(from, to)
		if t := e.Thread; t != nil && t.Wait >= w.over {
			c := cause.Cause{Kind: cause.Preempted, Part: t.Wait, Share: 1, How: cause.Inferred,
				Evidence: fmt.Sprintf("within %s it was runnable and waited for %s", short(t.Over), short(t.Wait))}
			if e.System != nil && e.System.Throttled >= t.Wait*3/4 {
				c.Kind = cause.Throttled
				c.Evidence += fmt.Sprintf(", and its cgroup was throttled for %s", short(e.System.Throttled))
			}
			list = append(list, w.made(OffCore, to-int64(t.Wait), c))
			from += int64(t.Over) // the same waiting lies between the next readings too
		}
	}
	return list
}

// guess says what a state means in which a thread was found n times.
func guess(s *cause.Sample, took time.Duration, n int) cause.Cause {
	c := cause.Cause{Kind: cause.Blocked, Name: s.Call, Part: took, Share: 1, How: cause.Sampled, Evidence: fmt.Sprintf("found in state %s %d times", s.State, n)}
	switch s.State {
	case "T":
		c.Kind, c.Name = cause.Stopped, "by a signal"
	case "t":
		c.Kind, c.Name = cause.Stopped, "by a debugger"
	}
	return c
}
