package investigate

import "time"

// ResultVersion is the version of the JSON of a Result. It rises when a member changes
// its meaning or goes away, not when there is more.
const ResultVersion = 1

// Result is what an investigation came to.
type Result struct {
	Version    int         `json:"version"`
	From       time.Time   `json:"from,omitzero"` // of all evidence with a time
	To         time.Time   `json:"to,omitzero"`
	Sources    []Source    `json:"sources"`
	Thresholds []Threshold `json:"thresholds"` // in force, oldest first

	Findings []Finding `json:"findings"` // those with most time lost first
	PMDs     []PMD     `json:"pmds"`     // by source and core
	// Stalls are in the order of their times, at most MaxStalls; those left out are the
	// shortest.
	Stalls   []Stall    `json:"stalls"`
	LeftOut  uint64     `json:"stalls_left_out,omitempty"`
	Measured []Measured `json:"measured,omitempty"`
	Counters []Series   `json:"counters,omitempty"`
	Rises    []Rise     `json:"rises,omitempty"` // of drop counters, the largest first
	Notes    []Note     `json:"notes,omitempty"` // in the order of their times, at most 100 of a topic
}

// Source is something that was read.
type Source struct {
	Name   string   `json:"name"`
	Kinds  []string `json:"kinds"` // what was recognised in it: "log", "flight record", "pmd-perf-show"
	Lines  int      `json:"lines"`
	Events uint64   `json:"events"`          // suspicious iterations reported, or found without their report
	Unread int      `json:"unread"`          // lines that look like evidence and could not be read
	Lost   []Lost   `json:"lost,omitempty"`  // the first of them
	Error  string   `json:"error,omitempty"` // why it could not be read (to its end)
}

// Lost is a line that could not be read.
type Lost struct {
	Line int    `json:"line"`
	Text string `json:"text"` // its beginning
}

// PMD sums up the stalls of a thread.
type PMD struct {
	Thread     string    `json:"thread"`
	Core       int       `json:"core"` // -1 if not known
	From       time.Time `json:"from,omitzero"`
	To         time.Time `json:"to,omitzero"`
	Hz         float64   `json:"tsc_hz,omitempty"` // 0 if not known
	Reported   uint64    `json:"reported"`         // iterations
	Unreported uint64    `json:"unreported"`       // over the threshold, but without a report of their own
	Rows       uint64    `json:"rows"`             // iterations seen
	Stalled    float64   `json:"stalled_us"`       // length of the stalls
	Longest    float64   `json:"longest_us"`
	Share      float64   `json:"share,omitempty"`   // of From to To spent in stalls, 0 to 1
	Dropped    uint64    `json:"dropped,omitempty"` // messages, by the rate limit
	Missing    uint64    `json:"missing,omitempty"` // messages, from the text
	Epochs     int       `json:"epochs"`            // how often its iterations started, at least 1

	// Of iterations that are no stalls; 0 if there are none of that sort.
	CyclesPerPacket uint64  `json:"cycles_per_packet,omitempty"` // median
	CyclesPerUpcall uint64  `json:"cycles_per_upcall,omitempty"` // median
	Usual           uint64  `json:"usual_cycles,omitempty"`      // median of an iteration
	Rate            float64 `json:"rate,omitempty"`              // packets per second that arrive

	Lengths *Histogram `json:"lengths,omitempty"` // of the stalls, in us
}

// Kind is a kind of finding.
type Kind string

// The kinds of finding.
const (
	LostCPU      Kind = "lost-cpu"       // the thread didn't have its CPU
	Stopped      Kind = "stopped"        // the same, for so long that it was rather stopped
	CommonCause  Kind = "common-cause"   // all PMDs at the same instant
	Upcalls      Kind = "upcalls"        // an upcall storm
	QueueFull    Kind = "queue-full"     // an rx queue was full
	Bursts       Kind = "bursts"         // the sender is bursty
	Overload     Kind = "overload"       // more packets than the PMD can do
	SlowPackets  Kind = "slow-packets"   // packets took longer than usual
	Reload       Kind = "reload"         // reload or rebalance
	Sleep        Kind = "sleep"          // the PMD sleeps too long
	Overhead     Kind = "overhead"       // cycles of the main loop that no queue shows
	Uneven       Kind = "uneven"         // one queue or PMD does most of the work
	LowThreshold Kind = "low-threshold"  // the threshold lies in what is usual
	SelfDisturb  Kind = "self-disturbed" // logging itself made iterations long
	Clock        Kind = "clock"          // the clock can't be believed
	DataLost     Kind = "data-lost"      // what was logged isn't all that happened
	Unexplained  Kind = "unexplained"    // one-off stalls of unknown cause
	Blocked      Kind = "blocked"        // the loop waited in the kernel
	Work         Kind = "work"           // the loop's own work took that long
	Drops        Kind = "drops"          // what drop counters say about the stalls
	OtherThread  Kind = "other-thread"   // a thread that is no PMD was off or busy for long
	Quiet        Kind = "quiet"          // there is nothing to find
)

// Kinds returns all of them.
func Kinds() []Kind {
	return []Kind{
		LostCPU, Stopped, CommonCause, Upcalls, QueueFull, Bursts,
		Overload, SlowPackets, Reload, Sleep, Overhead, Uneven,
		LowThreshold, SelfDisturb, Clock, DataLost, Unexplained, Blocked,
		Work, Drops, OtherThread, Quiet,
	}
}

// Confidence says how sure a finding is.
type Confidence string

// The degrees of confidence.
const (
	High   Confidence = "high"
	Medium Confidence = "medium"
	Low    Confidence = "low"
)

// Finding is something that was found out.
type Finding struct {
	ID         string     `json:"id"` // its kind, made unique: "data-lost", "lost-cpu-2"
	Kind       Kind       `json:"kind"`
	Title      string     `json:"title"`   // one line, without full stop
	Threads    []string   `json:"threads"` // whom it is about; empty for all
	Confidence Confidence `json:"confidence"`
	Because    string     `json:"because"`         // why the confidence is what it is, a clause
	Lost       float64    `json:"lost_us"`         // time lost to it
	Share      float64    `json:"share,omitempty"` // of the time looked at, 0 to 1
	Count      uint64     `json:"count"`           // iterations concerned
	Text       []string   `json:"text"`            // sentences
	Evidence   []Evidence `json:"evidence"`        // where it can be seen, the best first
	Loss       *Loss      `json:"loss,omitempty"`  // of all its stalls together
	Next       []Step     `json:"next"`
	Stalls     []int      `json:"stalls,omitempty"` // indexes in Result.Stalls, the longest first, at most 1000
}

// Evidence is a place that shows something.
type Evidence struct {
	Place
	Text  string `json:"text"`
	Stall *int   `json:"stall,omitempty"` // index in Result.Stalls, if it is one
}

// Step is what to do next.
type Step struct {
	Command string `json:"command,omitempty"` // to be typed; empty if there is none
	Why     string `json:"why"`
}

// Rise is a rise of a counter and the stall next to it.
type Rise struct {
	Counter string    `json:"counter"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Amount  float64   `json:"amount"`
	Stall   *int      `json:"stall,omitempty"` // index in Result.Stalls of the longest within, if any
	Stalls  int       `json:"stalls"`          // how many were within
	Text    string    `json:"text"`            // "rx_missed rose by 4,211 in the 2 s around the 3.1 ms stall on core 4"
	Place
}
