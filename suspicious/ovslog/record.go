package ovslog

import "time"

// A Record is something that a log says: an *[Event] or a pointer to one of the
// other types of this file.
type Record interface {
	// Where tells where the record comes from.
	Where() Origin
}

// Where returns o.
func (o *Origin) Where() Origin { return *o }

// Settings is what pmd-perf-log-set logs: the thresholds in force from now on.
type Settings struct {
	Origin
	On            bool
	Before, After uint64 // iterations
	Extend        bool
	MaxDuration   uint64 // microseconds; longer iterations are suspicious
	QueueFill     uint64 // packets; as many and more are suspicious
}

// Dropped says that the rate limit dropped messages (not events: an event has two).
type Dropped struct {
	Origin
	Module   string
	Messages uint64
	Seconds  uint64 // over how long
	Ago      uint64 // seconds since the last of them
}

// Gap says that messages of a thread are missing from the text: numbers were
// skipped. Messages that the rate limit dropped have no number.
type Gap struct {
	Origin         // of the message after the gap
	Missing uint64 // messages
}

// LongPoll is an unreasonably long poll interval. It is never about a polling PMD.
type LongPoll struct {
	Origin
	Interval, User, System time.Duration
}

// Faults goes with a LongPoll: page faults.
type Faults struct {
	Origin
	Minor, Major uint64
}

// Switches goes with a LongPoll: context switches.
type Switches struct {
	Origin
	Voluntary, Involuntary uint64
}

// Frequency is that of the time stamp counter.
type Frequency struct {
	Origin
	KHz       uint64
	Estimated bool // by Open vSwitch; otherwise DPDK's
}

// Assignment gives a receive queue to a PMD thread.
type Assignment struct {
	Origin
	Core, NUMA uint64
	Port       string
	Queue      uint64
}

// Threads is the number of PMD threads on a NUMA node.
type Threads struct {
	Origin
	Count, NUMA uint64
}

// Blocked says that a thread waited for another one.
type Blocked struct {
	Origin
	For    time.Duration
	Waited string // the thread waited for
}

// Topic is what a Notice is about.
type Topic int

// The topics.
const (
	LoadBalance Topic = iota // PMD auto load balance
	MaxSleep                 // the longest sleep of PMD threads
	Pinned                   // a queue pinned to a core
	NotPolled                // a queue that nobody polls
	NoThread                 // no PMD thread free for queues
)

// Notice is a message that is worth reading as it is.
type Notice struct {
	Origin
	Topic Topic
	Text  string
}
