package cause

import "time"

// Evidence is all that the probes saw of a stretch of time. Times are CLOCK_MONOTONIC,
// in ns.
type Evidence struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`

	// Switches says that every time the thread left its core is in Spells. Named says
	// that those spells tell who ran instead, States that they tell whether the thread
	// slept or was stopped, and in which system call.
	Switches bool    `json:"switches"`
	Named    bool    `json:"named"`
	States   bool    `json:"states"`
	Spells   []Spell `json:"spells,omitempty"`

	// Timed says that Interrupts has every interrupt of the core of at least 5 us.
	Timed      bool        `json:"timed"`
	Interrupts []Interrupt `json:"interrupts,omitempty"`

	// Ticking says that the core's timer interrupts come at regular times and are all
	// known. Pauses are when they should have come and didn't.
	Ticking bool    `json:"ticking"`
	Pauses  []Pause `json:"pauses,omitempty"`

	// Thread is what the thread's counters say, System those of its cgroup and core, Go
	// those of the runtime if the thread is of this process. nil if there are no two
	// readings around the time.
	Thread *ThreadCounts `json:"thread,omitempty"`
	System *SystemCounts `json:"system,omitempty"`
	Go     *GoCounts     `json:"go,omitempty"`

	// Samples are what the thread was found doing within the time.
	Samples []Sample `json:"samples,omitempty"`

	// Silent is the longest time that touches From to To in which the reader of all this,
	// which reads every millisecond, read nothing. For SilentWait of it, the reader
	// waited for a core, or all of it if that is not known. Own says that it runs in the
	// thread's process: what stops the one stops the other.
	Silent     time.Duration `json:"silent"`
	SilentFrom int64         `json:"silent_from"`
	SilentWait time.Duration `json:"silent_wait"`
	Own        bool          `json:"own"`

	// FaultPrice is what a page fault took when the probes were opened.
	FaultPrice time.Duration `json:"fault_price"`
}

// ThreadCounts are differences between two readings of the thread's counters, Over
// apart.
type ThreadCounts struct {
	Over time.Duration `json:"over"`

	CPU    time.Duration `json:"cpu"`    // it ran; -1 if not known
	Off    time.Duration `json:"off"`    // it was off its core, as the switches say; -1 if not known
	Wait   time.Duration `json:"wait"`   // it was runnable and waited; -1 if not known
	Faults int64         `json:"faults"` // page faults
	Major  int64         `json:"major"`  // of those, with a wait for a disk
}

// exactCPU reports whether the thread's CPU time and its switches are both exact. The CPU
// time of other processes' threads lags behind by a tick of the kernel.
func (e *Evidence) exactCPU() bool {
	return e.Own && e.Switches && e.Thread != nil && e.Thread.CPU >= 0 && e.Thread.Off >= 0
}

// SystemCounts are differences between two readings of counters of the system.
type SystemCounts struct {
	Over time.Duration `json:"over"`

	Throttled     time.Duration `json:"throttled"`       // its cgroup or one above was out of quota, summed over cores
	ThrottleCount int64         `json:"throttle_count"`  // how often
	Steal         time.Duration `json:"steal"`           // of its core, in steps of 10 ms
	Interrupt     time.Duration `json:"interrupt"`       // of its core, softirqs too, sampled by the kernel's tick
	Lines         []Line        `json:"lines,omitempty"` // interrupts of its core by line, most first
	LinesOver     time.Duration `json:"lines_over"`
}

// A Line is a count of interrupts.
type Line struct {
	Name string `json:"name"`
	N    int64  `json:"n"`
}

// GoCounts are differences between two readings of the runtime's metrics.
type GoCounts struct {
	Over time.Duration `json:"over"`

	Cycles  int64 `json:"gc_cycles"`    // garbage collections that ended
	Pauses  int64 `json:"gc_pauses"`    // times that a collection stopped the world
	Others  int64 `json:"other_pauses"` // times that something else did
	Marking bool  `json:"marking"`      // a collection was under way at the first reading
}

// collecting reports whether a collection was under way at any time.
func (g *GoCounts) collecting() bool { return g != nil && (g.Cycles > 0 || g.Pauses > 0 || g.Marking) }

// A Sample is what the thread was doing at some moment.
type Sample struct {
	Time  int64  `json:"time"`
	State string `json:"state"`          // one letter, as in ps
	Call  string `json:"call,omitempty"` // system call, "none" if in none, "" if running or not known
	Wchan string `json:"wchan,omitempty"`
}
