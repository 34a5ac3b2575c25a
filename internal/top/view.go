package top

import (
	"fmt"
	"math"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/pmdperf/pmdperf/internal/human"
	"github.com/pmdperf/pmdperf/internal/live"
)

// styles are the looks of the parts of the screen. The colours are the terminal's own
// 16, and nothing is told by colour alone.
var styles = struct {
	plain, title, heading, sorted, label, faint, warn, bad, good lipgloss.Style
}{
	plain:   lipgloss.NewStyle(),
	title:   lipgloss.NewStyle().Bold(true),
	heading: lipgloss.NewStyle().Foreground(lipgloss.Cyan),
	sorted:  lipgloss.NewStyle().Foreground(lipgloss.Cyan).Bold(true).Underline(true),
	label:   lipgloss.NewStyle().Foreground(lipgloss.Cyan),
	faint:   lipgloss.NewStyle().Faint(true),
	warn:    lipgloss.NewStyle().Foreground(lipgloss.Yellow),
	bad:     lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true),
	good:    lipgloss.NewStyle().Foreground(lipgloss.Green),
}

// View draws the screen.
func (m *Model) View() tea.View {
	v := tea.NewView(strings.Join(m.lines(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "pmdperf top " + m.target
	return v
}

// lines returns the lines of the screen, none wider than it and no more than it has.
func (m *Model) lines() []string {
	if m.width <= 0 || m.height <= 0 {
		return nil
	}
	lines := []string{m.title(), m.message()}
	if len(m.shown.rows) > 0 {
		lines = append(lines, m.table(m.tableRows())...)
		if !m.tableOnly {
			lines = append(lines, "")
			lines = append(lines, m.detail(&m.shown.rows[m.cursor()], m.height-1-len(lines))...)
		}
	}
	lines = lines[:min(len(lines), m.height-1)]
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines, m.keys())
	for i := range lines {
		lines[i] = clip(lines[i], m.width)
	}
	return lines
}

// tableRows returns how many rows of the table there is room for. The details get what
// the rows leave, but at least so much that they tell something.
func (m *Model) tableRows() int {
	const frame, details = 4, 14
	room := m.height - frame
	if !m.tableOnly {
		room = max(room-details, 3)
	}
	return min(len(m.shown.rows), max(room, 1))
}

// title says what is looked at.
func (m *Model) title() string {
	s := styles.title.Render("pmdperf top " + m.target)
	p := m.shown.sample
	if p == nil {
		return s
	}
	window := "since the last clear"
	for i := range m.shown.rows {
		if r := &m.shown.rows[i]; !m.whole && r.span != nil && !r.span.Cleared {
			window = fmt.Sprintf("over the last %.1f s", r.span.Seconds)
			break
		}
	}
	pmds := fmt.Sprintf("%d PMDs", len(m.shown.rows))
	if len(m.shown.rows) == 1 {
		pmds = "1 PMD"
	}
	if n := m.tableRows(); n < len(m.shown.rows) {
		pmds = fmt.Sprintf("%d of %s", n, pmds)
	}
	return s + fmt.Sprintf("  %s  %s, %s, %s form", p.Arrived.Format(time.TimeOnly), pmds, window, p.Form)
}

// message is the line for what the user has to know.
func (m *Model) message() string {
	switch p := m.shown.sample; {
	case m.failed != nil && m.last == nil:
		return styles.bad.Render("no answer yet: " + why(m.failed) + "; trying again")
	case m.failed != nil:
		return styles.bad.Render(fmt.Sprintf("TARGET GONE for %.0f s, trying again: %s", time.Since(m.gone).Seconds(), why(m.failed)))
	case p == nil:
		return "asking " + m.target + " ..."
	case m.paused:
		return styles.warn.Render("PAUSED: press p to go on")
	case len(m.shown.rows) == 0:
		return "the target has no PMD threads"
	case !m.whole && m.restarted():
		return styles.warn.Render("the counters were cleared, or the target was started again: this is since then")
	case len(p.Notes) > 0:
		return styles.warn.Render(p.Notes[0])
	}
	return ""
}

// why is an error without the name of the package it comes from.
func why(err error) string { return strings.TrimPrefix(err.Error(), "appctl: ") }

func (m *Model) restarted() bool {
	for i := range m.shown.rows {
		if s := m.shown.rows[i].span; s != nil && s.Restarted {
			return true
		}
	}
	return false
}

// keys is the line with the keys.
func (m *Model) keys() string {
	sort := "▲" + columns[m.sortBy].title
	if m.descending() {
		sort = "▼" + columns[m.sortBy].title
	}
	hints := []string{"q quit", "↑↓ PMD", "s sort" + sort, "r reverse", "p pause", "w window", "h hist.", "d detail"}
	return styles.faint.Render(clip(strings.Join(hints, "  "), m.width))
}

// detail returns at most so many lines about one PMD.
func (m *Model) detail(r *row, room int) []string {
	s := m.window(r)
	if s == nil {
		return []string{styles.bad.Render(fmt.Sprintf("core %d: %s", r.core, r.why))}
	}
	lines := []string{m.heading(s), times(s), packets(s)}
	lines = append(lines, percentiles(r)...)
	lines = append(lines, m.history(s)...)
	lines = append(lines, "")
	lines = lines[:min(len(lines), max(room, 0))]
	return append(lines, m.charts(s, room-len(lines))...)
}

func (m *Model) heading(s *live.Span) string {
	parts := []string{fmt.Sprintf("core %d", s.Core)}
	if s.NUMA >= 0 {
		parts = append(parts, fmt.Sprintf("NUMA node %d", s.NUMA))
	}
	if s.Name != "" {
		parts = append(parts, s.Name)
	}
	if s.Level != "" {
		parts = append(parts, "level "+s.Level)
	}
	if s.State != "" {
		parts = append(parts, s.State)
	}
	if !math.IsNaN(s.Hz) {
		sign := ""
		if s.Estimated {
			sign = live.About.String()
		}
		parts = append(parts, fmt.Sprintf("%s%.2f GHz", sign, s.Hz/1e9))
	}
	return styles.title.Render(strings.Join(parts, ", "))
}

// field writes a number with what it is, or nothing if it isn't known.
func field(label string, v float64, text func(float64) string, unit string) string {
	if math.IsNaN(v) {
		return ""
	}
	return label + " " + text(v) + unit
}

// fields writes a line of those that are known.
func fields(label string, fs ...string) string {
	var b strings.Builder
	b.WriteString(styles.label.Render(pad(label, -labelWidth)))
	for _, f := range fs {
		if f != "" {
			b.WriteString(f + "  ")
		}
	}
	return strings.TrimRight(b.String(), " ")
}

const labelWidth = 12

func times(s *live.Span) string {
	return fields("time",
		field("busy", s.BusyPercent(), human.Percent, "%"),
		field("idle", s.IdlePercent(), human.Percent, "%"),
		field("sleep", s.SleepPercent(), human.Percent, "%"),
		field("gaps", s.GapPercent(), human.Percent, "%"),
		field("iterations", s.PerSecond(live.Iterations), human.Short, "/s"))
}

func packets(s *live.Span) string {
	share := func(label string, c live.Counter) string {
		v := 100 * s.Per(c, live.Passes)
		if v == 0 {
			return ""
		}
		return field(label, v, human.Percent, "%")
	}
	return fields("packets",
		field("rx", s.PerSecond(live.RxPackets), human.Short, "/s"),
		field("tx", s.PerSecond(live.TxPackets), human.Short, "/s"),
		field("drop", s.PerSecond(live.Drops), human.Short, "/s"),
		share("phwol", live.PHWOLHits), share("mfex", live.MFEXOptHits), share("simple", live.SimpleMatchHits),
		share("emc", live.EMCHits), share("smc", live.SMCHits), share("megaflow", live.MegaflowHits),
		share("upcall", live.Upcalls), share("lost upcall", live.LostUpcalls))
}

// percentiles compares now with since the last clear.
func percentiles(r *row) []string {
	line := func(label string, s *live.Span) string {
		at := func(name string, percent float64) string {
			return name + " " + pad(tookText(percent)(s), -7)
		}
		return fields(label, at("p50", 50), at("p90", 90), at("p99", 99), at("p99.9", 99.9), at("max", 100))
	}
	lines := []string{line("iter., now", r.span), line("since clear", r.whole)}
	if r.span.Cleared {
		return lines[1:]
	}
	return lines
}

// history returns the time lines.
func (m *Model) history(s *live.Span) []string {
	const rightWidth = 12 // for " max 2.07ms"
	slots, width := timeline(s.Millis, min(m.width-labelWidth-rightWidth, len(s.Millis)))
	if slots == nil {
		return nil
	}
	line := func(label string, value func(*slot) float64, text func(float64) string) string {
		values := make([]float64, len(slots))
		most := 0.0
		for i := range slots {
			values[i] = math.NaN()
			if slots[i].seconds > 0 {
				values[i] = value(&slots[i])
			}
			if values[i] > most {
				most = values[i]
			}
		}
		return styles.label.Render(pad(label, -labelWidth)) + styles.good.Render(spark(values, most)) + " max " + text(most)
	}
	lines := []string{
		line("packets/s", func(x *slot) float64 { return x.rx / x.seconds }, human.Short),
		line("busy", func(x *slot) float64 { return 100 * x.busy / (x.seconds * s.Hz) },
			func(v float64) string { return human.Percent(v) + "%" }),
		line("time/iter.", func(x *slot) float64 { return s.Time(x.took) }, human.Duration),
	}
	if s.Histograms[live.QueueFill].Known() {
		lines = append(lines, line("queue fill", func(x *slot) float64 { return x.fill }, human.Short))
	}
	span := fmt.Sprintf("the last %s, %s a column, newest right", human.Duration(width*float64(len(slots))), human.Duration(width))
	return append(lines, styles.faint.Render(strings.Repeat(" ", labelWidth)+span))
}

// charts returns histograms in so many lines, as many as there is room for.
func (m *Model) charts(s *live.Span, room int) []string {
	const (
		gap   = 4
		least = 3 // lines of bars
	)
	abreast := min(max((m.width+gap)/(histogramWidth+gap), 1), int(live.NumMetrics))
	decks := 1
	if abreast < int(live.NumMetrics) && room >= 2*(8+3) {
		decks = 2
	}
	height := room/decks - 2 // title and axis
	if decks == 2 {
		height-- // blank line
	}
	if height < least {
		return nil
	}
	height = min(height, 18)
	known := false
	for i := range s.Histograms {
		known = known || s.Histograms[i].Known()
	}
	if !known {
		return []string{"no histograms: the target does not record in detail"}
	}
	var lines []string
	next := 0
	for deck := range decks {
		block := make([]string, height+2)
		for i := 0; i < abreast && next < int(live.NumMetrics); i++ {
			metric := (m.metric + live.Metric(next)) % live.NumMetrics
			next++
			h := &s.Histograms[metric]
			title := metric.Title() + ": " + human.Short(float64(h.Total()))
			if !h.Known() {
				title = metric.Title() + ": not recorded"
			}
			part := append([]string{styles.label.Render(pad(title, -histogramWidth))}, chart(s.PMD, metric, h, height)...)
			for j := range block {
				if i > 0 {
					block[j] += strings.Repeat(" ", gap)
				}
				block[j] += part[j]
			}
		}
		if deck > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, block...)
	}
	return lines
}
