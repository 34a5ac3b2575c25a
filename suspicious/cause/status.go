package cause

import "time"

// readEvery is how often the cheap counters are read. A reading took 13 us where it was
// measured, and one of the system's counters, which there are fewer of, 14 us, so that the
// reader's core gives some 2 % to it.
const readEvery = time.Millisecond

// Options says which probes to try.
type Options struct {
	// Most is the most telling source of context switches to try; zero for BPF. It is
	// for those who know that they don't want one, and for tests.
	Most Source
}

// A Source of context switches.
type Source int

// The sources, the most telling first.
const (
	BPF        Source = iota // tells who ran instead, states, system calls, wake-ups, interrupts; root
	PerfCore                 // tells who ran instead; CAP_PERFMON
	PerfThread               // tells when the thread was off its core, and whether it was preempted
	Counters                 // none: sums only
)

// A Status says of one probe whether it runs.
type Status struct {
	Probe string `json:"probe"`
	Runs  bool   `json:"runs"`
	Why   string `json:"why,omitempty"` // it doesn't run
}

// String returns the status on one line.
func (s Status) String() string {
	if s.Runs {
		return s.Probe + ": runs"
	}
	return s.Probe + ": off, " + s.Why
}

func statusOf(probe string, err error) Status {
	if err != nil {
		return Status{Probe: probe, Why: err.Error()}
	}
	return Status{Probe: probe, Runs: true}
}
