package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/internal/live"
)

// showFlags is what the flags of the verb show say.
type showFlags struct {
	target       string
	cores        []int
	iterations   int
	millis       int
	slowest      bool
	noHistograms bool
	watch        time.Duration // 0 for once
}

// slowestByDefault is how many iterations --slowest shows without --iterations.
const slowestByDefault = 10

func newShowCmd() *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show what the PMDs of a running program did, for people",
		Long: `Show asks a running program what its PMDs did since the counters were cleared, and
prints it for people: times beside cycles, percentiles, histograms, and on request the
last or the slowest of the iterations in the history. With --watch it goes on, and shows
what happened since the time before.

The program is one that pmdperf's recorder is in, or an ovs-vswitchd. A figure
after ~ is interpolated inside a histogram's bin, one after ≤ is its upper bound, and
one after > is beyond all bins.`,
		Example: `  pmdperf show
  pmdperf show -t demo --core 3 --slowest
  pmdperf show -t demo --watch 1s --no-histograms`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.slowest && f.iterations == 0 {
				f.iterations = slowestByDefault
			}
			ctx, restore := untilInterrupted(cmd)
			defer restore()
			return f.run(ctx, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	addTarget(cmd, &f.target)
	addFlag(flags, &f.cores, "core", "list", "", "only the PMDs of these cores, say 0,2-3 (default all)", parseCores)
	addFlag(flags, &f.iterations, "iterations", "count", "", "last iterations to show", parseRows)
	addFlag(flags, &f.millis, "millis", "count", "", "last milliseconds to show", parseRows)
	flags.BoolVar(&f.slowest, "slowest", false, fmt.Sprintf("show the slowest of the last %d iterations, first the slowest (%d unless --iterations says otherwise)", history.Shown, slowestByDefault))
	flags.BoolVar(&f.noHistograms, "no-histograms", false, "leave the histograms out")
	addFlag(flags, &f.watch, "watch", "duration", "", "go on, and show what happened in each such time, until interrupted", parseInterval)
	for _, name := range []string{"core", "iterations", "millis", "watch"} {
		must(cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions))
	}
	return cmd
}

func parseRows(s string) (int, error) {
	n, err := parseCount(s)
	if err == nil && n > history.Shown {
		err = fmt.Errorf("%d is more than the history has: write %d or less", n, history.Shown)
	}
	return n, err
}

// showPatience is how long a target may take to answer.
const showPatience = 10 * time.Second

// run shows the target once, or until the context ends.
func (f *showFlags) run(ctx context.Context, stdout io.Writer) error {
	s := &screen{w: stdout, terminal: isTerminal(stdout)}
	source := &live.Source{Target: f.target, Iterations: f.iterations, Millis: f.millis}
	defer source.Close()
	if f.slowest {
		source.Iterations = history.Shown
	}
	var before *live.Sample
	for {
		sample, err := f.fetch(ctx, source)
		switch {
		case ctx.Err() != nil && f.watch > 0:
			return nil // interrupted, which is how watching ends
		case err != nil && (f.watch == 0 || before == nil):
			return withoutPackage(err)
		case err != nil:
			err = s.show(fmt.Sprintf("%s  %v; trying again\n", time.Now().Format(time.TimeOnly), withoutPackage(err)), true)
		case f.watch == 0:
			return s.show(f.text(sample, nil), false)
		case before == nil: // a rate takes two looks
		default:
			err = s.show(f.text(sample, before), true)
		}
		if err != nil {
			return err
		}
		if sample != nil {
			before = sample
		}
		select {
		case <-time.After(f.watch):
		case <-ctx.Done():
			return nil
		}
	}
}

func (f *showFlags) fetch(ctx context.Context, source *live.Source) (*live.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, showPatience)
	defer cancel()
	sample, err := source.Fetch(ctx)
	if err != nil || f.cores == nil {
		return sample, err
	}
	var cores []string
	for _, p := range sample.PMDs {
		cores = append(cores, strconv.Itoa(p.Core))
	}
	for _, p := range sample.Missing {
		cores = append(cores, strconv.Itoa(p.Core))
	}
	for _, core := range f.cores {
		if !slices.Contains(cores, strconv.Itoa(core)) {
			return nil, fmt.Errorf("%s has no PMD on core %d: choose among %s", f.target, core, strings.Join(append(cores, "nothing")[:max(len(cores), 1)], ", "))
		}
	}
	sample.PMDs = slices.DeleteFunc(sample.PMDs, func(p live.PMD) bool { return !slices.Contains(f.cores, p.Core) })
	sample.Missing = slices.DeleteFunc(sample.Missing, func(m live.Missing) bool { return !slices.Contains(f.cores, m.Core) })
	return sample, nil
}

// screen is where show writes to.
type screen struct {
	w        io.Writer
	terminal bool
	shown    bool
}

// show writes a text, where it is to be repeated on a terminal in place of the one before.
func (s *screen) show(text string, repeated bool) error {
	switch {
	case s.terminal && repeated:
		text = inPlace(text, s.height())
	case repeated && s.shown:
		text = "\n" + text
	}
	s.shown = true
	w := colorprofile.NewWriter(s.w, os.Environ())
	if !s.terminal || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		w.Profile = colorprofile.NoTTY
	}
	if s.terminal && repeated && w.Profile == colorprofile.NoTTY {
		// Without colours it still has to stand in one place.
		var plain strings.Builder
		stripped := &colorprofile.Writer{Forward: &plain, Profile: colorprofile.NoTTY}
		io.WriteString(stripped, text)
		_, err := io.WriteString(s.w, home+plain.String()+toEnd)
		return err
	}
	if s.terminal && repeated {
		text = home + text + toEnd
	}
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("print what was found: %w", err)
	}
	return nil
}

// What terminals do on: go to the corner and clear the screen; clear what follows.
const (
	home  = "\x1b[H\x1b[2J"
	toEnd = "\x1b[J"
)

// height returns the height of the terminal, 0 if it isn't known.
func (s *screen) height() int {
	f, ok := s.w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Row)
}

// inPlace shortens a text so that it doesn't scroll.
func inPlace(text string, height int) string {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	if height < 2 || len(lines) < height {
		return text
	}
	left := len(lines) - (height - 2)
	return strings.Join(lines[:height-2], "") + fmt.Sprintf("... and %d lines for which the screen is too low\n", left)
}
