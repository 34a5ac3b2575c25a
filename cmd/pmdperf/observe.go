package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/internal/observe"
	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/cause"
)

// observeFlags is what the flags of the verb observe say.
type observeFlags struct {
	target   string
	pid      int // 0 for that of target
	cfg      observe.Config
	duration time.Duration // 0 for no end
	output   string
	format   format
}

func newObserveCmd() *cobra.Command {
	var f observeFlags
	cmd := &cobra.Command{
		Use:   "observe",
		Short: "Tell what keeps the poll-mode threads of any process from polling",
		Long: `Observe watches the poll-mode (PMD) threads of a process from outside, an ovs-vswitchd
first of all, which needs no change for it. Whenever one of them was off its core for
--threshold or longer, it says for how long and why: which task had the core instead, in
which system call the thread slept, or who stopped it. So it does for interrupts of the
thread's own core, and for the time in which a virtual machine stood still.

With --log, the process's log is followed as it grows, and each suspicious iteration in
it (pmd-perf-log-set) is told with what was seen of its thread at that time.

Root sees all of that. Without privileges it can still be told when a thread waited for
its core, slept or was stopped; what can't be seen is said at the start. It ends after
--duration, at an interrupt, or with the process, and sums up.`,
		Example: `  pmdperf observe
  pmdperf observe --duration 1m --threshold 200us --log /var/log/openvswitch/ovs-vswitchd.log
  pmdperf observe --pid 4711 --thread 'lcore-worker-*' --output spells.jsonl
  pmdperf observe --duration 10s --format json | jq -r 'select(.type == "spell") | .causes[0].kind'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			ctx, restore := untilInterrupted(cmd)
			defer restore()
			context.AfterFunc(ctx, restore) // a second signal kills
			return f.run(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	addTarget(cmd, &f.target)
	flags.Lookup("target").Usage = "whom to observe: the name of a program that has its pidfile in $OVS_RUNDIR (/var/run/openvswitch), again if it is restarted"
	addFlag(flags, &f.pid, "pid", "pid", "", "process to observe instead", parsePID)
	addFlag(flags, &f.cfg.Threads, "thread", "pattern", observe.DefaultThreads, "names of its threads, with * and ?", parsePattern)
	addFlag(flags, &f.cfg.Threshold, "threshold", "duration", observe.DefaultThreshold.String(), "shortest time without polling that is told, from 10us up", parseLeast)
	addFlag(flags, &f.duration, "duration", "duration", "0", "how long to observe, 0 for until interrupted", parseDuration)
	addFlag(flags, &f.cfg.Log, "log", "file", "", "log of the process whose suspicious iterations are to be explained", anyText)
	addFlag(flags, &f.output, "output", "file", "", "append everything to this file, too, as lines of JSON", anyText)
	addFlag(flags, &f.format, "format", "format", string(formatText), "how to print it: text or json", oneOf(formatText, formatJSON))
	for _, name := range []string{"thread", "threshold", "duration"} {
		must(cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions))
	}
	must(cmd.RegisterFlagCompletionFunc("pid", completePID))
	must(cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{string(formatText), string(formatJSON)}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func parsePID(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is no process: write its number", s)
	}
	return n, nil
}

func parsePattern(s string) (string, error) {
	if s == "" {
		return "", errors.New("it is empty: write a name or a pattern, say 'pmd-c*'")
	}
	return s, nil
}

// leastObserved is about what the probes themselves take in a switch or an interrupt.
const leastObserved = 10 * time.Microsecond

func parseLeast(s string) (time.Duration, error) {
	d, err := parseDuration(s)
	if err == nil && d < leastObserved {
		err = fmt.Errorf("%v is less than can be told: write %v or more", d, leastObserved)
	}
	return d, err
}

// completePID offers processes with threads of Open vSwitch's names.
func completePID(*cobra.Command, []string, string) (pids []string, _ cobra.ShellCompDirective) {
	files, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*/comm")
	last := ""
	for _, file := range files {
		pid := strings.Split(file, "/")[2]
		name, err := os.ReadFile(file)
		if err == nil && pid != last && observe.Match(observe.DefaultThreads, strings.TrimSpace(string(name))) {
			pids, last = append(pids, pid), pid
		}
	}
	return pids, cobra.ShellCompDirectiveNoFileComp
}

// check looks at what would be wrong on any machine, and sets how the process is found.
func (f *observeFlags) check(cmd *cobra.Command) error {
	if f.duration < 0 {
		return usagef("--duration %v: write how long to observe, or 0 for until interrupted", f.duration)
	}
	if f.pid > 0 && cmd.Flags().Changed("target") {
		return usagef("--pid and --target name a process each: drop one")
	}
	if f.output != "" && f.output == f.cfg.Log {
		return usagef("--output and --log name the same file: they need one each")
	}
	f.cfg.Find = func() (int, error) { return f.pid, nil }
	if f.pid == 0 {
		f.cfg.Find, f.cfg.Again = func() (int, error) { return processOf(f.target) }, true
	}
	return nil
}

// processOf returns the process that a target means, by the name of its socket.
func processOf(target string) (int, error) {
	socket, err := appctl.Resolve("", target)
	if err != nil {
		return 0, fmt.Errorf("%w: name another with --target, or a process with --pid", withoutPackage(err))
	}
	parts := strings.Split(filepath.Base(socket), ".") // NAME.PID.ctl
	if len(parts) < 3 {
		return 0, fmt.Errorf("the name of the socket %s doesn't tell the process: use --pid", socket)
	}
	pid, err := strconv.Atoi(parts[len(parts)-2])
	if err != nil {
		return 0, fmt.Errorf("the name of the socket %s doesn't tell the process: use --pid", socket)
	}
	return pid, nil
}

func (f *observeFlags) run(ctx context.Context, stdout, stderr io.Writer) error {
	if f.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.duration)
		defer cancel()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var file *suspicious.File
	if f.output != "" {
		file = suspicious.NewFile(suspicious.FileConfig{Path: f.output})
		if err := file.Open(); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
		defer file.Close()
	}
	var printErr error
	told := false // what can be seen
	err := observe.Run(ctx, f.cfg, func(r observe.Record) {
		if t, ok := r.(*observe.Thread); ok && t.Watched && !told {
			told = true
			fmt.Fprintf(stderr, "pmdperf: %s\n", sees(t.Probes))
		}
		line, err := json.Marshal(r)
		if err == nil && file != nil {
			file.Append(func(uint64) []byte { return append(line, '\n') })
		}
		if err == nil && printErr == nil {
			text := r.String()
			if f.format == formatJSON {
				text = string(line)
			}
			_, err = fmt.Fprintln(stdout, text)
		}
		if err != nil && printErr == nil {
			printErr = fmt.Errorf("print what was seen: %w", err)
			stop()
		}
	})
	if file != nil {
		if n, why := file.Lost(); n > 0 {
			fmt.Fprintf(stderr, "pmdperf: --output: %d records were not written: %v\n", n, why)
		}
	}
	if errors.Is(err, observe.ErrNoThreads) {
		err = fmt.Errorf("no thread named %q was there: name others with --thread", f.cfg.Threads)
	}
	return errors.Join(err, printErr)
}

// sees says in one line what the probes see and what not.
func sees(probes []cause.Status) string {
	const stops, privileges = "when a thread is off its core", "run it as root to see more"
	switch {
	case len(probes) > 0 && probes[0].Runs:
		return "sees " + stops + ", who ran instead, in which system call it slept, and interrupts of its core"
	case len(probes) > 1 && probes[1].Runs:
		return fmt.Sprintf("sees %s and who ran instead, but not interrupts, nor always the system call it slept in (%s)", stops, probes[0].Why)
	case len(probes) > 2 && probes[2].Runs:
		return fmt.Sprintf("sees %s and whether it was preempted, but not by whom, nor interrupts (%s): %s", stops, probes[0].Why, privileges)
	case len(probes) > 2:
		return fmt.Sprintf("sees by counters, every millisecond, that a thread waited for its core, slept or was stopped, but not who ran instead, nor short stops (%s): %s", probes[2].Why, privileges)
	}
	return "sees nothing on this system"
}
