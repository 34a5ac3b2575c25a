package pmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/perf"
)

// logSettings say which iterations of a PMD are suspicious and how much of what
// is around one is reported. It is a plain value.
type logSettings struct {
	On     bool `json:"on"`
	Before int  `json:"before"` // iterations before the suspicious one
	After  int  `json:"after"`  // and after it
	Extend bool `json:"extend"` // another suspicious one in that range extends it

	// Thresholds: an iteration is suspicious that takes longer, and one that finds
	// an rx queue at least so full.
	Duration  time.Duration `json:"-"`
	QueueFill uint64        `json:"queue_fill"`
}

// maxAround is how many iterations may be reported besides the suspicious one: with
// it they are a whole history.
const maxAround = history.Shown - 1

// defaultLogSettings are those of Open vSwitch.
func defaultLogSettings() logSettings {
	return logSettings{Before: 5, After: 5, Duration: 250 * time.Microsecond, QueueFill: 128}
}

// String returns the settings as Open vSwitch logs them.
func (s logSettings) String() string {
	state := "off"
	if s.On {
		state = "on"
	}
	return fmt.Sprintf("%s, before=%d, after=%d, extend=%t, us_thr=%d, q_thr=%d",
		state, s.Before, s.After, s.Extend, s.Duration.Microseconds(), s.QueueFill)
}

// with returns the settings with the changes that a client wants.
func (s logSettings) with(a *arguments) (logSettings, error) {
	if a.hasWord {
		if a.word != "on" && a.word != "off" {
			return s, &argumentError{text: fmt.Sprintf("%q is neither on nor off", a.word)}
		}
		s.On = a.word == "on"
	}
	if n, ok := a.numbers["-b"]; ok {
		s.Before = int(n)
	}
	if n, ok := a.numbers["-a"]; ok {
		s.After = int(n)
	}
	if s.Before+s.After > maxAround {
		return s, &argumentError{text: fmt.Sprintf("%d iterations before and %d after are more than %d", s.Before, s.After, maxAround)}
	}
	if a.flags["-e"] && a.flags["-ne"] {
		return s, &argumentError{text: "-e and -ne are opposites"}
	}
	if a.flags["-e"] || a.flags["-ne"] {
		s.Extend = a.flags["-e"]
	}
	if n, ok := a.numbers["-us"]; ok {
		s.Duration = time.Duration(n) * time.Microsecond
	}
	if n, ok := a.numbers["-q"]; ok {
		s.QueueFill = n
	}
	return s, nil
}

// logs keeps the settings of PMDs that were ever set. Any goroutine may use it.
type logs struct {
	mu sync.Mutex
	of map[*perf.Recorder]logSettings
}

// get returns the settings of a PMD.
func (l *logs) get(r *perf.Recorder) logSettings {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.of[r]; ok {
		return s
	}
	return defaultLogSettings()
}

// change makes the changes that a client wants to the settings of a PMD, and returns
// what they are then.
func (l *logs) change(r *perf.Recorder, a *arguments) (logSettings, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.of[r]
	if !ok {
		s = defaultLogSettings()
	}
	s, err := s.with(a)
	if err != nil {
		return s, err
	}
	if l.of == nil {
		l.of = make(map[*perf.Recorder]logSettings)
	}
	l.of[r] = s
	return s, nil
}

// keep forgets all PMDs but those.
func (l *logs) keep(rs []*perf.Recorder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.of {
		if !slices.Contains(rs, r) {
			delete(l.of, r)
		}
	}
}

// logAnswer is what pmd-perf-log-set answers.
type logAnswer struct {
	Threads []logThread `json:"threads"`
}

type logThread struct {
	identity
	logSettings
	Micros int64 `json:"us"`
	// Raised is the level that logging found too low and raised to detailed.
	Raised string `json:"level_raised_from,omitempty"`
}

func (l logAnswer) json() any { return l }

func (l logAnswer) text() string {
	var b strings.Builder
	for _, t := range l.Threads {
		fmt.Fprintf(&b, "core %d: %v\n", t.Core, t.logSettings)
		if t.Raised != "" {
			fmt.Fprintf(&b, "core %d: level raised from %s to %s\n", t.Core, t.Raised, perf.Detailed)
		}
	}
	return b.String()
}

func logSet(ctx context.Context, c *call) (answer, error) {
	c.logs.keep(c.registry.Recorders())
	// What makes no sense for one of the PMDs must not change the others.
	for _, r := range c.pmds {
		if _, err := c.logs.get(r).with(c.arguments); err != nil {
			return nil, err
		}
	}
	threads := make([]logThread, len(c.pmds))
	err := c.change(ctx, "not set", func(ctx context.Context, i int, r *perf.Recorder) error {
		t := &threads[i]
		t.identity = identify(r)
		var err error
		if c.word == "on" {
			if t.Raised, err = c.raise(ctx, r); err != nil {
				return err
			}
		}
		t.logSettings, err = c.logs.change(r, c.arguments)
		t.Micros = t.Duration.Microseconds()
		return err
	})
	return logAnswer{threads}, err
}

// raise makes a PMD record in detail, without which nothing would ever be found
// suspicious. It returns the name of the level before if that was another.
func (c *call) raise(ctx context.Context, r *perf.Recorder) (from string, err error) {
	s := c.snapshots.Get().(*perf.Snapshot)
	defer c.snapshots.Put(s)
	if err := r.Snapshot(ctx, perf.Want{}, s); err != nil || s.Level == perf.Detailed {
		return "", err
	}
	return s.Level.String(), r.SetLevel(ctx, perf.Detailed)
}
