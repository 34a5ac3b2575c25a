package cause

import (
	"math/bits"
	"time"

	"github.com/pmdperf/pmdperf/history"
)

// An Iteration is what the loop itself recorded of the pass, or of the gap between
// two passes, that took long.
type Iteration struct {
	Start, End int64 // CLOCK_MONOTONIC, ns

	Record history.Record
	Hz     uint64 // ticks a second of Record; 0 if not known

	// Gap says that the time lies between two passes, and GapKind what it was for;
	// Record is then the pass that follows.
	Gap     bool
	GapKind history.Gap

	Queue  string  // name of the rx queue that took the most time; "" if not known
	Timers []Timer // spans within the pass that the loop timed
}

// A Timer is a span within a pass that the loop has a name for.
type Timer struct {
	Name   string
	Cycles uint64 // ticks
}

// Duration returns how long the iteration took, never less than 0.
func (it *Iteration) Duration() time.Duration { return time.Duration(max(it.End-it.Start, 0)) }

// ticks converts ticks of the record to ns, 0 where the frequency is not known.
func (it *Iteration) ticks(n uint64) int64 {
	hi, lo := bits.Mul64(n, 1e9)
	if hi >= it.Hz {
		return 0 // no frequency, or five centuries
	}
	q, _ := bits.Div64(hi, lo, it.Hz)
	return int64(min(q, 1<<62))
}
