package pmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
)

// maxAround is how many iterations may be reported besides the suspicious one.
const maxAround = suspicious.MaxRecords - 1

// threshold is an option of pmd-perf-log-set that says from when on an iteration is
// suspicious.
type threshold struct {
	option string
	what   string // follows the option, in the usage
	name   string // in the text and the JSON
	max    uint64
	at     func(*suspicious.Limits) any // *time.Duration, *int or *uint64; zero is no threshold
}

// Options that Open vSwitch has too; the others are shown only where they are set.
const (
	optMicros    = "-us"
	optQueueFill = "-q"
)

// thresholds returns all. The highest values are those that suspicious.Settings takes.
func thresholds() []threshold {
	const longest = uint64(time.Hour / time.Microsecond)
	type limits = suspicious.Limits
	return []threshold{
		{optMicros, "usec", "us_thr", longest, func(l *limits) any { return &l.Iteration }},
		{optQueueFill, "qlen", "q_thr", math.MaxInt32, func(l *limits) any { return &l.QueueFill }},
		{"-poll-gap", "usec", "poll_gap_us_thr", longest, func(l *limits) any { return &l.PollGap }},
		{"-gap", "usec", "gap_us_thr", longest, func(l *limits) any { return &l.Gap }},
		{"-cycles-per-packet", "cycles", "cycles_per_packet_thr", math.MaxInt32, func(l *limits) any { return &l.CyclesPerPacket }},
		{"-upcalls", "count", "upcalls_thr", math.MaxInt32, func(l *limits) any { return &l.Upcalls }},
		{"-cycles-per-upcall", "cycles", "cycles_per_upcall_thr", math.MaxInt32, func(l *limits) any { return &l.CyclesPerUpcall }},
		{"-full-batches", "count", "full_batches_thr", suspicious.MaxFullBatches, func(l *limits) any { return &l.FullBatches }},
		{"-drops", "count", "drops_thr", math.MaxInt32, func(l *limits) any { return &l.Drops }},
		{"-rx-drops", "count", "rx_drops_thr", math.MaxInt32, func(l *limits) any { return &l.RxDrops }},
		{"-adaptive", "times", "adaptive_thr", suspicious.MaxAdaptive, func(l *limits) any { return &l.Adaptive }},
	}
}

// get returns the threshold in the unit of the option, 0 for none.
func (t *threshold) get(l *suspicious.Limits) uint64 {
	switch p := t.at(l).(type) {
	case *time.Duration:
		return uint64(p.Microseconds())
	case *int:
		return uint64(*p)
	case *uint64:
		return *p
	}
	return 0
}

func (t *threshold) set(l *suspicious.Limits, n uint64) {
	switch p := t.at(l).(type) {
	case *time.Duration:
		*p = time.Duration(n) * time.Microsecond
	case *int:
		*p = int(n)
	case *uint64:
		*p = n
	}
}

// logOptions are the options of pmd-perf-log-set, and the part of its usage that Open
// vSwitch doesn't have.
func logOptions() (os []option, own string) {
	os = []option{number("-b", 0, maxAround), number("-a", 0, maxAround), plain("-e"), plain("-ne")}
	for _, t := range thresholds() {
		os = append(os, orOff(number(t.option, 1, t.max)))
		if t.option != optMicros && t.option != optQueueFill {
			own += fmt.Sprintf(" [%s %s]", t.option, t.what)
		}
	}
	return os, own + " [" + optCore + " core]; every threshold also takes \"off\""
}

// logText returns settings as Open vSwitch logs them, with thresholds that it doesn't
// have at the end.
func logText(s *suspicious.Settings) string {
	state := "off"
	if s.On {
		state = "on"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, before=%d, after=%d, extend=%t", state, s.Before, s.After, s.Extend)
	for _, t := range thresholds() {
		n := t.get(&s.Limits)
		switch {
		case n != 0:
			fmt.Fprintf(&b, ", %s=%d", t.name, n)
		case t.option == optMicros || t.option == optQueueFill:
			fmt.Fprintf(&b, ", %s=off", t.name)
		}
	}
	return b.String()
}

// changeLog makes the changes to s that a client wants.
func changeLog(s *suspicious.Settings, a *arguments) error {
	if a.hasWord {
		if a.word != "on" && a.word != "off" {
			return &argumentError{text: fmt.Sprintf("%q is neither on nor off", a.word)}
		}
		s.On = a.word == "on"
	}
	if n, ok := a.numbers["-b"]; ok {
		s.Before = int(n)
	}
	if n, ok := a.numbers["-a"]; ok {
		s.After = int(n)
	}
	if a.flags["-e"] && a.flags["-ne"] {
		return &argumentError{text: "-e and -ne are opposites"}
	}
	if a.flags["-e"] || a.flags["-ne"] {
		s.Extend = a.flags["-e"]
	}
	for _, t := range thresholds() {
		if n, ok := a.numbers[t.option]; ok {
			t.set(&s.Limits, n)
		}
	}
	if err := s.Check(); err != nil {
		return &argumentError{text: err.Error()}
	}
	return nil
}

// logAnswer is what pmd-perf-log-set answers.
type logAnswer struct {
	Threads []logThread `json:"threads"`
	remarks
}

type logThread struct {
	identity
	On     bool `json:"on"`
	Before int  `json:"before"` // iterations before the suspicious one
	After  int  `json:"after"`  // and after it
	Extend bool `json:"extend"` // another suspicious one in that range extends it
	// Thresholds are those that there are, by name.
	Thresholds map[string]uint64 `json:"thresholds"`
	// Raised is the level that logging found too low and raised to detailed.
	Raised string `json:"level_raised_from,omitempty"`

	text string
}

func newLogThread(id identity, s *suspicious.Settings) logThread {
	t := logThread{identity: id, On: s.On, Before: s.Before, After: s.After, Extend: s.Extend,
		Thresholds: map[string]uint64{}, text: logText(s)}
	for _, thr := range thresholds() {
		if n := thr.get(&s.Limits); n != 0 {
			t.Thresholds[thr.name] = n
		}
	}
	return t
}

func (l *logAnswer) json() any { return l }

func (l *logAnswer) write(w io.Writer) {
	for _, t := range l.Threads {
		fmt.Fprintf(w, "core %d: %s\n", t.Core, t.text)
		if t.Raised != "" {
			fmt.Fprintf(w, "core %d: level raised from %s to %s\n", t.Core, t.Raised, perf.Detailed)
		}
	}
	io.WriteString(w, l.lines())
}

func logSet(ctx context.Context, c *call) (answer, error) {
	a := &logAnswer{Threads: []logThread{}}
	if !c.hasWord && !c.changes() {
		if err := c.look(ctx, perf.Want{}); err != nil {
			return nil, err
		}
		for _, s := range c.snaps {
			a.Threads = append(a.Threads, newLogThread(identity{s.Name, s.Core, s.NUMA}, &s.Suspicion))
		}
		a.remarks = c.remarks
		return a, nil
	}

	// Of two clients at once each keeps what the other changed.
	c.logSet.Lock()
	defer c.logSet.Unlock()
	type state struct {
		known    bool
		settings suspicious.Settings
		level    perf.Level
	}
	states := make([]state, len(c.pmds))
	const failed = "not set"
	err := c.change(ctx, failed, func(ctx context.Context, i int, r *perf.Recorder) error {
		s := c.snapshots.Get().(*perf.Snapshot)
		defer c.snapshots.Put(s)
		err := r.Snapshot(ctx, perf.Want{}, s)
		states[i] = state{err == nil, s.Suspicion, s.Level}
		return err
	})
	// What makes no sense for one of the PMDs must not change the others.
	for i := range states {
		if err := changeLog(&states[i].settings, c.arguments); states[i].known && err != nil {
			return nil, err
		}
	}
	threads := make([]logThread, len(c.pmds))
	err = errors.Join(err, c.change(ctx, failed, func(ctx context.Context, i int, r *perf.Recorder) error {
		s := &states[i]
		if !s.known {
			return nil // as said already
		}
		threads[i] = newLogThread(identify(r), &s.settings)
		// Below level detailed much is not recorded that could be suspicious, and at level
		// off nothing is.
		if c.word == "on" && s.level != perf.Detailed {
			if err := r.SetLevel(ctx, perf.Detailed); err != nil {
				return err
			}
			threads[i].Raised = s.level.String()
		}
		if err := r.SetSuspicion(ctx, s.settings); err != nil {
			return err
		}
		if c.Log != nil {
			c.Log.LogAttrs(ctx, slog.LevelInfo, "pmd-perf-log-set: "+threads[i].text, slog.String("pmd", r.Name()))
		}
		return nil
	}))
	a.Threads = threads
	return a, err
}

// changes reports whether there is an option that changes something.
func (c *call) changes() bool {
	n := len(c.numbers) + len(c.flags)
	if _, ok := c.core(); ok {
		n--
	}
	return n > 0
}
