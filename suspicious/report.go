package suspicious

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pmdperf/pmdperf/history"
)

// A Report is a suspicious iteration with all that is known about it. Nobody changes
// it any more once it was handed out; sinks may keep it.
type Report struct {
	// ID names the event for people and programs, as "20260131T235959-c01-12345" from
	// time (UTC), core and iteration.
	ID string
	// Sequence counts the reports of a supervisor, from 1 on.
	Sequence uint64

	// Name, Core and NUMA are those of the PMD.
	Name       string
	Core, NUMA int
	Hz         float64 // ticks in a second

	// Anchor is one instant on both clocks, of shortly after the event.
	AnchorTicks uint64
	Anchor      time.Time
	// Time is when the iteration ended.
	Time time.Time

	Event // with memory of its own

	// Polled are the rx queues that the iterations of the neighborhood polled.
	Polled []Polled

	// Timers are the names of the PMD's timers, by their number in a record's flags.
	Timers []string

	// Causes are why the iteration took long, the one that explains most first. They
	// are empty where nobody attributes (Options.Causes).
	Causes []Cause
	// MergedCauses are the same of merged iterations, by their number: of the four that
	// took longest among those that were suspicious because they took long.
	MergedCauses map[uint64][]Cause

	// HeldBack is how many events of this PMD the rate limit held back since the
	// report before.
	HeldBack uint64
}

// Polled is a list of rx queues that a loop polls.
type Polled struct {
	From   uint64  // number of the first iteration that polled them
	Queues []Queue // by their index in a record's flags
}

// A Queue is an rx queue of a port.
type Queue struct {
	Port string
	ID   int
	Size int // packets, 0 if unknown
}

// newReport makes a report of an event of src with memory of its own.
func newReport(src Source, e *Event) *Report {
	r := &Report{Name: src.Name(), Core: src.Core(), NUMA: src.NUMA(), Hz: src.Hz(), Event: *e}
	r.Records = slices.Clone(e.Records)
	r.Merged = slices.Clone(e.Merged)
	r.Timers = src.TimerNames()
	r.AnchorTicks, r.Anchor = src.Clock()
	r.Time = r.At(r.Culprit().End)
	r.ID = fmt.Sprintf("%s-c%02d-%d", r.Time.UTC().Format("20060102T150405"), r.Core, r.Iteration)
	r.Polled = src.Polled(e.First, e.First+uint64(len(e.Records))-1)
	return r
}

// Culprit returns the record of the suspicious iteration.
func (r *Report) Culprit() history.Record {
	if i := r.Iteration - r.First; i < uint64(len(r.Records)) {
		return r.Records[i]
	}
	return history.Record{End: r.AnchorTicks}
}

// merged returns the report as it would be if the merged iteration m were the one that it
// is about, without its values but that of a gap.
func (r *Report) merged(m Mark) *Report {
	o := *r
	o.Iteration, o.Reasons, o.Values = m.Iteration, m.Reasons, [NumReasons]uint64{}
	if i := m.Iteration - r.First; i > 0 && i < uint64(len(r.Records)) {
		o.Values[Gap] = r.Records[i].Start() - r.Records[i-1].End
	}
	return &o
}

// longestMerged returns the merged iterations that took longest, at most n of those that
// are suspicious for that.
func (r *Report) longestMerged(n int) []Mark {
	const long = Reasons(1<<Cycles | 1<<PollGap | 1<<Gap | 1<<Adaptive)
	took := func(m Mark) uint64 {
		o := r.merged(m)
		c := o.Culprit()
		return max(c.Cycles+c.Sleep, o.Values[Gap])
	}
	marks := slices.DeleteFunc(slices.Clone(r.Merged), func(m Mark) bool {
		return m.Reasons&long == 0 || m.Iteration-r.First >= uint64(len(r.Records))
	})
	slices.SortStableFunc(marks, func(a, b Mark) int { return cmp.Compare(took(b), took(a)) })
	return marks[:min(n, len(marks))]
}

// Duration returns the length of ticks.
func (r *Report) Duration(ticks uint64) time.Duration {
	return time.Duration(float64(ticks) / r.Hz * 1e9)
}

// At returns the wall-clock time of a tick.
func (r *Report) At(tick uint64) time.Time {
	if tick >= r.AnchorTicks {
		return r.Anchor.Add(r.Duration(tick - r.AnchorTicks))
	}
	return r.Anchor.Add(-r.Duration(r.AnchorTicks - tick))
}

// Explanation returns the causes on one line, as "preempted by sh 95 %, page faults
// 3 %", "" if there are none. Tasks of the same name are one.
func (r *Report) Explanation() string { return Explanation(r.Causes) }

// Explanation returns causes on one line; see Report.Explanation.
func Explanation(causes []Cause) string {
	var titles []string
	share := make(map[string]float64)
	for _, c := range causes {
		t := c.Title()
		if _, ok := share[t]; !ok {
			titles = append(titles, t)
		}
		share[t] += c.Share
	}
	for i, t := range titles {
		titles[i] = fmt.Sprintf("%s %.0f %%", t, 100*share[t])
	}
	return strings.Join(titles, ", ")
}

// SlowestTimer returns the timer that took the longest span of the suspicious iteration
// and how many ticks that was, right to a third; "" if none is known.
func (r *Report) SlowestTimer() (name string, ticks uint64) {
	f := r.Culprit().Flags
	_, ticks, _ = f.Timer()
	return r.timer(f), ticks
}

func (r *Report) timer(f history.Flags) string {
	id, _, ok := f.Timer()
	if !ok || id >= len(r.Timers) {
		return ""
	}
	return r.Timers[id]
}

// SlowestQueue returns the rx queue that took most of iteration n, and false if that
// is not known.
func (r *Report) SlowestQueue(n uint64) (Queue, bool) {
	i := n - r.First
	if i >= uint64(len(r.Records)) {
		return Queue{}, false
	}
	q, ok := r.Records[i].Flags.Queue()
	for _, p := range slices.Backward(r.Polled) {
		if p.From <= n {
			ok = ok && q < len(p.Queues)
			if !ok {
				return Queue{}, false
			}
			return p.Queues[q], true
		}
	}
	return Queue{}, false
}
