package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/cause"
	"github.com/pmdperf/pmdperf/suspicious/explain"
	"github.com/pmdperf/pmdperf/suspicious/gotrace"
	"github.com/pmdperf/pmdperf/suspicious/ovslog"
)

// eventsKept is how many events the control server can show: of the longest
// neighborhood they take 8 MiB.
const eventsKept = 128

// shortestStuck is the shortest time for which a PMD may be called stuck.
const shortestStuck = 10 * time.Millisecond

// superviseFlags say which iterations of the verb run are suspicious and what is
// written of them.
type superviseFlags struct {
	settings              suspicious.Settings
	stuck                 time.Duration
	probes                probing
	logFile, flightRecord string
	goTrace               bool
}

// probing says whether probes look for the causes of slow iterations.
type probing string

const (
	probesAuto probing = "auto" // those that the privileges allow
	probesOff  probing = "off"
)

// add adds the flags to the command.
func (f *superviseFlags) add(flags *pflag.FlagSet) {
	// A stall leaves queues full for many iterations, which are of the same event. The
	// thresholds are twice and four times those of Open vSwitch: the Go runtime parks a
	// thread for some 150 us many times a second.
	f.settings = suspicious.Settings{On: true, Before: 5, After: 5, Extend: true}
	l := &f.settings.Limits
	addFlag(flags, &l.Iteration, "slow-iteration", "duration", "500us", "an iteration that takes longer is suspicious, 0 for none", parseDuration)
	addFlag(flags, &l.PollGap, "slow-poll", "duration", "1ms", "so is one that takes longer with its sleep, 0 for none", parseDuration)
	addFlag(flags, &l.Gap, "slow-gap", "duration", "1ms", "so is one that comes after a longer time that belongs to none, as of a reload, 0 for none", parseDuration)
	addFlag(flags, &l.QueueFill, "full-queue", "packets", "512", "so is one that finds so many packets in a queue, 0 for none", parseThreshold)
	addFlag(flags, &l.Adaptive, "unusual", "times", "0", "so is one that takes so many times the 99.9th percentile of the last 10 s, 0 for none", parseThreshold)
	addFlag(flags, &l.FullBatches, "full-batches", "count", "0", "so is one with so many full batches in a row of one rx queue, 0 for none", parseThreshold)
	addFlag(flags, &l.Drops, "drops", "packets", "0", "so is one that drops so many packets, 0 for none", parseThreshold)
	addFlag(flags, &f.stuck, "stuck", "duration", "1s", "warn of a PMD that completes no iteration for so long, 0 for never", parseDuration)
	addFlag(flags, &f.probes, "probes", "probes", string(probesAuto), "what looks for the causes of slow iterations: auto (all that the privileges allow) or off", oneOf(probesAuto, probesOff))
	addFlag(flags, &f.logFile, "log-file", "file", "", "append suspicious iterations to this file, in the format of Open vSwitch's log", anyText)
	addFlag(flags, &f.flightRecord, "flight-record", "file", "", "append them to this file as lines of JSON, with all that is known", anyText)
	flags.BoolVar(&f.goTrace, "go-trace", false, "write what the Go runtime did around some of them beside that file, for go tool trace, at most every 10 s")
}

// parseThreshold reads a whole number from 0 up.
func parseThreshold(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no threshold: write a whole number from 1 up, or 0 for none", s)
	}
	return n, nil
}

// check returns what is wrong with the flags on any machine.
func (f *superviseFlags) check() error {
	if f.logFile != "" && f.logFile == f.flightRecord {
		return usagef("--log-file and --flight-record name the same file: they need one each")
	}
	if f.goTrace && f.flightRecord == "" {
		return usagef("--go-trace writes files beside the flight record and there is none: add --flight-record")
	}
	if f.stuck < 0 || f.stuck > 0 && f.stuck < shortestStuck {
		return usagef("--stuck %v is not a time that a thread surely runs in: use %v or more, or 0 for never", f.stuck, shortestStuck)
	}
	return asUsage(f.settings.Check())
}

// supervision is the supervisor of a run with what it writes to.
type supervision struct {
	*suspicious.Supervisor
	events *suspicious.Reports
	causes *explain.Explainer
	counts causeCounts
	trace  *gotrace.Recorder // may be nil
	files  []*suspicious.File
	warn   func(string)
	stop   func()
}

// supervise watches over the recorders of a registry until finish. It says which probes
// run, and warns of what is wrong.
func (f *superviseFlags) supervise(g *perf.Registry, say, warn func(string)) (*supervision, error) {
	s := &supervision{events: suspicious.NewReports(eventsKept), warn: warn}
	sinks := []suspicious.Sink{s.events.Add, s.counts.add}
	for _, out := range []struct {
		flag, path string
		sink       func(*suspicious.File) suspicious.Sink
	}{{"--log-file", f.logFile, ovslog.To}, {"--flight-record", f.flightRecord, suspicious.ToFlightRecord}} {
		if out.path == "" {
			continue
		}
		file := suspicious.NewFile(suspicious.FileConfig{Path: out.path})
		if err := file.Open(); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", out.flag, err), s.close())
		}
		s.files = append(s.files, file)
		sinks = append(sinks, out.sink(file))
	}

	if f.goTrace {
		var err error
		if s.trace, err = gotrace.Start(gotrace.Config{Path: f.flightRecord}); err != nil {
			return nil, errors.Join(fmt.Errorf("--go-trace: %w", err), s.close())
		}
		sinks = append(sinks, s.trace.Add)
	}

	ctx, cancel := context.WithCancel(context.Background())
	s.causes = explain.New(cause.Options{})
	var all sync.WaitGroup
	watched := func() { all.Go(func() { announce(s.causes.Status(), say) }) }
	s.Supervisor = suspicious.NewSupervisor(suspicious.Options{Sources: f.sources(ctx, g, s.causes, watched), Sinks: sinks, Causes: s.causes.Causes})
	all.Go(func() { s.Run(ctx) })
	if f.stuck > 0 {
		dog := &suspicious.Watchdog{
			Threshold: f.stuck,
			Loops: func() []suspicious.Pinger {
				return each(g.Recorders(), func(r *perf.Recorder) suspicious.Pinger { return r })
			},
			Examine: s.causes.Examine,
			Report: func(stall suspicious.Stall) {
				warn(strings.Join(append([]string{stall.String()}, stall.Stack...), "\n    at "))
			},
		}
		all.Go(func() { dog.Run(ctx) })
	}
	s.stop = func() { cancel(); all.Wait() }
	return s, nil
}

// sources returns the recorders as they come and go, and gives those that are new the
// settings and probes. It calls watched once, when all have threads to probe.
func (f *superviseFlags) sources(ctx context.Context, g *perf.Registry, causes *explain.Explainer, watched func()) func() []suspicious.Source {
	set := make(map[*perf.Recorder]bool)
	said := f.probes == probesOff
	return func() []suspicious.Source {
		recorders := g.Recorders()
		for _, r := range recorders {
			// One that doesn't answer is asked again.
			set[r] = set[r] || r.SetSuspicion(ctx, f.settings) == nil
			if f.probes != probesOff {
				causes.Watch(r.Name(), r.ThreadID(), r.Core())
			}
		}
		none := func(r *perf.Recorder) bool { return r.ThreadID() == 0 }
		if !said && len(recorders) > 0 && !slices.ContainsFunc(recorders, none) {
			said = true
			watched()
		}
		return each(recorders, func(r *perf.Recorder) suspicious.Source { return r })
	}
}

// each returns what as makes of every recorder.
func each[T any](recorders []*perf.Recorder, as func(*perf.Recorder) T) []T {
	ts := make([]T, len(recorders))
	for i, r := range recorders {
		ts[i] = as(r)
	}
	return ts
}

// finish ends the supervision of loops that have ended. What was not written is
// warned about.
func (s *supervision) finish() error {
	s.stop()
	err := s.causes.Close()
	if n := s.HeldBack(); n > 0 {
		s.warn(fmt.Sprintf("%d suspicious iterations were not reported: there were too many a minute", n))
	}
	return errors.Join(err, s.close())
}

// probes returns in lines of text which probes look for causes, and which don't and
// why.
func (s *supervision) probes() []string {
	var lines []string
	for _, st := range s.causes.Status() {
		if st.Err != nil {
			lines = append(lines, fmt.Sprintf("%s: none: %v", st.Name, st.Err))
		}
		for _, p := range st.Probes {
			lines = append(lines, fmt.Sprintf("%s: %s", st.Name, p))
		}
	}
	return lines
}

func (s *supervision) close() error {
	var errs []error
	if s.trace != nil {
		if err := s.trace.Close(); err != nil {
			s.warn(fmt.Sprintf("what the Go runtime did was not written: %v", err))
		}
	}
	for _, f := range s.files {
		if n, err := f.Lost(); n > 0 {
			s.warn(fmt.Sprintf("%d suspicious iterations were not written: %v", n, err))
		}
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// showSuspicious writes how many iterations were suspicious.
func showSuspicious(w io.Writer, snaps []*perf.Snapshot) {
	for _, s := range snaps {
		c := &s.Suspicious
		fmt.Fprintf(w, "%s: %d suspicious iterations, %d of them merged with others, %d without a report", s.Name, c.Iterations, c.Merged, c.NotCaptured)
		for r := range suspicious.NumReasons {
			if c.ByReason[r] > 0 {
				fmt.Fprintf(w, "; %s %d", r, c.ByReason[r])
			}
		}
		fmt.Fprintln(w)
	}
}
