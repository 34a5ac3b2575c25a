package investigate

import (
	"time"

	"github.com/pmdperf/pmdperf/suspicious"
)

// Place is where something stands.
type Place struct {
	Source string `json:"source,omitempty"` // name of the file, "-" for standard input
	Line   int    `json:"line,omitempty"`   // from 1 on; 0 if the source has no lines
}

// Row is an iteration of a neighborhood or of a history.
type Row struct {
	Iteration       uint64  `json:"iteration"`
	Micros          float64 `json:"us,omitempty"` // 0 if the frequency of the clock isn't known
	Cycles          uint64  `json:"cycles"`       // sleep excluded
	Packets         uint64  `json:"packets"`      // received
	CyclesPerPacket uint64  `json:"cycles_per_packet,omitempty"`
	PacketsPerBatch uint64  `json:"packets_per_batch,omitempty"`
	Fill            uint64  `json:"fill,omitempty"` // of the fullest rx queue
	Upcalls         uint64  `json:"upcalls,omitempty"`
	CyclesPerUpcall uint64  `json:"cycles_per_upcall,omitempty"`

	// Flight records only.
	Offset float64  `json:"offset_us,omitempty"` // of its end from the stall's end
	Sleep  float64  `json:"sleep_us,omitempty"`
	Drops  uint64   `json:"drops,omitempty"`
	Queue  string   `json:"queue,omitempty"` // that took most of it, as "dpdk0 0"
	After  []string `json:"after,omitempty"` // kinds of time before it that belong to none
}

// Stall is an iteration that took too long or was reported for another reason.
type Stall struct {
	Thread string `json:"thread"` // as logged, "pmd-c01/id:8"; empty if not known
	Core   int    `json:"core"`   // -1 if not known
	Epoch  int    `json:"epoch"`  // counts how often the thread's iterations started anew
	Place

	Iteration uint64    `json:"iteration"`
	Time      time.Time `json:"time,omitzero"` // of its end, or of logging
	Micros    float64   `json:"us"`            // as reported, else from its cycles
	Cycles    uint64    `json:"cycles,omitempty"`
	Reported  bool      `json:"reported"` // by a message of its own; otherwise it is a row of another's neighborhood
	Reasons   []string  `json:"reasons,omitempty"`
	Known     bool      `json:"known"` // its row is there: the counts below are known
	Packets   uint64    `json:"packets,omitempty"`
	Upcalls   uint64    `json:"upcalls,omitempty"`
	Fill      uint64    `json:"fill,omitempty"`

	Kind   Kind               `json:"kind"`    // what most of its length is put down to
	Lost   float64            `json:"lost_us"` // how much longer it took than its packets take
	Loss   *Loss              `json:"loss,omitempty"`
	Causes []suspicious.Cause `json:"causes,omitempty"` // flight records only
	Said   string             `json:"said,omitempty"`   // causes in words, as a log of this module has them

	Neighborhood []Row `json:"neighborhood,omitempty"` // oldest first; empty if it was lost or left out
	Culprit      int   `json:"culprit"`                // index of its row there, or -1
}

// Loss is an estimate of packets lost in a stall.
type Loss struct {
	Packets  uint64  `json:"packets"`       // most that can have been lost
	Rate     float64 `json:"rate"`          // packets per second that arrive around it
	Capacity uint64  `json:"capacity"`      // packets that the rx queues hold
	Assumed  bool    `json:"assumed"`       // the capacity isn't known
	Why      string  `json:"why,omitempty"` // there is no estimate
}

// Histogram counts values in bins.
type Histogram struct {
	Title       string       `json:"title"` // "cycles/it"
	Walls       []uint64     `json:"walls"` // inclusive upper bounds, rising
	Counts      []uint64     `json:"counts"`
	Percentiles []Percentile `json:"percentiles,omitempty"`
}

// Percentile says that so many percent of the values are not larger than Value.
type Percentile struct {
	Percent float64 `json:"percent"`
	Value   uint64  `json:"value"`
	Beyond  bool    `json:"beyond,omitempty"` // all walls: Value is the last of them
}

// Milli is a row of a millisecond history.
type Milli struct {
	Number          uint64  `json:"ms"` // of the millisecond, as printed: a stall leaves some out
	Iterations      uint64  `json:"iterations"`
	Micros          float64 `json:"us,omitempty"` // how long it really lasted, if known
	Cycles          uint64  `json:"cycles"`
	CyclesPerIter   uint64  `json:"cycles_per_iteration,omitempty"`
	Packets         uint64  `json:"packets"`
	CyclesPerPacket uint64  `json:"cycles_per_packet,omitempty"`
	PacketsPerBatch uint64  `json:"packets_per_batch,omitempty"`
	Fill            uint64  `json:"fill,omitempty"`
	Upcalls         uint64  `json:"upcalls,omitempty"`
	CyclesPerUpcall uint64  `json:"cycles_per_upcall,omitempty"`
}

// Measured is what a show command printed of a PMD, or of the main thread. What the
// text doesn't have is nil or empty.
type Measured struct {
	Place
	Command string    `json:"command"` // "pmd-perf-show"
	Name    string    `json:"name,omitempty"`
	Core    int       `json:"core"`           // -1 if not known
	NUMA    int       `json:"numa"`           // -1 if not known
	Main    bool      `json:"main,omitempty"` // the main thread
	Time    time.Time `json:"time,omitzero"`
	Clock   string    `json:"clock,omitempty"`   // time of day as printed, where the day isn't known
	Seconds float64   `json:"seconds,omitempty"` // since the last clear
	Hz      float64   `json:"tsc_hz,omitempty"`

	Iterations      *uint64  `json:"iterations,omitempty"`
	IdleIterations  *uint64  `json:"idle_iterations,omitempty"`
	BusyIterations  *uint64  `json:"busy_iterations,omitempty"`
	SleepIterations *uint64  `json:"sleep_iterations,omitempty"`
	SleepMicros     *uint64  `json:"sleep_us,omitempty"`
	UsedCycles      *uint64  `json:"used_cycles,omitempty"`
	UsedPercent     *float64 `json:"used_percent,omitempty"` // of all cycles
	IdlePercent     *float64 `json:"idle_percent,omitempty"` // of used cycles
	BusyPercent     *float64 `json:"busy_percent,omitempty"` // of used cycles
	RxPackets       *uint64  `json:"rx_packets,omitempty"`
	TxPackets       *uint64  `json:"tx_packets,omitempty"`
	TxBatches       *uint64  `json:"tx_batches,omitempty"`
	Passes          *uint64  `json:"passes,omitempty"`
	CyclesPerPacket *float64 `json:"cycles_per_packet,omitempty"`
	Upcalls         *uint64  `json:"upcalls,omitempty"`
	LostUpcalls     *uint64  `json:"lost_upcalls,omitempty"` // flows that could not be installed; their packets may have been forwarded
	MicrosPerUpcall *float64 `json:"us_per_upcall,omitempty"`

	Histograms   []Histogram `json:"histograms,omitempty"`
	History      []Row       `json:"iteration_history,omitempty"`   // oldest first
	Milliseconds []Milli     `json:"millisecond_history,omitempty"` // oldest first

	Queues   []Queue  `json:"queues,omitempty"`
	Overhead *float64 `json:"overhead_percent,omitempty"` // of the PMD's cycles, outside of its queues

	Events []Count `json:"events,omitempty"` // of the whole program, from coverage/show
}

// Count is how often something happened since the program's start.
type Count struct {
	Name      string  `json:"name"`
	Total     uint64  `json:"total"`
	PerSecond float64 `json:"per_second"` // in the last seconds
	PerMinute float64 `json:"per_second_in_last_minute"`
}

// Queue is an rx queue and how much of its PMD it uses.
type Queue struct {
	Port    string   `json:"port"`
	ID      int      `json:"id"`
	Size    int      `json:"size,omitempty"`
	Enabled bool     `json:"enabled"`
	Percent *float64 `json:"percent,omitempty"`
}

// Series is a counter over time.
type Series struct {
	Name   string  `json:"name"` // "rx_missed_errors of dpdk0"
	Place          // of its first point
	Points []Point `json:"points"` // oldest first; the ends of all rises, at most MaxPoints
}

// Point is a counter's value at a time.
type Point struct {
	Time  time.Time `json:"time"`
	Value float64   `json:"value"`
}

// Note is something that the evidence says beside stalls: a reload, a long poll
// interval of another thread.
type Note struct {
	Place
	Time   time.Time `json:"time,omitzero"`
	Thread string    `json:"thread,omitempty"`
	Topic  Topic     `json:"topic"`
	Text   string    `json:"text"`
}

// Topic is what a note is about.
type Topic string

// The topics.
const (
	TopicReload    Topic = "reload"     // queues were assigned anew
	TopicBalance   Topic = "balance"    // PMD auto load balance
	TopicSleep     Topic = "sleep"      // the longest sleep of PMDs
	TopicPinned    Topic = "pinned"     // a queue pinned to a core
	TopicNotPolled Topic = "not-polled" // a queue that nobody polls
	TopicLongPoll  Topic = "long-poll"  // another thread was off for long
	TopicBlocked   Topic = "blocked"    // a thread waited for another
	TopicDropped   Topic = "dropped"    // messages lost to the rate limit
	TopicGap       Topic = "gap"        // messages missing from the text
	TopicClock     Topic = "clock"      // frequency of the clock
	TopicThreshold Topic = "threshold"  // thresholds were set
)

// Threshold is a setting of the log of suspicious iterations.
type Threshold struct {
	Place
	Time      time.Time `json:"time,omitzero"` // from when on; zero for all of the evidence
	On        bool      `json:"on"`
	Micros    uint64    `json:"us"`
	QueueFill uint64    `json:"queue_fill,omitempty"`
	Before    uint64    `json:"before,omitempty"` // iterations
	After     uint64    `json:"after,omitempty"`  // iterations
	Extend    bool      `json:"extend,omitempty"`
	Inferred  bool      `json:"inferred,omitempty"` // the evidence doesn't say it: at most this, as shown by what was reported

	flight bool // from a flight record, which repeats it with each event
}
