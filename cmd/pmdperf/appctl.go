package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pmdperf/pmdperf/export/appctl"
)

// statusError is an error of a verb with exit statuses of its own.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// defaultTarget is whom ovs-appctl asks, too.
const defaultTarget = "ovs-vswitchd"

// addTarget adds the flag that says whom to ask.
func addTarget(cmd *cobra.Command, to *string) {
	cmd.Flags().VarP(&value[string]{to: to, parse: parseTarget, kind: "target", text: defaultTarget}, "target", "t",
		"whom to ask: the path of a control socket, or the name of a program that has its pidfile in $OVS_RUNDIR (/var/run/openvswitch)")
	*to = defaultTarget
	must(cmd.RegisterFlagCompletionFunc("target", completeTarget))
}

func parseTarget(s string) (string, error) {
	if s == "" {
		return "", errors.New("it is empty: write the name of a program or the path of a socket")
	}
	return s, nil
}

// completeTarget offers the programs with a pidfile in the run directory.
func completeTarget(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
	files, _ := filepath.Glob(filepath.Join(appctl.RunDir(), "*.pid"))
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".pid"))
	}
	return names, cobra.ShellCompDirectiveDefault
}

// appctlFlags is what the flags of the verb appctl say.
type appctlFlags struct {
	target  string
	timeout time.Duration // 0 for none
	format  format
}

func newAppctlCmd() *cobra.Command {
	var f appctlFlags
	cmd := &cobra.Command{
		Use:   "appctl [flags] COMMAND [ARG...]",
		Short: "Have a running program carry out a command, as ovs-appctl does",
		Long: `Appctl asks a running program over its control socket, as ovs-appctl does: one that
pmdperf's recorder is in, or any daemon of Open vSwitch. What follows COMMAND goes
to the program, also what begins with a dash.

It ends with ovs-appctl's statuses: 0, 2 if the program answered with an error, 142 if
--timeout ran out, and 1 for anything else, such as a program that isn't there.`,
		Example: `  pmdperf appctl list-commands
  pmdperf appctl -t demo dpif-netdev/pmd-perf-show -nh -it 5
  pmdperf appctl -t /run/pmdperf/demo.4711.ctl --format json dpif-netdev/pmd-stats-show`,
		DisableFlagsInUseLine: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &statusError{statusFailed, fmt.Errorf("appctl needs a command: 'pmdperf appctl -t %s list-commands' lists them", f.target)}
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return f.commands(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false)
	addTarget(cmd, &f.target)
	flags.VarP(&value[time.Duration]{to: &f.timeout, parse: parseSeconds, kind: "secs"}, "timeout", "T", "seconds after which to give up (default never)")
	addFlag(flags, &f.format, "format", "format", string(formatText), "what to ask for: text or json", oneOf(formatText, formatJSON))
	must(cmd.RegisterFlagCompletionFunc("timeout", cobra.NoFileCompletions))
	must(cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{string(formatText), string(formatJSON)}, cobra.ShellCompDirectiveNoFileComp)))
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return &statusError{statusFailed, flagError(cmd, err)}
	})
	return cmd
}

// parseSeconds reads whole seconds, which ovs-appctl takes, too.
func parseSeconds(s string) (time.Duration, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is no number of seconds: write a whole one from 1 up", s)
	}
	return time.Duration(n) * time.Second, nil
}

func (f *appctlFlags) run(ctx context.Context, stdout, stderr io.Writer, args []string) error {
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	result, err := f.ask(ctx, args)
	var refused *appctl.ServerError
	switch {
	case errors.As(err, &refused):
		// The program's own words, as they are: scripts look for them.
		io.WriteString(stderr, refused.Text)
		err = fmt.Errorf("%s: server returned an error", f.target)
		return &statusError{appctl.ExitCode(refused), err}
	case errors.Is(err, context.DeadlineExceeded):
		return &statusError{appctl.ExitCode(err), fmt.Errorf("%s did not answer within %v", f.target, f.timeout)}
	case err != nil:
		return &statusError{appctl.ExitCode(err), withoutPackage(err)}
	}
	if _, err := io.WriteString(stdout, result); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	return nil
}

func (f *appctlFlags) ask(ctx context.Context, args []string) (string, error) {
	c, err := appctl.Dial(ctx, f.target)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if f.format == formatJSON {
		if err := c.SetJSON(ctx); err != nil {
			return "", err
		}
	}
	return c.Call(ctx, args[0], args[1:]...)
}

// commands returns what the target can be asked for, with the usage of each.
func (f *appctlFlags) commands(ctx context.Context) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c, err := appctl.Dial(ctx, f.target)
	if err != nil {
		return nil
	}
	defer c.Close()
	list, err := c.Call(ctx, "list-commands")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(list) {
		// A line without two blanks before it is the heading.
		name, usage, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(line, "  ") {
			names = append(names, cobra.CompletionWithDesc(name, strings.TrimSpace(usage)))
		}
	}
	return names
}

// withoutPackage leaves out of a message which package it comes from.
func withoutPackage(err error) error {
	text, ok := strings.CutPrefix(err.Error(), "appctl: ")
	if !ok {
		return err
	}
	return &statusError{appctl.ExitCode(err), errors.New(text)}
}
