package suspicious

import (
	"fmt"
	"math"
	"time"
)

// MaxRecords is the longest neighborhood, the suspicious iteration included.
const MaxRecords = 999

// The highest thresholds of full batches and of times what is usual.
const (
	MaxFullBatches = math.MaxUint16
	MaxAdaptive    = 1000000
)

// Settings say what is suspicious and how much of its neighborhood is kept. The zero
// value is off.
type Settings struct {
	On bool
	// Before and After are how many iterations before and after are kept.
	Before, After int
	// Extend has a further suspicious iteration among those after extend the
	// neighborhood, up to MaxRecords in all.
	Extend bool
	Limits
}

// Limits are the thresholds. A zero is no threshold.
type Limits struct {
	Iteration       time.Duration // longest iteration, sleep excluded
	PollGap         time.Duration // longest iteration and sleep together
	Gap             time.Duration // longest time before an iteration that belongs to none
	QueueFill       int           // packets in a queue from which on it is suspicious
	CyclesPerPacket uint64        // most ticks per packet received
	Upcalls         int           // most upcalls in an iteration
	CyclesPerUpcall uint64        // most ticks per upcall in an iteration
	FullBatches     int           // full batches in a row of one rx queue, with no iteration between them, from which on it is suspicious
	Drops           int           // packets that the loop or tx queues drop in an iteration from which on it is suspicious
	RxDrops         int           // packets reported in an iteration that rings of rx queues dropped, from which on it is suspicious
	// Adaptive is for an iteration that takes longer than so many times the 99.9th
	// percentile of the last 10 s, sleep excluded. A Supervisor computes that once a
	// second, if there were at least 10,000 iterations.
	Adaptive int
}

// Default are the settings of Open vSwitch, switched off.
func Default() Settings {
	return Settings{Before: 5, After: 5, Limits: Limits{Iteration: 250 * time.Microsecond, QueueFill: 128}}
}

// Check returns what is wrong with the settings.
func (s *Settings) Check() error {
	if s.Before < 0 || s.Before >= MaxRecords || s.After < 0 || s.After >= MaxRecords-s.Before {
		return fmt.Errorf("%d iterations before and %d after: together they must be within 0 .. %d", s.Before, s.After, MaxRecords-1)
	}
	const longest = time.Hour
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"iteration", s.Iteration}, {"poll gap", s.PollGap}, {"gap", s.Gap}} {
		if d.d < 0 || d.d > longest {
			return fmt.Errorf("threshold of %v for the %s: it must be within 0 .. %v", d.d, d.name, longest)
		}
	}
	for _, n := range []struct {
		name string
		n    int
	}{{"queue fill", s.QueueFill}, {"upcalls", s.Upcalls}, {"drops", s.Drops}, {"rx drops", s.RxDrops}} {
		if n.n < 0 || n.n > math.MaxInt32 {
			return fmt.Errorf("threshold of %d for %s: it must be within 0 .. %d", n.n, n.name, math.MaxInt32)
		}
	}
	if n := s.FullBatches; n < 0 || n > MaxFullBatches {
		return fmt.Errorf("threshold of %d for full batches: it must be within 0 .. %d", n, MaxFullBatches)
	}
	if n := s.Adaptive; n < 0 || n > MaxAdaptive {
		return fmt.Errorf("threshold of %d times what is usual: it must be within 0 .. %d", n, MaxAdaptive)
	}
	for _, n := range []struct {
		name string
		n    uint64
	}{{"cycles per packet", s.CyclesPerPacket}, {"cycles per upcall", s.CyclesPerUpcall}} {
		if n.n > math.MaxInt32 {
			return fmt.Errorf("threshold of %d %s: it must be within 0 .. %d", n.n, n.name, math.MaxInt32)
		}
	}
	return nil
}

// thresholds are limits in the form that is compared: a value above is suspicious,
// and what has no threshold has one that nothing exceeds.
type thresholds [NumReasons]uint64

func (s *Settings) thresholds(hz float64) thresholds {
	never := func(n uint64) uint64 {
		if n == 0 {
			return math.MaxUint64
		}
		return n
	}
	ticks := func(d time.Duration) uint64 {
		if d == 0 {
			return math.MaxUint64
		}
		return max(1, uint64(d.Seconds()*hz))
	}
	// Open vSwitch compares these with >=.
	from := func(n int) uint64 { return never(uint64(n)) - min(1, uint64(n)) }
	return thresholds{
		Cycles:          ticks(s.Iteration),
		PollGap:         ticks(s.PollGap),
		Gap:             ticks(s.Gap),
		QueueFill:       from(s.QueueFill),
		CyclesPerPacket: never(s.CyclesPerPacket),
		Upcalls:         never(uint64(s.Upcalls)),
		CyclesPerUpcall: never(s.CyclesPerUpcall),
		FullBatches:     from(s.FullBatches),
		Drops:           from(s.Drops),
		RxDrops:         from(s.RxDrops),
		Adaptive:        math.MaxUint64, // until it is known what is usual
	}
}
