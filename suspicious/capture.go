package suspicious

import (
	"sync/atomic"

	"github.com/pmdperf/pmdperf/history"
)

// An Event is a suspicious iteration and its neighborhood.
type Event struct {
	Iteration uint64  // its number
	Reasons   Reasons // all that hold
	// Values and Thresholds are what was measured and what it exceeded, by reason,
	// for the reasons that hold: ticks for Cycles, PollGap, Gap and the two averages,
	// else numbers.
	Values, Thresholds [NumReasons]uint64
	// First is the number of the first of Records, which are the neighborhood,
	// oldest first. It begins later than was asked for where there was nothing
	// before, and ends early if the recording was switched off or ended.
	First   uint64
	Records []history.Record
	// Merged are the further suspicious iterations in the neighborhood, at most
	// MaxMerged of them; MergedCount is how many there were.
	Merged      []Mark
	MergedCount uint64
}

// A Mark is a suspicious iteration without a capture of its own.
type Mark struct {
	Iteration uint64
	Reasons   Reasons
}

// MaxMerged is how many merged iterations an event names.
const MaxMerged = 64

// The states of a capture. The owner takes a free one and fills it; when it is
// complete it belongs to the supervisor, who frees it.
const (
	free uint32 = iota
	filling
	complete
)

// capture is an event with its memory.
type capture struct {
	state atomic.Uint32
	event Event
	last  uint64 // number of the last record wanted
	space [MaxRecords]history.Record
	marks [MaxMerged]Mark
}

// begin takes the capture for an event. The records are to be copied.
func (c *capture) begin(e *Event, first, last uint64) {
	c.event = *e
	c.event.First = first
	c.event.Records = c.space[:0]
	c.event.Merged = c.marks[:0]
	c.last = last
	c.state.Store(filling)
}

// merge adds a further suspicious iteration to the event.
func (c *capture) merge(m Mark) {
	c.event.MergedCount++
	if len(c.event.Merged) < MaxMerged {
		c.event.Merged = append(c.event.Merged, m)
	}
}

// advance copies at most n of the records wanted that are there, those before the
// iteration end.
func (c *capture) advance(ring *history.Ring, end, n uint64) {
	from := c.event.First + uint64(len(c.event.Records))
	to := min(end, c.last+1, from+n)
	c.event.Records = ring.Append(c.event.Records, from, to)
	if to == c.last+1 {
		c.state.Store(complete)
	}
}
