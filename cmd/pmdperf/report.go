package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/export/report"
	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/internal/evidence"
	"github.com/pmdperf/pmdperf/internal/human"
	"github.com/pmdperf/pmdperf/internal/live"
	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/investigate"
)

// reportFlags is what the flags of the verb report say.
type reportFlags struct {
	target string
	output string // "" for standard output
}

// reportPatience is how long a target may take to tell everything.
const reportPatience = 30 * time.Second

func newReportCmd() *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Write a page for a browser about a running program",
		Long: `Report asks a running program what its PMDs did, and writes it as one HTML file that
needs nothing else: a timeline for each PMD with the stalls that the program remembers and
its last milliseconds, the neighborhood of every stall, histograms with percentiles, and
what follows from all that. It is the page that 'pmdperf investigate --format html' makes
of logs.

The program is one that pmdperf's recorder is in, or an ovs-vswitchd, of which there are
no stalls to be had this way: they are in its log, for 'pmdperf investigate'.`,
		Example: `  pmdperf report -o report.html
  pmdperf report -t demo -o demo.html`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, restore := untilInterrupted(cmd)
			defer restore()
			return f.run(ctx, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	addTarget(cmd, &f.target)
	flags.StringVarP(&f.output, "output", "o", "", "`file` to write the page to (default standard output)")
	return cmd
}

func (f *reportFlags) run(ctx context.Context, stdout io.Writer) error {
	if f.output == "" && isTerminal(stdout) {
		return usagef("a page is not for a terminal: add -o report.html")
	}
	p, err := f.page(ctx)
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted before everything was asked")
	case err != nil:
		return withoutPackage(err)
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		return err
	}
	return deliver(stdout, f.output, "the page", b.Bytes())
}

// page asks the target everything.
func (f *reportFlags) page(ctx context.Context) (*report.Page, error) {
	ctx, cancel := context.WithTimeout(ctx, reportPatience)
	defer cancel()
	source := &live.Source{Target: f.target, Iterations: 1, Millis: history.Shown}
	defer source.Close()
	sample, err := source.Fetch(ctx)
	if err != nil {
		return nil, err
	}
	c := &evidence.Collector{Case: investigate.NewCase()}
	notes, err := f.shows(ctx, c)
	if err != nil {
		return nil, err
	}
	if sample.Form == live.JSON {
		more, err := f.events(ctx, c.Case)
		if err != nil {
			return nil, err
		}
		notes = append(notes, more...)
	}
	p := newReport(c.Case.Result())
	p.Title = "PMDs of " + f.target
	for _, m := range sample.Missing {
		p.Warnings = append(p.Warnings, fmt.Sprintf("core %d is not shown: %s", m.Core, m.Reason))
	}
	p.Warnings = append(append(p.Warnings, notes...), sample.Notes...)
	spans := sample.Since(nil)
	for i := range spans {
		addSpan(p, &spans[i], sample)
	}
	return p, nil
}

// newReport returns the page of a result, with who made it.
func newReport(r *investigate.Result) *report.Page {
	p := report.FromResult(r)
	p.Program, p.Made = "pmdperf "+moduleVersion(buildInfo()), time.Now()
	return p
}

// shows adds the texts that an investigator would ask for, and returns what the target
// didn't answer.
func (f *reportFlags) shows(ctx context.Context, c *evidence.Collector) (notes []string, err error) {
	client, err := appctl.Dial(ctx, f.target)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for _, command := range [][]string{
		{"dpif-netdev/pmd-perf-show", "-it", strconv.Itoa(history.Shown), "-ms", strconv.Itoa(history.Shown)},
		{"dpif-netdev/pmd-stats-show"},
		{"dpif-netdev/pmd-rxq-show"},
	} {
		text, err := client.Call(ctx, command[0], command[1:]...)
		if refused, ok := errors.AsType[*appctl.ServerError](err); ok {
			notes = append(notes, command[0]+": "+refused.Error())
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := c.AddReader(ctx, f.target+" "+strings.Join(command, " "), strings.NewReader(text)); err != nil {
			return nil, err
		}
	}
	return notes, nil
}

// events adds the events that a program of ours remembers.
func (f *reportFlags) events(ctx context.Context, c *investigate.Case) (notes []string, err error) {
	const command = "pmdperf/events"
	client, err := appctl.Dial(ctx, f.target)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if err := client.SetJSON(ctx); err != nil {
		return nil, err
	}
	ask := func(into any, args ...string) error {
		text, err := client.Call(ctx, command, args...)
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(text), into); err != nil {
			return fmt.Errorf("%s: the answer is not understood: %w", command, err)
		}
		return nil
	}
	var list struct {
		Events []struct{ ID string }
	}
	err = ask(&list, "-n", strconv.Itoa(investigate.MaxStalls))
	if refused, ok := errors.AsType[*appctl.ServerError](err); ok {
		return []string{command + ": " + refused.Error()}, nil
	}
	if err != nil {
		return nil, err
	}
	if len(list.Events) == 0 {
		return nil, nil
	}
	source := c.AddSource(f.target + " " + command)
	gone := 0
	for _, e := range slices.Backward(list.Events) { // oldest first
		var record suspicious.FlightRecord
		err := ask(&record, e.ID)
		if _, ok := errors.AsType[*appctl.ServerError](err); ok {
			gone++ // the program has forgotten it meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		c.AddFlight(source, 0, &record)
	}
	if gone > 0 {
		notes = append(notes, fmt.Sprintf("events that the program forgot while it was asked: %d", gone))
	}
	return notes, nil
}

// addSpan adds what a look found about a PMD, which is more than texts tell.
func addSpan(p *report.Page, s *live.Span, sample *live.Sample) {
	at := slices.IndexFunc(p.Threads, func(t report.Thread) bool { return t.Core == s.Core })
	if at < 0 {
		at = len(p.Threads)
		p.Threads = append(p.Threads, report.Thread{Name: fmt.Sprintf("PMD on core %d", s.Core), Core: s.Core})
	}
	t := &p.Threads[at]
	if s.Name != "" {
		t.Name = s.Name
	}
	if s.Hz > 0 {
		t.Hz = s.Hz
	}
	t.Shares = nil
	for _, share := range []report.Share{
		{Name: "busy", Percent: s.BusyPercent()}, {Name: "idle", Percent: s.IdlePercent()},
		{Name: "asleep", Percent: s.SleepPercent()}, {Name: "between iterations", Percent: s.GapPercent()},
	} {
		if !math.IsNaN(share.Percent) {
			t.Shares = append(t.Shares, share)
		}
	}
	for _, f := range []struct {
		name   string
		values []string
	}{
		{"Recorded", []string{s.Level, s.State, known("%s s since the last clear", s.Seconds, oneDecimal)}},
		{"Iterations", []string{count(s, live.Iterations), rate(s, live.Iterations), length(s, s.Per(live.UsedCycles, live.Iterations), "each")}},
		{"Received", []string{count(s, live.RxPackets), rate(s, live.RxPackets), length(s, s.CyclesPerPacket(), "each")}},
		{"Sent", []string{count(s, live.TxPackets), rate(s, live.TxPackets)}},
		{"Dropped", []string{count(s, live.Drops)}},
		{"Lost in full rings", []string{count(s, live.RxDrops)}},
		{"Upcalls", []string{count(s, live.Upcalls), known("%s/s", s.UpcallsPerSecond(), human.Short)}},
		{"Lost upcalls", []string{count(s, live.LostUpcalls)}},
	} {
		t.Facts = slices.DeleteFunc(t.Facts, func(g report.Fact) bool { return g.Name == f.name })
		if values := slices.DeleteFunc(f.values, func(v string) bool { return v == "" }); len(values) > 0 {
			t.Facts = append(t.Facts, report.Fact{Name: f.name, Value: strings.Join(values, ", ")})
		}
	}
	t.Histograms = slices.DeleteFunc(t.Histograms, func(h report.Histogram) bool {
		return slices.ContainsFunc(allMetrics(), func(m live.Metric) bool { return m.Title() == h.Title })
	})
	for _, m := range allMetrics() {
		if h := &s.Histograms[m]; h.Total() > 0 {
			t.Histograms = append(t.Histograms, spanHistogram(s, m, h))
		}
	}
	addMillis(p, at, s, sample)
}

func allMetrics() (all []live.Metric) {
	for m := range live.NumMetrics {
		all = append(all, m)
	}
	return all
}

func spanHistogram(s *live.Span, m live.Metric, h *live.Histogram) report.Histogram {
	g := report.Histogram{Title: m.Title(), Unit: "packets"}
	scale := 1.0
	switch {
	case m.InCycles() && s.Hz > 0:
		g.Micros, scale = true, 1e6/s.Hz
	case m.InCycles():
		g.Unit = "cycles"
	case m == live.UpcallsPerIteration:
		g.Unit = "upcalls"
	}
	for i, n := range h.Counts {
		b := report.Bin{Count: n, To: math.Inf(1)}
		if i > 0 {
			b.From = float64(h.Walls[i-1]) * scale
		}
		if i < len(h.Walls) {
			b.To = float64(h.Walls[i]) * scale
		}
		g.Bins = append(g.Bins, b)
	}
	add := func(percent float64, e live.Estimate) {
		g.Percentiles = append(g.Percentiles, report.Percentile{Percent: percent, Value: e.Value * scale, Sign: e.Bound.String()})
	}
	for _, percent := range []float64{50, 90, 99, 99.9, 99.99} {
		add(percent, h.Percentile(percent))
	}
	add(100, h.Max())
	return g
}

// addMillis adds what happened in the last milliseconds. Their newest ended just before
// the newest iteration or, if the target doesn't tell when that was, about when it
// answered.
func addMillis(p *report.Page, at int, s *live.Span, sample *live.Sample) {
	end := sample.Arrived
	if len(s.Iterations) > 0 && !s.Iterations[0].Time.IsZero() {
		end = s.Iterations[0].Time
	}
	for _, x := range []struct {
		name, unit string
		value      func(*live.Milli) float64
	}{
		{"packets received in a millisecond", "packets", func(m *live.Milli) float64 { return m.Rx / (1e3 * m.Seconds) }},
		{"queue fill", "packets", func(m *live.Milli) float64 { return m.Fill }},
		{"upcalls in a millisecond", "upcalls", func(m *live.Milli) float64 { return m.Upcalls / (1e3 * m.Seconds) }},
	} {
		series := report.Series{Name: x.name, Unit: x.unit, Thread: at}
		any := false
		for i := range slices.Backward(s.Millis) {
			m := &s.Millis[i]
			to := end.Add(-seconds(m.Age))
			v := x.value(m)
			any = any || v > 0
			series.Points = append(series.Points, report.Point{From: to.Add(-seconds(m.Seconds)), To: to, Value: v})
		}
		if any {
			p.Series = append(p.Series, series)
		}
	}
}

// seconds returns a length of time, none if it isn't known.
func seconds(s float64) time.Duration {
	if math.IsNaN(s) {
		return 0
	}
	return time.Duration(s * 1e9)
}
