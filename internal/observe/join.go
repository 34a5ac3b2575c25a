package observe

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pmdperf/pmdperf/suspicious/cause"
	"github.com/pmdperf/pmdperf/suspicious/ovslog"
)

// blur is by how much the time of an iteration in Open vSwitch's log is wrong: the log
// has milliseconds, and is written after the iterations that follow the slow one.
const blur = 2 * time.Millisecond

// join returns an iteration of the log with what was observed of its thread. w is nil if
// that was not watched. hz is the frequency of this machine's time stamp counter.
func join(e *ovslog.Event, w *watcher, hz float64) *Iteration {
	took, after := length(e, hz)
	it := &Iteration{
		Logged: e.Time, Thread: e.Thread, Iteration: e.Iteration, Reasons: append([]string{}, e.Reasons...),
		Took: took, Begin: e.Began, Spells: []*Spell{}, Causes: []cause.Cause{},
	}
	slack := time.Duration(0)
	if it.Begin.IsZero() {
		it.Begin, it.Estimated, slack = e.Time.Add(-after-took), true, blur
	}
	if w == nil || it.Begin.Before(w.since) {
		return it
	}
	it.Watched = true
	begin, end := it.Begin.Add(-slack), it.Begin.Add(it.Took+slack)
	for _, s := range w.kept {
		if s.Begin.Before(end) && s.end().After(begin) && !s.Lasts {
			it.Spells = append(it.Spells, s)
		}
	}
	it.explain()
	if len(it.Spells) == 0 && w.probes != nil {
		from := w.clock.mono64(it.Begin)
		it.Causes = cause.Attribute(cause.Iteration{Start: from, End: from + int64(it.Took)}, w.probes.Between(from, from+int64(it.Took)))
		if it.Estimated {
			for i := range it.Causes {
				it.Causes[i].How = cause.Inferred
				it.Causes[i].Evidence += "; the log tells the time of the iteration to some ms only"
			}
		}
	}
	if len(it.Causes) == 0 {
		it.Causes = unexplained(it.Took)
	}
	return it
}

// unexplained is what is said of an iteration of a thread that is gone.
func unexplained(took time.Duration) []cause.Cause {
	return []cause.Cause{{Kind: cause.Unknown, Part: took, Share: 1, Evidence: "no spell over the threshold lies there, and the thread is gone"}}
}

// merge makes one of causes with the same title, and puts the greatest first.
func merge(causes []cause.Cause) []cause.Cause {
	list := []cause.Cause{}
	for _, c := range causes {
		n := slices.IndexFunc(list, func(x cause.Cause) bool { return x.Title() == c.Title() })
		if n < 0 {
			list = append(list, c)
			continue
		}
		list[n].Part += c.Part
		list[n].Share += c.Share
		list[n].How = min(list[n].How, c.How)
	}
	slices.SortStableFunc(list, func(x, y cause.Cause) int { return cmp.Compare(y.Part, x.Part) })
	return list
}

// longest is the longest that an iteration in the log may have taken. What is longer is
// no time: Open vSwitch without DPDK takes the counter for one of 1 Hz.
const longest = 10 * time.Minute

// length returns how long an iteration took, and for how long others followed until it
// was logged, as the cycles of their rows tell.
func length(e *ovslog.Event, hz float64) (took, after time.Duration) {
	if e.Duration <= uint64(longest.Microseconds()) {
		took = time.Duration(e.Duration) * time.Microsecond
		if _, own, ok := e.Frequency(); ok && own > 1e6 {
			hz = own
		}
	} else {
		took = time.Duration(min(float64(e.Duration)/1e6/hz, longest.Seconds()) * 1e9)
	}
	cycles := 0.0
	for _, r := range e.Table[:min(max(e.Culprit, 0), len(e.Table))] { // the newest is the first
		cycles += float64(r.Cycles)
	}
	return took, time.Duration(min(cycles/hz, 1) * 1e9)
}

// explain makes the causes of the spells those of the iteration.
func (i *Iteration) explain() {
	left := i.Took
	for _, s := range i.Spells {
		part := s.Took
		if !i.Estimated {
			part = min(s.end().Sub(i.Begin), s.Took, i.Begin.Add(i.Took).Sub(s.Begin))
		}
		for _, c := range s.Causes {
			c.Part = min(time.Duration(c.Share*float64(part)), left)
			if c.Part <= 0 {
				continue
			}
			left -= c.Part
			i.Causes = append(i.Causes, c)
		}
	}
	if len(i.Causes) > 0 && left > i.Took/50 {
		i.Causes = append(i.Causes, cause.Cause{
			Kind: cause.Work, Part: left, How: cause.Inferred, Evidence: "no spell over the threshold lies there",
		})
	}
	i.Causes = merge(i.Causes)
	for n := range i.Causes {
		i.Causes[n].Share = float64(i.Causes[n].Part) / float64(max(i.Took, 1))
	}
}

// named reports whether a thread's name in the log is that of a thread in /proc, where
// names end after 15 bytes.
func named(logged, name string) bool {
	const most = 15
	return logged == name || len(name) == most && strings.HasPrefix(logged, name)
}
