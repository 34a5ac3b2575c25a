package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pmdperf/pmdperf/suspicious/cause"
	"github.com/pmdperf/pmdperf/suspicious/cause/confusion"
)

// causesFlags is what the flags of bench causes say.
type causesFlags struct {
	options confusion.Options
	most    probesFrom
	format  benchFormat
	child   bool // this is the process with the loop
}

// probesFrom names the most telling probes that are to be used.
type probesFrom string

// probeNames returns them in the order of cause.Source.
func probeNames() []probesFrom {
	return []probesFrom{"bpf", "perf-core", "perf-thread", "counters"}
}

// childFlag makes a process the one with the loop.
const childFlag = "loop"

func newBenchCausesCmd(args []string) *cobra.Command {
	f := causesFlags{options: confusion.Options{Core: -1}}
	cmd := &cobra.Command{
		Use:   "causes",
		Short: "Make a loop slow in known ways, and table what is named as the cause",
		Long: `Causes runs a busy loop on a core of its own, makes it slow for real in every way there
is, and prints how often the cause was among those that the probes named, how often it was
the first of them, which share of the time it was given on average, and how often
something else was named with confidence that was not so. What was so is told by what the
kernel counted of the thread: other tasks may have had the core, too.

It takes some 30 ms a round of each. As root it has all probes; --as-user gives the
privileges up before the probes start. An interrupt prints what there is by then.`,
		Example: `  pmdperf bench causes
  pmdperf bench causes --rounds 1000 --as-user
  pmdperf bench causes --only 'stop signal' --only nanosleep --probes counters
  pmdperf bench causes --format json | jq '.rows[] | [.provocation, .named / .made]'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			if f.child {
				return f.serve(cmd)
			}
			return f.run(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	addFlag(flags, &f.options.Rounds, "rounds", "count", "100", "slow iterations to make in each way", parseCount)
	addList(flags, &f.options.Only, "only", "way", "", "make it slow in this way only; repeat it for several", oneOf(confusion.Provocations()...))
	flags.BoolVar(&f.options.User, "as-user", false, "give up root's privileges before the probes start")
	addFlag(flags, &f.most, "probes", "probes", string(probeNames()[0]), "the most telling probes to use: "+orList(probeNames()), oneOf(probeNames()...))
	addFlag(flags, &f.options.Core, "core", "core", "", "core of the loop (default the last one)", parseCore)
	addFlag(flags, &f.format, "format", "format", string(benchTable), "how to print it: table or json", oneOf(benchTable, benchJSON))
	flags.BoolVar(&f.child, childFlag, false, "be the process with the loop")
	must(flags.MarkHidden(childFlag))
	must(cmd.RegisterFlagCompletionFunc("only", cobra.FixedCompletions(confusion.Provocations(), cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("probes", cobra.FixedCompletions(words(probeNames()), cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(words([]benchFormat{benchTable, benchJSON}), cobra.ShellCompDirectiveNoFileComp)))
	for _, name := range []string{"rounds", "core"} {
		must(cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions))
	}
	return cmd
}

// words returns a list of names as strings.
func words[T ~string](list []T) (s []string) {
	for _, w := range list {
		s = append(s, string(w))
	}
	return s
}

func parseCore(s string) (int, error) {
	cores, err := parseCores(s)
	if err == nil && len(cores) != 1 {
		err = errors.New("it is one core")
	}
	if err != nil {
		return 0, fmt.Errorf("%q is no core: write its number", s)
	}
	return cores[0], nil
}

func (f *causesFlags) check() error {
	f.options.Probes.Most = cause.Source(slices.Index(probeNames(), f.most))
	if f.options.User && os.Geteuid() != 0 && !f.child {
		return errors.New("--as-user gives up root's privileges, and there are none: drop it")
	}
	return nil
}

// serve is what the process with the loop does.
func (f *causesFlags) serve(cmd *cobra.Command) error {
	ctx, restore := untilInterrupted(cmd)
	defer restore()
	return confusion.Serve(ctx, cmd.OutOrStdout(), f.options)
}

// run starts that process and prints its table.
func (f *causesFlags) run(cmd *cobra.Command, args []string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, restore := untilInterrupted(cmd)
	defer restore()
	child := exec.CommandContext(ctx, exe, append(slices.Clone(args), "--"+childFlag)...)
	child.Args[0] = os.Args[0]
	child.Cancel = func() error {
		restore() // a second signal kills
		return child.Process.Signal(os.Interrupt)
	}
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	line := &statusLine{w: cmd.ErrOrStderr(), inPlace: isTerminal(cmd.ErrOrStderr()), now: time.Now}
	table, err := confusion.Supervise(child, func(p confusion.Progress) {
		line.show(fmt.Sprintf("%s: %d of %d", p.Provocation, p.Made, p.Rounds))
	})
	line.end()
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "pmdperf: "))
	}
	if err := f.print(cmd.OutOrStdout(), table); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	return nil
}

func (f *causesFlags) print(w io.Writer, t *confusion.Table) error {
	if f.format == benchJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(t)
	}
	return t.Write(w)
}
