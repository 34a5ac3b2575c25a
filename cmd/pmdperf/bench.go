package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pmdperf/pmdperf/internal/experiment"
)

// newBenchCmd returns the verb bench with its experiments.
func newBenchCmd(args []string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what recording, reloads and the like cost on this machine",
		Long: `Bench runs an experiment on the forwarder of the verb run. What is compared takes
turns, in slices of some milliseconds and in random order, so that what else the machine
does meets all alike; medians are printed with their 95 % intervals. An interrupt ends an
experiment with what there is by then.

Quiet the machine first: whatever else runs makes the intervals wide.`,
		Example: `  pmdperf bench overhead --quick
  pmdperf bench reload --format json >reload.json`,
		Args: knownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBenchOverheadCmd(args), newBenchReloadCmd(args), newBenchCausesCmd(args))
	cmd.AddCommand(newBenchProfilesCmd(args), newBenchVhostCmd(args), newBenchSelfCmd(args))
	return cmd
}

// benchFormat is how an experiment's report is printed.
type benchFormat string

const (
	benchTable benchFormat = "table"
	benchJSON  benchFormat = "json"
	benchGo    benchFormat = "bench"
)

// benchFlags are those that all experiments have.
type benchFlags struct {
	common experiment.Common
	format benchFormat
	quick  bool
}

// add adds the flags to the command, after its own. quick tells what --quick does.
func (f *benchFlags) add(cmd *cobra.Command, quick string) {
	flags := cmd.Flags()
	flags.BoolVar(&f.quick, "quick", false, quick)
	addFlag(flags, &f.common.Cores, "cores", "list", "", "cores to run a PMD on, say 0,2-3 (default the last one)", parseCores)
	addFlag(flags, &f.format, "format", "format", string(benchTable), "how to print what was found: table, json or bench (which benchstat reads)",
		oneOf(benchTable, benchJSON, benchGo))
	flags.VisitAll(func(flag *pflag.Flag) {
		words := map[string][]string{"format": {string(benchTable), string(benchJSON), string(benchGo)}}
		if flag.Value.Type() != "bool" && flag.Name != "port" {
			must(cmd.RegisterFlagCompletionFunc(flag.Name, cobra.FixedCompletions(words[flag.Name], cobra.ShellCompDirectiveNoFileComp)))
		}
	})
}

// addPorts adds the flag for experiments that can be done on real ports.
func (f *benchFlags) addPorts(cmd *cobra.Command) {
	addList(cmd.Flags(), &f.common.Ports, "port", "port", "mem", "port to forward from: mem, afpacket:IF or afxdp:IF, where somebody else has to send; repeat it for several", anyText)
	must(cmd.RegisterFlagCompletionFunc("port", completePort))
}

// run runs an experiment that needs so many PMDs and prints its report, also that of
// an interrupted one.
func (f *benchFlags) run(cmd *cobra.Command, args []string, check func() error, do func(context.Context) (*experiment.Report, error)) error {
	if err := check(); err != nil {
		return asUsage(err)
	}
	execUninterrupted(args)
	ctx, restore := untilInterrupted(cmd)
	defer restore()
	context.AfterFunc(ctx, restore) // a second signal kills
	defer fixProcs(max(len(f.common.Cores), 1) + 2)()
	line := &statusLine{w: cmd.ErrOrStderr(), inPlace: isTerminal(cmd.ErrOrStderr()), now: time.Now}
	f.common.Progress = line.show
	report, err := do(ctx)
	line.end()
	if err != nil {
		return err
	}
	return f.print(cmd.OutOrStdout(), report)
}

func (f *benchFlags) print(w io.Writer, r *experiment.Report) error {
	write := r.WriteTable
	switch f.format {
	case benchJSON:
		write = r.WriteJSON
	case benchGo:
		write = r.WriteBenchmark
	}
	if err := write(w); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	return nil
}

// statusLine shows how far something is: on a terminal several times a second, in
// place; elsewhere every quietInterval. One goroutine at a time may use it.
type statusLine struct {
	w       io.Writer
	inPlace bool
	now     func() time.Time
	at      time.Time // when it was shown last
	written int       // characters on the terminal
}

func (l *statusLine) show(text string) {
	now := l.now()
	every := quietInterval
	if l.inPlace {
		every = 200 * time.Millisecond
	}
	if now.Sub(l.at) < every {
		return
	}
	l.at = now
	if !l.inPlace {
		fmt.Fprintf(l.w, "pmdperf: %s\n", text)
		return
	}
	fmt.Fprintf(l.w, "\r%-*s", l.written, text)
	l.written = max(l.written, len(text))
}

// end takes the line off the terminal.
func (l *statusLine) end() {
	if l.written > 0 {
		fmt.Fprintf(l.w, "\r%*s\r", l.written, "")
	}
}
