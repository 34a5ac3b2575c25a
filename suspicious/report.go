package suspicious

import (
	"fmt"
	"slices"
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

	// Causes are why the iteration took long, the one that explains most first. They
	// are empty where nobody attributes (Options.Causes).
	Causes []Cause

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
