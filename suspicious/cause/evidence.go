package cause

import (
	"cmp"
	"slices"
	"time"
)

// Evidence is all that the probes saw of a stretch of time. Times are CLOCK_MONOTONIC,
// in ns.
type Evidence struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`

	// Switches says that every time the thread left its core is in Spells, but for Gaps. Named says
	// that those spells tell who ran instead, States that they tell whether the thread
	// slept or was stopped, and in which system call.
	Switches bool    `json:"switches"`
	Named    bool    `json:"named"`
	States   bool    `json:"states"`
	Spells   []Spell `json:"spells,omitempty"`
	Gaps     []Gap   `json:"gaps,omitempty"` // of which some are missing, half of the time at most

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

	// Silences are the times that touch From to To in which the reader of all this, which
	// reads every millisecond, read nothing for long. Own says that it runs in the thread's
	// process: what stops the one stops the other. Continued are the times within From to
	// To, and shortly after, at which it learnt that a stopped process was continued.
	Silences  []Gap   `json:"silences,omitempty"`
	Own       bool    `json:"own"`
	Continued []int64 `json:"continued,omitempty"`

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

	// Spells that ended between the readings, in full length, as Wait counts them: those
	// in which it was runnable all the while, those that it began asleep, and how many.
	Preempted time.Duration `json:"preempted"`
	Asleep    time.Duration `json:"asleep"`
	Sleeps    int           `json:"sleeps"`
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

// Moved returns the five lines that counted most from one reading to another.
func Moved(a, b []Line) []Line {
	was := make(map[string]int64, len(a))
	for _, l := range a {
		was[l.Name] = l.N
	}
	var lines []Line
	for _, l := range b {
		if n := l.N - was[l.Name]; n > 0 {
			lines = append(lines, Line{l.Name, n})
		}
	}
	slices.SortStableFunc(lines, func(x, y Line) int { return cmp.Compare(y.N, x.N) })
	return lines[:min(len(lines), 5)]
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
