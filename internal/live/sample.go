package live

import (
	"time"

	"github.com/pmdperf/pmdperf/export/ovs"
)

// Form is how a target answers.
type Form string

const (
	JSON Form = "JSON"
	Text Form = "text"
)

// Sample is what one look at a target found. It is not changed any more.
type Sample struct {
	Form Form
	// Sent and Arrived are when the target was asked first and had answered, by this
	// machine's clock: what it answered is from in between.
	Sent, Arrived time.Time
	PMDs          []PMD // by core
	Missing       []Missing
	Notes         []string // what the target has to say besides
}

// PMD is what one look found about one thread. Counts and histograms begin at the
// last clear.
type PMD struct {
	Core, NUMA int    // ovs.Unspecified if the target doesn't say
	Name       string // of the thread, if the target tells it
	Level      string // of recording, if the target tells it
	State      string // "running", "parked" or "closed", if the target tells it

	// Hz is how many cycles a second has, NaN if it isn't known. Open vSwitch doesn't
	// print it; then it is what follows from the cycles and times that it does print, and
	// Estimated is set.
	Hz        float64
	Estimated bool

	Seconds float64 // since the last clear; NaN if not known

	Counts     Counts
	Histograms [NumMetrics]Histogram

	Slowest    *ovs.IterationRow  // since the last clear, if the target tells it
	Iterations []ovs.IterationRow // the history, newest first; a text has no Tx, Sleep and times
	Millis     []Milli            // the history, newest first

	clearTick uint64  // of the last clear, 0 if not known
	untilTick uint64  // up to which all is counted, 0 if not known
	sleepHz   float64 // the frequency by which the target computed SleepMicros
}

// Missing is a PMD that gave the target no answer.
type Missing struct {
	Core   int    `json:"core"`
	NUMA   int    `json:"numa"`
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Milli is what happened in about a millisecond. What is not known is NaN.
type Milli struct {
	Age        float64 // seconds from its end to that of the newest
	Seconds    float64 // how long it lasted
	Iterations float64
	Cycles     float64 // in passes
	BusyCycles float64
	Rx         float64 // packets
	Upcalls    float64
	Fill       float64 // of queues, the highest where the target tells it, else the mean
}
