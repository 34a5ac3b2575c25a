package suspicious

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A CauseKind is a kind of reason for which an iteration takes long.
type CauseKind int

// The kinds of cause.
const (
	CauseUnknown    CauseKind = iota // no probe saw anything
	CauseWork                        // the loop's own code ran: Name is the queue, timer or gap
	CauseUpcalls                     // the loop's own code ran in upcalls
	CausePreempted                   // another task had the core: Name is the task, if known
	CauseThrottled                   // the CPU quota of a cgroup was used up
	CauseRuntime                     // the Go runtime parked the loop: Name is the occasion
	CauseBlocked                     // the loop waited in the kernel: Name is the system call, if known
	CauseSlept                       // the loop slept because it wanted to
	CauseStopped                     // a signal, a debugger or a freezer held the thread: Name says which
	CauseHypervisor                  // the machine itself didn't run
	CauseFaults                      // page faults
	CauseInterrupts                  // interrupts and softirqs of the core: Name is the sort
	CauseReload                      // the loop was parked for a new configuration
	NumCauseKinds
)

var causeKindNames = [NumCauseKinds]string{
	"unknown", "work", "upcalls", "preempted", "throttled", "runtime", "blocked", "slept",
	"stopped", "hypervisor", "faults", "interrupts", "reload",
}

// String returns the kind's name, one word.
func (k CauseKind) String() string {
	if k < 0 || k >= NumCauseKinds {
		return "kind " + strconv.Itoa(int(k))
	}
	return causeKindNames[k]
}

// MarshalText returns the kind's name.
func (k CauseKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText sets the kind from its name.
func (k *CauseKind) UnmarshalText(text []byte) error {
	for i, name := range causeKindNames {
		if name == string(text) {
			*k = CauseKind(i)
			return nil
		}
	}
	return fmt.Errorf("unknown kind of cause %q", text)
}

// Exactness says how much a cause can be trusted.
type Exactness int

// The degrees of exactness.
const (
	Inferred Exactness = iota // it follows from counters that other things move too
	Sampled                   // it was seen at some moments, or between two readings that bracket the iteration
	Exact                     // the kernel or the loop recorded it, with its time
)

var exactnessNames = [...]string{"inferred", "sampled", "exact"}

// String returns the degree as a word.
func (e Exactness) String() string {
	if e < 0 || int(e) >= len(exactnessNames) {
		return "exactness " + strconv.Itoa(int(e))
	}
	return exactnessNames[e]
}

// MarshalText returns the degree as a word.
func (e Exactness) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText sets the degree from its word.
func (e *Exactness) UnmarshalText(text []byte) error {
	for i, name := range exactnessNames {
		if name == string(text) {
			*e = Exactness(i)
			return nil
		}
	}
	return fmt.Errorf("unknown exactness %q", text)
}

// A Cause is one reason why an iteration took long, and the part of it that this
// reason explains. Causes of one iteration don't overlap.
type Cause struct {
	Kind     CauseKind     `json:"kind"`
	Name     string        `json:"name,omitempty"` // who or what; see Kind
	PID      int           `json:"pid,omitempty"`  // thread id of the task that ran instead
	Part     time.Duration `json:"ns"`
	Share    float64       `json:"share"` // of the iteration, 0 to 1
	How      Exactness     `json:"how"`
	Evidence string        `json:"evidence"` // what was seen, a sentence without full stop
}

// Title returns the cause in a few words, as "preempted by sh".
func (c Cause) Title() string {
	switch c.Kind {
	case CauseWork:
		if c.Name != "" {
			return "the loop's own work: " + c.Name
		}
		return "the loop's own work"
	case CauseUpcalls:
		return join("upcalls", ": ", c.Name)
	case CausePreempted:
		if c.Name == "" {
			return "preempted by another task"
		}
		return "preempted by " + c.Name
	case CauseThrottled:
		return "throttled by a cgroup's CPU quota"
	case CauseRuntime:
		return join("parked by the Go runtime", ": ", c.Name)
	case CauseBlocked:
		if c.Name == "" {
			return "asleep in the kernel"
		}
		return "blocked in system call " + c.Name
	case CauseSlept:
		return "the loop's own sleep"
	case CauseStopped:
		return join("stopped", " ", c.Name)
	case CauseHypervisor:
		return join("the hypervisor ran something else", ": ", c.Name)
	case CauseFaults:
		return "page faults"
	case CauseInterrupts:
		return join("interrupts", ": ", c.Name)
	case CauseReload:
		return "reload"
	default:
		return "unknown"
	}
}

func join(s, by, more string) string {
	if more == "" {
		return s
	}
	return s + by + more
}

// String returns the cause on one line, as "preempted by sh: 1.9ms, 95 %, exact (...)".
func (c Cause) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %v, %.0f %%, %s", c.Title(), round(c.Part), 100*c.Share, c.How)
	if c.Evidence != "" {
		fmt.Fprintf(&b, " (%s)", c.Evidence)
	}
	return b.String()
}

// round leaves three digits or so.
func round(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	default:
		return d.Round(100 * time.Nanosecond)
	}
}
