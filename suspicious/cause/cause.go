package cause

import "github.com/pmdperf/pmdperf/suspicious"

// What a cause is made of. The types belong to package suspicious, whose reports
// carry them; who asks for causes here need not name it.
type (
	Cause     = suspicious.Cause
	Kind      = suspicious.CauseKind
	Exactness = suspicious.Exactness
)

// The kinds of cause.
const (
	Unknown    = suspicious.CauseUnknown
	Work       = suspicious.CauseWork
	Upcalls    = suspicious.CauseUpcalls
	Preempted  = suspicious.CausePreempted
	Throttled  = suspicious.CauseThrottled
	Runtime    = suspicious.CauseRuntime
	Blocked    = suspicious.CauseBlocked
	Slept      = suspicious.CauseSlept
	Stopped    = suspicious.CauseStopped
	Hypervisor = suspicious.CauseHypervisor
	Faults     = suspicious.CauseFaults
	Interrupts = suspicious.CauseInterrupts
	Reload     = suspicious.CauseReload
	NumKinds   = suspicious.NumCauseKinds
)

// The degrees of exactness.
const (
	Inferred = suspicious.Inferred
	Sampled  = suspicious.Sampled
	Exact    = suspicious.Exact
)
