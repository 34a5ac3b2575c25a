package suspicious

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// A Pinger is a loop that a watchdog looks after, as a *perf.Recorder. It is used as
// the key of a map.
type Pinger interface {
	Name() string
	Core() int
	NUMA() int
	// Ping returns nil when the loop ends a pass or is not to run, and an error if it
	// does neither before ctx ends.
	Ping(ctx context.Context) error
}

// A Stall says that a loop is stuck, or was.
type Stall struct {
	Name       string // of the loop
	Core, NUMA int
	Since      time.Time     // when it ended a pass for the last time, as far as is known
	For        time.Duration // for at least so long it has ended no pass
	Report     int           // counts the reports of this stall, from 1 on
	Over       bool          // it goes on: this is the last report of this stall

	// Doing is what the thread was doing when it was looked at, "" if nothing did, and
	// Stack where its code was, innermost first, nil if that is not known.
	Doing string
	Stack []string
}

// String says it in words.
func (s *Stall) String() string {
	if s.Over {
		return fmt.Sprintf("%s goes on: it completed no iteration for %v", s.Name, s.For.Round(time.Millisecond))
	}
	text := fmt.Sprintf("%s is stuck: no iteration completed for %v", s.Name, s.For.Round(time.Millisecond))
	if s.Doing != "" {
		text += "; it is " + s.Doing
	}
	return text
}

// StallToLog returns a function that writes reports of stalls to l: an error while a
// loop is stuck, a warning when it goes on.
func StallToLog(l *slog.Logger) func(Stall) {
	return func(s Stall) {
		level, text := slog.LevelError, "loop is stuck"
		if s.Over {
			level, text = slog.LevelWarn, "loop goes on"
		}
		attrs := []slog.Attr{slog.String("pmd", s.Name), slog.Int("core", s.Core),
			slog.Time("since", s.Since), slog.Duration("for", s.For), slog.Int("report", s.Report)}
		if s.Doing != "" {
			attrs = append(attrs, slog.String("doing", s.Doing))
		}
		if s.Stack != nil {
			attrs = append(attrs, slog.String("stack", strings.Join(s.Stack, "\n")))
		}
		l.LogAttrs(context.Background(), level, text, attrs...)
	}
}

// A Watchdog reports loops that end no pass for long, while they are stuck: after
// Threshold, then after each doubling of it, and when they go on.
//
// It asks each loop to answer twice in the time of Threshold. A watchdog that did not
// run itself blames nobody: the time in which it was late does not count, so that a
// stopped process or machine is no stall of its loops.
type Watchdog struct {
	// Threshold is how long a loop may take for a pass, 0 for a second. It should not be
	// shorter than some 10 ms, for which a thread may well have to wait for its core.
	Threshold time.Duration
	// Loops returns those to look after now.
	Loops func() []Pinger
	// Examine fills in what the stuck thread is doing, before Report; it may be nil. It
	// may be called for several loops at the same time.
	Examine func(*Stall)
	// Report gets the reports, one at a time.
	Report func(Stall)

	mu sync.Mutex // of Report
}

const defaultStall = time.Second

// Parts of the threshold: how often a loop that runs is asked, and how often one is
// looked at that doesn't answer.
const (
	asksPerThreshold  = 2
	looksPerThreshold = 10
)

// Run watches until ctx ends.
func (w *Watchdog) Run(ctx context.Context) {
	threshold := w.Threshold
	if threshold <= 0 {
		threshold = defaultStall
	}
	var all sync.WaitGroup
	defer all.Wait()
	watched := make(map[Pinger]context.CancelFunc)
	tick := time.NewTicker(threshold / asksPerThreshold)
	defer tick.Stop()
	for {
		there := make(map[Pinger]bool)
		for _, p := range w.Loops() {
			there[p] = true
			if watched[p] == nil {
				loopCtx, cancel := context.WithCancel(ctx)
				watched[p] = cancel
				all.Go(func() { w.watch(loopCtx, p, threshold) })
			}
		}
		for p, cancel := range watched {
			if !there[p] {
				cancel()
				delete(watched, p)
			}
		}
		select {
		case <-ctx.Done():
			for _, cancel := range watched {
				cancel()
			}
			return
		case <-tick.C:
		}
	}
}

// watch looks after one loop.
func (w *Watchdog) watch(ctx context.Context, p Pinger, threshold time.Duration) {
	look := threshold / looksPerThreshold
	s := Stall{Name: p.Name(), Core: p.Core(), NUMA: p.NUMA(), Since: time.Now()}
	var asked time.Time       // when the ping was sent that is not answered, zero if there is none
	var watched time.Duration // how much of the time since then this goroutine ran
	due := threshold
	for {
		begun := time.Now()
		if asked.IsZero() {
			asked = begun
		}
		lookCtx, cancel := context.WithTimeout(ctx, look)
		err := p.Ping(lookCtx)
		cancel()
		if ctx.Err() != nil {
			return
		}
		now := time.Now()
		rest := look - now.Sub(begun) // a ping may fail at once
		if err == nil {
			if s.Report > 0 {
				s.For, s.Over = now.Sub(asked), true
				s.Doing, s.Stack = "", nil
				w.report(&s)
			}
			s.Since, s.Report, s.Over = now, 0, false
			asked, watched, due = time.Time{}, 0, threshold
			rest = threshold / asksPerThreshold
		} else {
			watched += min(max(now.Sub(begun), look), 2*look)
			if watched >= due {
				if s.Doing, s.Stack = "", nil; w.Examine != nil {
					w.Examine(&s)
				}
				s.For = time.Since(asked)
				w.report(&s)
				due *= 2
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
	}
}

// report counts and reports.
func (w *Watchdog) report(s *Stall) {
	s.Report++
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Report(*s)
}
