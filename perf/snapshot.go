package perf

import (
	"time"

	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/perf/tsc"
	"github.com/pmdperf/pmdperf/suspicious"
)

// Kind is what a recorder records.
type Kind uint8

// The kinds of recorder.
const (
	PMD  Kind = iota // a poll-mode loop, with iterations and cycles
	Main             // threads that are not PMDs: packets and counters only
)

// State is what a recorder's owner is doing.
type State uint8

// The states of an owner.
const (
	Running State = iota // its loop runs
	Parked               // it has not started, or its polling configuration is being changed
	Closed               // it has ended
)

// String returns the state's name.
func (s State) String() string { return [...]string{"running", "parked", "closed"}[s] }

// A Snapshot is the state of one recorder between two passes: its sums agree with
// each other exactly. All amounts count from Since, the last clear.
//
// A Snapshot is plain memory of some 300 KiB that belongs to its reader. One that
// is used again costs no allocation; Recorder.Snapshot overwrites all of it.
type Snapshot struct {
	Kind     Kind
	Name     string
	Core     int
	NUMA     int
	Level    Level
	State    State
	Isolated bool
	MaxSleep time.Duration

	// Hz is the number of ticks (cycles) in a second.
	Hz float64
	// Anchor ties the ticks to wall-clock time.
	Anchor tsc.Anchor
	// Since is the tick of the last clear (or start), Until that at which the last
	// pass ended, up to which everything is recorded, Now that of the snapshot.
	Since, Until, Now uint64
	// Cleared is the time of Since, the same in all snapshots until the next clear.
	Cleared time.Time

	// Totals sums up all passes, Busy the busy ones of them: those that received or
	// sent. Until - Since = Totals.Cycles + Totals.Sleep + the Ticks of all Gaps.
	Totals Totals
	// Gaps are the times that belong to no pass, by kind.
	Gaps [history.NumGaps]GapStats
	// Reloads are the lengths in ticks of the reload gaps.
	Reloads histogram.Fine
	// ClockBack counts how often the clock went backwards and was held.
	ClockBack uint64

	// Counts holds the builtin counters, Counters and Timers the embedder's own.
	Counts   [NumBuiltin]uint64
	Counters []NamedCount
	Timers   []TimerStats

	// The histograms. Those below the line are recorded at level Detailed only.
	Cycles  histogram.Binned // ticks per iteration
	Packets histogram.Small  // packets received per iteration
	// --
	CyclesPerPacket histogram.Binned // ticks per packet received, of iterations that received
	BatchPackets    histogram.Small  // packets per rx batch
	QueueFill       histogram.Small  // highest rx queue fill per iteration
	Upcalls         histogram.Small  // upcalls per iteration
	CyclesPerUpcall histogram.Binned // ticks per upcall

	// Suspicious counts the suspicious iterations, and Suspicion says which are.
	Suspicious suspicious.Counts
	Suspicion  suspicious.Settings

	// Slowest is the record of the iteration that took the most cycles, and
	// SlowestIteration its number.
	Slowest          history.Record
	SlowestIteration uint64

	RxQueues []QueueStats
	TxQueues []QueueStats
	// Gone sums up rx queues that are no longer polled.
	Gone QueueStats
	// Usage are the completed intervals of UsageInterval each, oldest first, at most
	// UsageIntervals. They are not affected by a clear.
	Usage []Usage

	// NextIteration is the number that the next iteration will have. Numbers count
	// from 0 since the recorder was made and are not affected by a clear.
	NextIteration uint64
	// Iterations are the last iterations, as many as were wanted and are there,
	// oldest first: the last one has the number NextIteration - 1.
	Iterations []history.Record
	// Millis are the last complete millisecond rows, oldest first, and OpenMilli
	// the one being filled.
	Millis    []history.Milli
	OpenMilli history.Milli

	usage []uint64 // the memory of Usage's queues
}

// Totals sum up passes. Times are in ticks.
type Totals struct {
	Iterations       uint64
	BusyIterations   uint64 // that received or sent
	SleepIterations  uint64 // in which the loop slept
	DetailIterations uint64 // recorded at level Detailed
	Cycles           uint64 // sleep excluded
	BusyCycles       uint64 // of busy iterations
	Sleep            uint64
	RxPackets        uint64
	TxPackets        uint64
	RxBatches        uint64 // at level Detailed
	FullBatches      uint64 // at level Detailed
	Drops            uint64 // of the loop and of tx queues
	RxDrops          uint64 // of the rings of rx queues; not among RxPackets
	UpcallCycles     uint64 // at level Detailed
}

// IdleIterations returns the passes that neither received nor sent.
func (t *Totals) IdleIterations() uint64 { return t.Iterations - t.BusyIterations }

// IdleCycles returns the ticks in passes that neither received nor sent.
func (t *Totals) IdleCycles() uint64 { return t.Cycles - t.BusyCycles }

// GapStats sum up the gaps of one kind. Times are in ticks.
type GapStats struct {
	Count uint64
	Ticks uint64
	Min   uint64 // 0 if there was none
	Max   uint64
	MaxAt uint64 // tick at which the longest ended
}

// TimerStats sum up the spans of a timer. Times are in ticks and exclude nested
// timers' spans.
type TimerStats struct {
	Name         string
	Count        uint64
	Cycles       uint64
	Max          uint64
	MaxIteration uint64 // iteration of the longest
}

// QueueStats sum up one queue. Times are in ticks.
type QueueStats struct {
	Queue
	Packets    uint64 // received, or sent where sizes are recorded
	BusyCycles uint64 // rx: from polls that returned packets to the next stamp
	IdleCycles uint64 // rx: of empty polls
	Sizes      Sizes
}

// Usage is what one interval was spent on, in ticks. Ticks = Busy + Idle + Sleep +
// Gap, and the queues' cycles are part of Busy; the rest of Busy is the loop's
// overhead.
type Usage struct {
	Ticks, Busy, Idle, Sleep, Gap uint64
	// Queues has the busy cycles of each rx queue, in the order of RxQueues.
	Queues []uint64
}

// The lengths that Open vSwitch uses: usage is kept in intervals of 5 s for the
// last 60 s.
const (
	UsageInterval  = 5 * time.Second
	UsageIntervals = 12
)

// Wall returns the ticks that the snapshot accounts for.
func (s *Snapshot) Wall() uint64 { return s.Until - s.Since }

// Duration returns the length of ticks at the snapshot's frequency.
func (s *Snapshot) Duration(ticks uint64) time.Duration { return tsc.Duration(ticks, s.Hz) }

// Time returns the wall-clock time of a tick.
func (s *Snapshot) Time(tick uint64) time.Time { return s.Anchor.Time(tick, s.Hz) }

// FirstIteration returns the number of the oldest record in Iterations.
func (s *Snapshot) FirstIteration() uint64 {
	return s.NextIteration - uint64(len(s.Iterations))
}

// DatapathPasses returns how often packets went through the pipeline.
func (s *Snapshot) DatapathPasses() uint64 { return s.Totals.RxPackets + s.Counts[Recirc] }
