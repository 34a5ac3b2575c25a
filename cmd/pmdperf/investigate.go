package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pmdperf/pmdperf/internal/evidence"
	"github.com/pmdperf/pmdperf/suspicious/investigate"
)

// formatHTML is a page for a browser.
const formatHTML format = "html"

// statusNothing is the exit status of an investigation without any evidence.
const statusNothing = 3

// investigateFlags is what the flags of the verb investigate say.
type investigateFlags struct {
	counters []string
	format   format
	output   string // "" for standard output
	all      bool
}

func newInvestigateCmd() *cobra.Command {
	var f investigateFlags
	cmd := &cobra.Command{
		Use:   "investigate [FILE...]",
		Short: "Find out from logs what stalled, why, and what it cost",
		Long: `Investigate reads whatever there is about stalls and says what follows: what stalled,
when, for how long, why, how many packets that can have cost, and what to do next.

It takes logs of ovs-vswitchd with suspicious iterations, of any version and in any form:
rotated, compressed, from syslog, journal or console, pasted with quotes or line numbers;
pmdperf's own logs and flight records; what pmd-perf-show, pmd-stats-show, pmd-rxq-show,
pmd-sleep-show and coverage/show printed. A FILE may be a directory; "-" and no FILE at all mean standard
input. What a file is, its content tells.

Findings are ranked by the time that was lost to them. Lines that could not be read are
counted and shown. The exit status is 3 if there was nothing to be recognised.`,
		Example: `  pmdperf investigate /var/log/openvswitch
  journalctl -u ovs-vswitchd | pmdperf investigate
  pmdperf investigate ovs-vswitchd.log --counters ethtool.txt --format html -o report.html`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, restore := untilInterrupted(cmd)
			defer restore()
			if len(args) == 0 {
				if in, ok := cmd.InOrStdin().(*os.File); ok && isTerminal(in) {
					return usagef("investigate needs something to read: name files, or pipe a log into it")
				}
				args = []string{"-"}
			}
			return f.run(ctx, args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&f.counters, "counters", nil, "`file` of counters with times, to be lined up with the stalls: CSV, ethtool -S, ovs-vsctl statistics, or Prometheus JSON (may be repeated)")
	addFlag(flags, &f.format, "format", "format", string(formatText), "how to report: text, json or html", oneOf(formatText, formatJSON, formatHTML))
	flags.StringVarP(&f.output, "output", "o", "", "`file` to write the report to (default standard output)")
	flags.BoolVar(&f.all, "all", false, "tell everything about every finding, not only what fits a screen")
	must(cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{string(formatText), string(formatJSON), string(formatHTML)}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// run reads the files and writes the report.
func (f *investigateFlags) run(ctx context.Context, files []string, stdin io.Reader, stdout, stderr io.Writer) error {
	c := &evidence.Collector{Case: investigate.NewCase(), Stdin: stdin}
	for _, name := range files {
		if err := c.Add(ctx, name); err != nil {
			return interrupted(err)
		}
	}
	read := c.Read
	for _, name := range f.counters {
		if err := c.AddCounters(ctx, name); err != nil {
			return interrupted(err)
		}
	}
	if read == 0 {
		return nothing(c, files)
	}
	for _, err := range c.Failed {
		fmt.Fprintf(stderr, "pmdperf: warning: %v\n", err)
	}
	return f.write(c.Case.Result(), stdout)
}

func interrupted(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted before everything was read")
	}
	return err
}

// nothing says that no file had any evidence, and what would be some.
func nothing(c *evidence.Collector, files []string) error {
	var b strings.Builder
	for _, err := range c.Failed {
		fmt.Fprintf(&b, "%v\n", err)
	}
	if c.Passed > 0 {
		fmt.Fprintf(&b, "nothing recognisable in %d files of %s\n", c.Passed, strings.Join(files, ", "))
	}
	b.WriteString("there is nothing to investigate; what is recognised:")
	for _, s := range evidence.Looked() {
		fmt.Fprintf(&b, "\n  %s", s)
	}
	return &statusError{statusNothing, errors.New(b.String())}
}

func (f *investigateFlags) write(r *investigate.Result, stdout io.Writer) error {
	var b bytes.Buffer
	switch f.format {
	case formatJSON:
		enc := json.NewEncoder(&b)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(r); err != nil {
			return err
		}
	case formatHTML:
		if err := newReport(r).Write(&b); err != nil {
			return err
		}
	default:
		text := investigationText(r, f.all)
		if f.output == "" {
			return (&screen{w: stdout, terminal: isTerminal(stdout)}).show(text, false)
		}
		return writeFile(f.output, func(w io.Writer) error { return (&screen{w: w}).show(text, false) })
	}
	return deliver(stdout, f.output, "what was found", b.Bytes())
}
