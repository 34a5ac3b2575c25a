package ovslog

import (
	"slices"
	"strconv"
	"time"
)

// A Row is a line of a table: one iteration of a thread. Names of columns in
// Open vSwitch's heading are given in quotes.
type Row struct {
	Iteration       uint64 // "iter"; starts anew with the thread
	Cycles          uint64 // "cycles": ticks of the thread's clock, sleep excluded
	Packets         uint64 // "packets" received
	CyclesPerPacket uint64 // "cycles/pkt", rounded down; 0 without packets
	PacketsPerBatch uint64 // "pkts/batch", rounded down
	QueueFill       uint64 // "vhost qlen": packets in the fullest queue
	Upcalls         uint64 // "upcalls"
	CyclesPerUpcall uint64 // "cycles/upcall", rounded down
}

// Reasons that Open vSwitch gives.
const (
	ReasonCycles = "Excessive total cycles"
	ReasonQueue  = "Vhost RX queue full"
)

// Origin says where a record comes from.
type Origin struct {
	Thread string    // as logged, say "pmd-c01/id:8"; empty for the main thread and where the line doesn't say
	Time   time.Time // of logging; zero if the line doesn't say, year 0 if only its year is missing
	Seq    uint64    // the thread's number of the message; 0 if the line doesn't say
	Line   int       // line in what was read, from 1
}

// An Event is a suspicious iteration, or a table whose header is lost.
type Event struct {
	Origin             // of the header; in an event without header the thread is the table's and the rest zero
	Core      int      // from the thread's name; -1 if it doesn't say
	Epoch     int      // counts how often the thread's iterations started anew
	Reasons   []string // shared: not to be changed; empty without header
	Iteration uint64
	Duration  uint64    // microseconds, rounded down
	Began     time.Time // the iteration's own time; zero in logs of Open vSwitch
	Causes    string    // why it took long, in words; empty in logs of Open vSwitch
	Table     []Row     // newest first; empty if the table is lost
	Culprit   int       // index of the iteration's row in Table, or -1
	TableTime time.Time // of the table's message, where it is one of its own
	TableSeq  uint64    // number of the table's message, where it is one of its own
	TableLine int       // line of the table's first line, 0 without table
	HasHeader bool
}

// Clone returns a copy of the event that shares no memory with its reader.
func (e *Event) Clone() *Event {
	c := *e
	c.Reasons = slices.Clone(e.Reasons)
	c.Table = slices.Clone(e.Table)
	return &c
}

// Frequency returns the range of clock frequencies, in Hz, that explains the
// header's duration by the cycles of the culprit's row: 2,300,000 cycles in 1000 us
// (1000 and more, less than 1001) are more than 2.2977 and at most 2.3 GHz. It
// reports false if there is no such row or the duration is 0.
func (e *Event) Frequency() (low, high float64, ok bool) {
	if !e.HasHeader || e.Culprit < 0 || e.Culprit >= len(e.Table) || e.Duration == 0 {
		return 0, 0, false
	}
	c := 1e6 * float64(e.Table[e.Culprit].Cycles)
	return c / (float64(e.Duration) + 1), c / float64(e.Duration), true
}

// Core returns the core that a thread's name tells, as in "pmd-c01/id:8", or -1.
func Core(thread string) int {
	const prefix = "pmd-c"
	if len(thread) <= len(prefix) || thread[:len(prefix)] != prefix {
		return -1
	}
	end := len(prefix)
	for end < len(thread) && isDigit(thread[end]) {
		end++
	}
	core, err := strconv.ParseInt(thread[len(prefix):end], 10, 32)
	if err != nil {
		return -1
	}
	return int(core)
}
