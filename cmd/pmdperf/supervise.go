package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
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
	logFile, flightRecord string
}

// add adds the flags to the command.
func (f *superviseFlags) add(flags *pflag.FlagSet) {
	// A stall leaves queues full for many iterations, which are of the same event.
	f.settings = suspicious.Settings{On: true, Before: 5, After: 5, Extend: true}
	l := &f.settings.Limits
	addFlag(flags, &l.Iteration, "slow-iteration", "duration", "250us", "an iteration that takes longer is suspicious, 0 for none", parseDuration)
	addFlag(flags, &l.PollGap, "slow-poll", "duration", "1ms", "so is one that takes longer with its sleep, 0 for none", parseDuration)
	addFlag(flags, &l.QueueFill, "full-queue", "packets", "128", "so is one that finds so many packets in a queue, 0 for none", parseThreshold)
	addFlag(flags, &f.stuck, "stuck", "duration", "1s", "warn of a PMD that completes no iteration for so long, 0 for never", parseDuration)
	addFlag(flags, &f.logFile, "log-file", "file", "", "append suspicious iterations to this file, in the format of Open vSwitch's log", anyText)
	addFlag(flags, &f.flightRecord, "flight-record", "file", "", "append them to this file as lines of JSON, with all that is known", anyText)
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
	if f.stuck < 0 || f.stuck > 0 && f.stuck < shortestStuck {
		return usagef("--stuck %v is not a time that a thread surely runs in: use %v or more, or 0 for never", f.stuck, shortestStuck)
	}
	return asUsage(f.settings.Check())
}

// supervision is the supervisor of a run with what it writes to.
type supervision struct {
	*suspicious.Supervisor
	events *suspicious.Reports
	files  []*suspicious.File
	warn   func(string)
	stop   func()
}

// supervise watches over the recorders of a registry until finish.
func (f *superviseFlags) supervise(g *perf.Registry, warn func(string)) (*supervision, error) {
	s := &supervision{events: suspicious.NewReports(eventsKept), warn: warn}
	sinks := []suspicious.Sink{s.events.Add}
	for _, out := range []struct {
		flag, path string
		sink       func(*suspicious.File) suspicious.Sink
	}{{"--log-file", f.logFile, toOVSLog}, {"--flight-record", f.flightRecord, suspicious.ToFlightRecord}} {
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

	ctx, cancel := context.WithCancel(context.Background())
	s.Supervisor = suspicious.NewSupervisor(suspicious.Options{Sources: f.sources(ctx, g), Sinks: sinks})
	var all sync.WaitGroup
	all.Go(func() { s.Run(ctx) })
	if f.stuck > 0 {
		dog := &suspicious.Watchdog{
			Threshold: f.stuck,
			Loops: func() []suspicious.Pinger {
				return each(g.Recorders(), func(r *perf.Recorder) suspicious.Pinger { return r })
			},
			Report: func(stall suspicious.Stall) { warn(stall.String()) },
		}
		all.Go(func() { dog.Run(ctx) })
	}
	s.stop = func() { cancel(); all.Wait() }
	return s, nil
}

// sources returns the recorders as they come and go, and gives those that are new the
// settings.
func (f *superviseFlags) sources(ctx context.Context, g *perf.Registry) func() []suspicious.Source {
	set := make(map[*perf.Recorder]bool)
	return func() []suspicious.Source {
		recorders := g.Recorders()
		for _, r := range recorders {
			// One that doesn't answer is asked again.
			set[r] = set[r] || r.SetSuspicion(ctx, f.settings) == nil
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
	if n := s.HeldBack(); n > 0 {
		s.warn(fmt.Sprintf("%d suspicious iterations were not reported: there were too many a minute", n))
	}
	return s.close()
}

func (s *supervision) close() error {
	var errs []error
	for _, f := range s.files {
		if n, err := f.Lost(); n > 0 {
			s.warn(fmt.Sprintf("%d suspicious iterations were not written: %v", n, err))
		}
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// toOVSLog returns a sink that appends reports to f as Open vSwitch logs suspicious
// iterations, each as one message.
func toOVSLog(f *suspicious.File) suspicious.Sink {
	seqs := make(map[string]uint64) // numbers of the messages, by thread
	return func(r *suspicious.Report) {
		f.Append(func(lost uint64) []byte {
			var b []byte
			now := time.Now()
			for _, missing := range []struct {
				n    uint64
				text string
			}{{r.HeldBack, "were held back by the rate limit"}, {lost, "could not be written"}} {
				if missing.n > 0 {
					seqs[r.Name]++
					b = fmt.Appendf(b, "%s|%05d|pmd_perf(%s)|WARN|%d suspicious iterations before this one %s\n",
						now.UTC().Format("2006-01-02T15:04:05.000Z"), seqs[r.Name], r.Name, missing.n, missing.text)
				}
			}
			// The numbers of messages that can't be written are missing in the log.
			seqs[r.Name]++
			return ovsEvent(r, now, seqs[r.Name]).Append(b, ovslog.OneMessage)
		})
	}
}

// ovsEvent returns a report as an event of Open vSwitch's log.
func ovsEvent(r *suspicious.Report, now time.Time, seq uint64) *ovslog.Event {
	culprit := r.Culprit()
	e := &ovslog.Event{
		Origin: ovslog.Origin{Thread: r.Name, Time: now, Seq: seq}, Core: r.Core,
		Iteration: r.Iteration, Duration: uint64(r.Duration(culprit.Cycles).Microseconds()), Began: r.At(culprit.Start()),
		Culprit: -1, HasHeader: true,
	}
	for reason := range r.Reasons.All() {
		e.Reasons = append(e.Reasons, reason.Text())
	}
	average := func(total, n uint64) uint64 { return total / max(n, 1) }
	for i := len(r.Records) - 1; i >= 0; i-- {
		rec, n := &r.Records[i], r.First+uint64(i)
		if n == r.Iteration {
			e.Culprit = len(e.Table)
		}
		row := ovslog.Row{
			Iteration: n, Cycles: rec.Cycles, Packets: uint64(rec.Rx), PacketsPerBatch: average(uint64(rec.Rx), uint64(rec.Batches)),
			QueueFill: uint64(rec.Fill), Upcalls: uint64(rec.Upcalls), CyclesPerUpcall: average(rec.UpcallCycles, uint64(rec.Upcalls)),
		}
		if rec.Rx > 0 {
			row.CyclesPerPacket = rec.Cycles / uint64(rec.Rx)
		}
		e.Table = append(e.Table, row)
	}
	return e
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
