package observe

import (
	"encoding/json"
	"time"

	"github.com/pmdperf/pmdperf/suspicious/cause"
)

// Version is the version of the records' schema as JSON. It changes when what readers
// know changes its meaning or goes away, not when there is more.
const Version = 1

// A Record is something that was observed: a [*Thread], [*Spell], [*Iteration] or
// [*Summary].
type Record interface {
	// MarshalJSON returns the record with its type and the schema's version.
	MarshalJSON() ([]byte, error)
	// String returns the record as text without newline at its end.
	String() string
}

// A Thread says that a thread is watched from now on, or no longer.
type Thread struct {
	Time    time.Time      `json:"time"`
	PID     int            `json:"pid"`
	TID     int            `json:"tid"`
	Name    string         `json:"thread"`
	Core    int            `json:"core"` // the only one that it may run on, -1 if there are more
	Watched bool           `json:"watched"`
	Probes  []cause.Status `json:"probes,omitempty"`
}

// Kind says what kept a thread from its work.
type Kind string

// The kinds of spell.
const (
	OffCore   Kind = "off core"  // another thread had the core, or it slept or was stopped
	Interrupt Kind = "interrupt" // it had its core, but an interrupt ran
	Pause     Kind = "pause"     // it had its core, but the core stood still
)

// A Spell is a time in which a thread did no work.
type Spell struct {
	Thread string        `json:"thread"`
	TID    int           `json:"tid"`
	Core   int           `json:"core"`
	Kind   Kind          `json:"kind"`
	Begin  time.Time     `json:"begin"`
	Took   time.Duration `json:"ns"`
	Lasts  bool          `json:"lasts,omitempty"` // it is not over
	Causes []cause.Cause `json:"causes"`
}

// An Iteration is a suspicious iteration from the process's log, with what was observed of
// its thread meanwhile.
type Iteration struct {
	Logged    time.Time     `json:"logged"`
	Thread    string        `json:"thread"`
	Iteration uint64        `json:"iteration"`
	Reasons   []string      `json:"reasons"`
	Took      time.Duration `json:"ns"`
	Begin     time.Time     `json:"begin"` // as logged, or estimated from the time of logging
	Estimated bool          `json:"estimated"`
	Watched   bool          `json:"watched"` // there were probes on its thread
	Spells    []*Spell      `json:"spells"`  // that touch it
	Causes    []cause.Cause `json:"causes"`  // of the iteration
}

// A Summary is the last record.
type Summary struct {
	Begin     time.Time       `json:"begin"`
	Took      time.Duration   `json:"ns"`
	Threshold time.Duration   `json:"threshold_ns"`
	Threads   []ThreadSummary `json:"threads"`
	Cores     []CoreSummary   `json:"cores"`

	Iterations int `json:"iterations"` // suspicious ones in the log
	Explained  int `json:"explained"`  // of those, with a spell
	Unread     int `json:"unread"`     // lines of the log that can't be read
}

// A ThreadSummary sums up what was observed of one thread.
type ThreadSummary struct {
	Name     string        `json:"thread"`
	TID      int           `json:"tid"`
	Core     int           `json:"core"`
	Watched  time.Duration `json:"watched_ns"`
	Switches bool          `json:"switches"`          // every spell off the core was seen
	Spells   int           `json:"spells"`            // off its core
	Off      time.Duration `json:"off_ns"`            // how long altogether
	Longest  time.Duration `json:"longest_ns"`        //
	Over     int           `json:"over"`              // spells of any kind over the threshold
	Wait     time.Duration `json:"wait_ns"`           // runnable without a core; -1 if not known
	Faults   int64         `json:"faults"`            // page faults
	Causes   []CauseSum    `json:"causes,omitempty"`  // of spells over the threshold, most first
	Sharers  []CauseSum    `json:"sharers,omitempty"` // who had the core in spells of any length, most first
}

// A CauseSum sums up one cause.
type CauseSum struct {
	Title string        `json:"title"`
	Times int           `json:"times"`
	Took  time.Duration `json:"ns"`
}

// A CoreSummary sums up the interrupts of a core.
type CoreSummary struct {
	Core  int           `json:"core"`
	Lines []cause.Line  `json:"lines"`           // sorts of interrupts, most first
	Timed time.Duration `json:"timed_ns"`        // in those of at least 5 us
	Knows bool          `json:"knows_the_times"` // interrupts were timed
}

func marshal[T any](kind string, v *T) ([]byte, error) {
	head, err := json.Marshal(struct {
		Version int    `json:"version"`
		Type    string `json:"type"`
	}{Version, kind})
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	head[len(head)-1] = ','
	return append(head, body[1:]...), nil
}

// The types without methods, which Marshal would call again.
type (
	plainThread    Thread
	plainSpell     Spell
	plainIteration Iteration
	plainSummary   Summary
)

// MarshalJSON returns the record as JSON.
func (t *Thread) MarshalJSON() ([]byte, error) { return marshal("thread", (*plainThread)(t)) }

// MarshalJSON returns the record as JSON.
func (s *Spell) MarshalJSON() ([]byte, error) { return marshal("spell", (*plainSpell)(s)) }

// MarshalJSON returns the record as JSON.
func (i *Iteration) MarshalJSON() ([]byte, error) {
	return marshal("iteration", (*plainIteration)(i))
}

// MarshalJSON returns the record as JSON.
func (s *Summary) MarshalJSON() ([]byte, error) { return marshal("summary", (*plainSummary)(s)) }
