package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/internal/human"
	"github.com/pmdperf/pmdperf/internal/live"
)

// page is a text under construction. The colours in it are left out where they don't
// belong.
type page struct {
	strings.Builder
	title, label, bad, faint lipgloss.Style
}

func newPage() *page {
	return &page{
		title: lipgloss.NewStyle().Bold(true),
		label: lipgloss.NewStyle().Foreground(lipgloss.Cyan),
		bad:   lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true),
		faint: lipgloss.NewStyle().Faint(true),
	}
}

// text returns what is to be shown of a sample: what happened since before or, if that is
// nil, since the last clear.
func (f *showFlags) text(s, before *live.Sample) string {
	p := newPage()
	spans := s.Since(before)
	for i := range spans {
		if i > 0 {
			p.WriteByte('\n')
		}
		f.span(p, &spans[i], s)
	}
	for _, m := range s.Missing {
		p.WriteString(p.bad.Render(fmt.Sprintf("core %d is not shown: %s", m.Core, m.Reason)) + "\n")
	}
	for _, n := range s.Notes {
		p.WriteString(p.faint.Render("note: "+n) + "\n")
	}
	if p.Len() == 0 {
		fmt.Fprintf(p, "%s has no PMD threads\n", f.target)
	}
	return p.String()
}

func (f *showFlags) span(p *page, s *live.Span, sample *live.Sample) {
	p.heading(s, sample)
	if s.Stalled() {
		p.WriteString("  " + p.bad.Render("not a single iteration was completed") + "\n")
	}
	p.time(s)
	p.packets(s)
	p.percentiles(s)
	if f.iterations > 0 {
		p.iterations(s, f.slowest, f.iterations)
	}
	if f.millis > 0 {
		p.millis(s)
	}
	if !f.noHistograms {
		p.histograms(s)
	}
}

func (p *page) heading(s *live.Span, sample *live.Sample) {
	parts := []string{fmt.Sprintf("core %d", s.Core)}
	if s.NUMA != ovs.Unspecified {
		parts = append(parts, fmt.Sprintf("NUMA node %d", s.NUMA))
	}
	for _, word := range []string{s.Name, s.Level, s.State} {
		if word != "" {
			parts = append(parts, word)
		}
	}
	window := fmt.Sprintf("%.1f s", s.Seconds)
	switch {
	case s.Restarted:
		window += " since the counters were cleared, or the program was started again"
	case s.Cleared:
		window += " since the last clear"
	}
	fmt.Fprintf(p, "%s\n  %s, %s\n", p.title.Render(strings.Join(parts, ", ")), sample.Arrived.Format(time.TimeOnly), window)
}

// line writes a label and those of the fields that are not empty.
func (p *page) line(label string, fields ...string) {
	fields = slices.DeleteFunc(fields, func(s string) bool { return s == "" })
	if len(fields) > 0 {
		fmt.Fprintf(p, "  %s %s\n", p.label.Render(fmt.Sprintf("%-11s", label)), strings.Join(fields, ", "))
	}
}

// known returns a number in words, or nothing if it isn't known.
func known(format string, v float64, text func(float64) string) string {
	if math.IsNaN(v) {
		return ""
	}
	return fmt.Sprintf(format, text(v))
}

func (p *page) time(s *live.Span) {
	p.line("time",
		known("busy %s %%", s.BusyPercent(), human.Percent),
		known("idle %s %%", s.IdlePercent(), human.Percent),
		known("asleep %s %%", s.SleepPercent(), human.Percent),
		known("between iterations %s %% of all cycles", s.GapPercent(), human.Percent))
	p.line("iterations", count(s, live.Iterations), rate(s, live.Iterations), length(s, s.Per(live.UsedCycles, live.Iterations), "each"))
}

func (p *page) packets(s *live.Span) {
	lost := s.Counts.Get(live.RxDrops)
	if lost == 0 {
		lost = math.NaN() // or not reported
	}
	p.line("received", count(s, live.RxPackets), rate(s, live.RxPackets),
		length(s, s.CyclesPerPacket(), "each"), known("%s a batch", s.Per(live.RxPackets, live.RxBatches), oneDecimal),
		known("%s lost in full rings", lost, whole))
	p.line("sent", count(s, live.TxPackets), rate(s, live.TxPackets),
		known("%s a batch", s.Per(live.TxPackets, live.TxBatches), oneDecimal), known("%s dropped", s.Counts.Get(live.Drops), whole))
	if !(s.Counts.Get(live.Passes) > 0) {
		return
	}
	share := func(what string, c live.Counter) string {
		if !(s.Counts.Get(c) > 0) {
			return ""
		}
		return known(what+" %s %%", 100*s.Per(c, live.Passes), human.Percent)
	}
	p.line("lookups", share("hardware", live.PHWOLHits), share("MFEX", live.MFEXOptHits),
		share("simple match", live.SimpleMatchHits), share("EMC", live.EMCHits), share("SMC", live.SMCHits),
		share("megaflow", live.MegaflowHits), share("upcall", live.Upcalls), share("lost upcall", live.LostUpcalls))
	if upcalls := s.Counts.Get(live.Upcalls) + s.Counts.Get(live.LostUpcalls); upcalls > 0 {
		p.line("upcalls", whole(upcalls), known("%s/s", s.UpcallsPerSecond(), human.Short),
			known("%s of them lost", s.Counts.Get(live.LostUpcalls), whole),
			length(s, s.Counts.Get(live.UpcallCycles)/upcalls, "each"))
	}
}

func whole(v float64) string { return human.Count(uint64(math.Round(v))) }

// cycles writes a number in at most nine characters.
func cycles(v float64) string {
	if v < 1e7-0.5 {
		return whole(v)
	}
	return human.Short(v)
}

func oneDecimal(v float64) string { return human.Decimals(v, 1) }

func count(s *live.Span, c live.Counter) string { return known("%s", s.Counts.Get(c), whole) }

func rate(s *live.Span, c live.Counter) string {
	return known("%s/s", s.PerSecond(c), human.Short)
}

// length writes a length in cycles and as a time.
func length(s *live.Span, cycles float64, what string) string {
	switch {
	case math.IsNaN(cycles):
		return ""
	case math.IsNaN(s.Hz):
		return fmt.Sprintf("%s cycles %s", whole(cycles), what)
	}
	return fmt.Sprintf("%s cycles (%s) %s", whole(cycles), human.Duration(s.Time(cycles)), what)
}

// percentiles writes a table of the times of iterations and packets.
func (p *page) percentiles(s *live.Span) {
	columns := []float64{50, 90, 99, 99.9, 99.99}
	rows := []live.Metric{live.CyclesPerIteration, live.CyclesPerPacket, live.CyclesPerUpcall, live.PacketsPerBatch, live.QueueFill}
	rows = slices.DeleteFunc(rows, func(m live.Metric) bool { return s.Histograms[m].Total() == 0 })
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(p, "\n  %s", p.label.Render(fmt.Sprintf("%-24s", "percentiles")))
	for _, c := range columns {
		p.WriteString(p.label.Render(right(fmt.Sprintf("p%g", c), 11)))
	}
	p.WriteString(p.label.Render(right("max", 11)) + "\n")
	for _, m := range rows {
		h := &s.Histograms[m]
		var all []live.Estimate
		for _, c := range columns {
			all = append(all, h.Percentile(c))
		}
		all = append(all, h.Max())
		fmt.Fprintf(p, "  %-24s", m.Title())
		for _, e := range all {
			p.WriteString(right(s.Format(m, e), 11))
		}
		p.WriteByte('\n')
		if m.InCycles() && !math.IsNaN(s.Hz) {
			fmt.Fprintf(p, "  %-24s", "  in cycles")
			for _, e := range all {
				p.WriteString(right(e.Bound.String()+cycles(e.Value), 11))
			}
			p.WriteByte('\n')
		}
	}
}

// right puts a text at the right of a column.
func right(s string, width int) string {
	return strings.Repeat(" ", max(width-ansi.StringWidth(s), 1)) + s
}

// table writes a table with columns as wide as they need to be.
func (p *page) table(title string, rows [][]string) {
	fmt.Fprintf(p, "\n  %s\n", p.label.Render(title))
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], ansi.StringWidth(cell)+2)
		}
	}
	for i, row := range rows {
		var b strings.Builder
		for j, cell := range row {
			b.WriteString(right(cell, widths[j]))
		}
		line := b.String()
		if i == 0 {
			line = p.faint.Render(line)
		}
		p.WriteString(line + "\n")
	}
}

// iterations writes n rows of the iteration history.
func (p *page) iterations(s *live.Span, slowest bool, n int) {
	rows := slices.Clone(s.Iterations)
	title := "last iterations"
	if slowest {
		title = fmt.Sprintf("slowest of the last %d iterations", len(rows))
		slices.SortStableFunc(rows, func(a, b ovs.IterationRow) int { return cmp.Compare(b.Cycles, a.Cycles) })
	}
	if len(rows) == 0 {
		fmt.Fprintf(p, "\n  no iteration is in the history\n")
		return
	}
	cells := [][]string{{"iteration", "ended", "took", "cycles", "rx", "cyc/pkt", "fill", "upcalls", "slowest queue", "after"}}
	for i := range rows[:min(n, len(rows))] {
		r := &rows[i]
		ended, queue, after := human.Absent, human.Absent, human.Absent
		if !r.Time.IsZero() {
			ended = r.Time.Local().Format("15:04:05.000000")
		}
		if r.SlowestQueue != nil {
			queue = fmt.Sprintf("%s/%d", r.SlowestPort, *r.SlowestQueue)
		}
		if len(r.After) > 0 {
			after = strings.Join(r.After, ",")
		}
		perPacket := human.Absent
		if r.Rx > 0 {
			perPacket = human.Count(r.Cycles / r.Rx)
		}
		cells = append(cells, []string{fmt.Sprint(r.Iteration), ended, human.Duration(s.Time(float64(r.Cycles))),
			human.Count(r.Cycles), human.Count(r.Rx), perPacket, optional(r.Fill), optional(r.Upcalls), queue, after})
	}
	p.table(title, cells)
}

func optional(v *uint64) string {
	if v == nil {
		return human.Absent
	}
	return human.Count(*v)
}

// millis writes the millisecond history.
func (p *page) millis(s *live.Span) {
	if len(s.Millis) == 0 {
		fmt.Fprintf(p, "\n  no millisecond is in the history\n")
		return
	}
	cells := [][]string{{"ago", "lasted", "iterations", "took each", "busy %", "packets/s", "cyc/pkt", "fill", "upcalls"}}
	for i := range s.Millis {
		m := &s.Millis[i]
		perPacket := human.Absent
		if m.Rx > 0 {
			perPacket = whole(m.BusyCycles / m.Rx)
		}
		each := human.Absent
		if m.Iterations > 0 {
			each = human.Duration(s.Time(m.Cycles / m.Iterations))
		}
		cells = append(cells, []string{human.Duration(m.Age), human.Duration(m.Seconds), whole(m.Iterations), each,
			human.Percent(100 * m.BusyCycles / (m.Seconds * s.Hz)), human.Short(m.Rx / m.Seconds), perPacket,
			whole(m.Fill), whole(m.Upcalls)})
	}
	p.table("last milliseconds, each ending so long before the newest", cells)
}

// barWidth is the length of the longest bar.
const barWidth = 40

// histograms writes the bins of all histograms that have values, from the first to the
// last that isn't empty.
func (p *page) histograms(s *live.Span) {
	for m := range live.NumMetrics {
		h := &s.Histograms[m]
		total, most := h.Total(), slices.Max(append([]uint64{0}, h.Counts...))
		if total == 0 {
			continue
		}
		unit := ""
		if m.InCycles() {
			unit = ", cycles"
		}
		fmt.Fprintf(p, "\n  %s\n", p.label.Render(fmt.Sprintf("%s%s: %s values", m.Title(), unit, human.Count(total))))
		first := slices.IndexFunc(h.Counts, func(n uint64) bool { return n > 0 })
		last := len(h.Counts) - 1
		for h.Counts[last] == 0 {
			last--
		}
		for i := first; i <= last; i++ {
			if h.Counts[i] == 0 {
				if h.Counts[i-1] != 0 {
					fmt.Fprintf(p, "  %s\n", right("...", 12))
				}
				continue
			}
			wall, sign := uint64(0), "≤"
			if i < len(h.Walls) {
				wall = h.Walls[i]
			} else {
				wall, sign = h.Walls[len(h.Walls)-1], ">"
			}
			at := ""
			if m.InCycles() && !math.IsNaN(s.Hz) {
				at = right(human.Duration(s.Time(float64(wall))), 8)
			}
			n := h.Counts[i]
			// A bin that has a value has something to show.
			bar := strings.Repeat("█", int(math.Ceil(barWidth*float64(n)/float64(most))))
			fmt.Fprintf(p, "  %s %10s%s %14s %5.1f%% %s\n", sign, human.Count(wall), at, human.Count(n), 100*float64(n)/float64(total), bar)
		}
	}
}
