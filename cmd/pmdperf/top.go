package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/pmdperf/pmdperf/internal/live"
	"github.com/pmdperf/pmdperf/internal/top"
)

func newTopCmd() *cobra.Command {
	var (
		target   string
		interval time.Duration
	)
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch what the PMDs of a running program do, on the full screen",
		Long: `Top shows a line for each PMD of a running program and the details of the selected
one, anew every --interval: what they did since the look before or, after the key w, since
the counters were cleared. The program is one that pmdperf's recorder is in, or an
ovs-vswitchd, which has to record in detail for times of iterations:

  ovs-vsctl set Open_vSwitch . other_config:pmd-perf-metrics=true

busy% is the share of all cycles, sleep included, that passes with packets took.
A figure after ~ is interpolated inside a histogram's bin, one after ≤ is its upper
bound, and one after > is beyond all bins.`,
		Example: `  pmdperf top
  pmdperf top -t demo --interval 500ms`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return watchTop(cmd, target, interval)
		},
	}
	cmd.Flags().SortFlags = false
	addTarget(cmd, &target)
	addFlag(cmd.Flags(), &interval, "interval", "duration", "1s", "how long from one look to the next", parseInterval)
	must(cmd.RegisterFlagCompletionFunc("interval", cobra.NoFileCompletions))
	return cmd
}

// minInterval keeps lookers from taking the time of the loops that they look at.
const minInterval = 100 * time.Millisecond

func parseInterval(s string) (time.Duration, error) {
	d, err := parseDuration(s)
	if err == nil && d < minInterval {
		err = fmt.Errorf("%v is too short: write %v or more", d, minInterval)
	}
	return d, err
}

func watchTop(cmd *cobra.Command, target string, interval time.Duration) error {
	out, ok := cmd.OutOrStdout().(*os.File)
	if !ok || !term.IsTerminal(out.Fd()) {
		return errors.New("top needs a terminal: use 'pmdperf show --watch 1s' where there is none")
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	source := &live.Source{Target: target, Millis: top.Millis}
	_, err := tea.NewProgram(top.New(ctx, source, target, interval), tea.WithContext(ctx), tea.WithOutput(out), tea.WithInput(cmd.InOrStdin())).Run()
	if errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}
