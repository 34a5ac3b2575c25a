package top

import (
	"math"
	"slices"
	"strings"

	"github.com/pmdperf/pmdperf/internal/human"
	"github.com/pmdperf/pmdperf/internal/live"
)

// column is a column of the table. Its width includes the blank before it.
type column struct {
	title string
	width int
	rank  int // the lower, the longer it stays on a narrow screen
	name  bool
	value func(*live.Span) float64
	text  func(*live.Span) string
}

// of returns what the column is sorted by, NaN if there is nothing.
func (c *column) of(s *live.Span, p place) float64 {
	switch {
	case c.name && c.title == titleNUMA:
		return float64(p.numa)
	case c.name:
		return float64(p.core)
	case s == nil || c.value == nil:
		return math.NaN()
	}
	return c.value(s)
}

const (
	titleCore = "core"
	titleNUMA = "numa"
	// busyBar is the number of characters of the bar on wide screens.
	busyBar = 16
)

// columns are all columns, from left to right. Those of rank 0 and 1 are 80 wide
// together.
var columns = []column{
	{title: titleCore, width: 5, name: true},
	{title: titleNUMA, width: 5, rank: 4, name: true},
	{title: "busy%", width: 6, value: (*live.Span).BusyPercent, text: number((*live.Span).BusyPercent, human.Percent)},
	{title: "", width: busyBar + 1, rank: 5, text: func(s *live.Span) string { return bar(s.BusyPercent()/100, busyBar) }},
	{title: "idle%", width: 6, rank: 6, value: (*live.Span).IdlePercent, text: number((*live.Span).IdlePercent, human.Percent)},
	{title: "sleep%", width: 7, rank: 6, value: (*live.Span).SleepPercent, text: number((*live.Span).SleepPercent, human.Percent)},
	{title: "Mpps", width: 6, value: perSecond(live.RxPackets), text: number(perSecond(live.RxPackets), mega)},
	{title: "tx Mpps", width: 8, rank: 2, value: perSecond(live.TxPackets), text: number(perSecond(live.TxPackets), mega)},
	{title: "drop/s", width: 7, rank: 3, value: perSecond(live.Drops), text: number(perSecond(live.Drops), human.Short)},
	{title: "cyc/pkt", width: 8, rank: 1, value: (*live.Span).CyclesPerPacket, text: number((*live.Span).CyclesPerPacket, cycles)},
	{title: "p/bat", width: 6, rank: 1, value: perBatch, text: number(perBatch, func(v float64) string { return human.Decimals(v, 1) })},
	{title: "upc/s", width: 6, rank: 1, value: (*live.Span).UpcallsPerSecond, text: number((*live.Span).UpcallsPerSecond, human.Short)},
	{title: "it/s", width: 6, rank: 3, value: perSecond(live.Iterations), text: number(perSecond(live.Iterations), human.Short)},
	{title: "p50", width: 8, rank: 1, value: took(50), text: tookText(50)},
	{title: "p99", width: 8, value: took(99), text: tookText(99)},
	{title: "p99.9", width: 8, rank: 1, value: took(99.9), text: tookText(99.9)},
	{title: "max", width: 8, value: took(100), text: tookText(100)},
	{title: "fill", width: 6, rank: 1, value: fill, text: fillText},
	{title: "susp", width: 5, rank: 1, value: suspicious, text: number(suspicious, human.Short)},
}

// fit returns the indexes of the columns for which a screen is wide enough, or the
// most important ones if it is for none.
func fit(width int) []int {
	var on []int
	total := 0
	for rank := range 10 {
		for i, c := range columns {
			if c.rank == rank && (rank == 0 || total+c.width <= width) {
				total += c.width
				on = append(on, i)
			}
		}
	}
	slices.Sort(on)
	return on
}

func number(value func(*live.Span) float64, text func(float64) string) func(*live.Span) string {
	return func(s *live.Span) string { return text(value(s)) }
}

func perSecond(c live.Counter) func(*live.Span) float64 {
	return func(s *live.Span) float64 { return s.PerSecond(c) }
}

// suspicious is a number and no rate: where there are any, each is worth a look.
func suspicious(s *live.Span) float64 { return s.Counts.Get(live.Suspicious) }

func perBatch(s *live.Span) float64 { return s.Per(live.RxPackets, live.RxBatches) }

// mega writes a rate in millions, in five characters below 1000 M.
func mega(v float64) string {
	switch v /= 1e6; {
	case v < 9.9995:
		return human.Decimals(v, 3)
	case v < 99.995:
		return human.Decimals(v, 2)
	default:
		return human.Decimals(v, 1)
	}
}

// cycles writes a number of cycles in at most seven characters.
func cycles(v float64) string {
	if v < 999_999.5 {
		return human.Decimals(v, 0)
	}
	return human.Short(v)
}

// estimate returns a percentile of a span's metric, or its maximum for 100.
func estimate(s *live.Span, m live.Metric, percent float64) live.Estimate {
	h := &s.Histograms[m]
	if percent == 100 {
		return h.Max()
	}
	return h.Percentile(percent)
}

func took(percent float64) func(*live.Span) float64 {
	return func(s *live.Span) float64 { return estimate(s, live.CyclesPerIteration, percent).Value }
}

func tookText(percent float64) func(*live.Span) string {
	return func(s *live.Span) string {
		return s.Format(live.CyclesPerIteration, estimate(s, live.CyclesPerIteration, percent))
	}
}

func fill(s *live.Span) float64 { return estimate(s, live.QueueFill, 100).Value }

func fillText(s *live.Span) string {
	return s.Format(live.QueueFill, estimate(s, live.QueueFill, 100))
}

// table returns the heading and as many rows as there is room for around the selected
// one.
func (m *Model) table(rows int) []string {
	on := fit(m.width)
	var head strings.Builder
	for _, i := range on {
		style := styles.heading
		if i == m.sortBy {
			style = styles.sorted
		}
		head.WriteString(pad(style.Render(columns[i].title), columns[i].width))
	}
	lines := []string{head.String()}
	cursor, n := m.cursor(), len(m.shown.rows)
	first := min(max(cursor-rows/2, 0), max(n-rows, 0))
	for i := first; i < min(first+rows, n); i++ {
		lines = append(lines, m.row(&m.shown.rows[i], on, i == cursor))
	}
	return lines
}

func (m *Model) row(r *row, on []int, selected bool) string {
	var b strings.Builder
	s := m.window(r)
	for _, i := range on {
		c := &columns[i]
		switch {
		case c.name:
			b.WriteString(pad(name(c.of(s, r.place)), c.width))
		case r.why != "":
			continue
		default:
			b.WriteString(pad(clip(c.text(s), c.width-1), c.width))
		}
	}
	if r.why != "" {
		b.WriteString("  " + r.why)
	}
	line := b.String()
	if selected {
		line = ">" + strings.TrimPrefix(line, " ")
	}
	line = clip(line, m.width)
	style := styles.plain
	switch busy := columnBusy(s); {
	case m.failed != nil:
		style = styles.faint
	case r.why != "":
		style = styles.bad
	case busy >= 95:
		style = styles.bad
	case busy >= 80:
		style = styles.warn
	}
	if selected {
		style = style.Reverse(true)
		line = pad(line, -m.width)
	}
	return style.Render(line)
}

func columnBusy(s *live.Span) float64 {
	if s == nil {
		return 0
	}
	return s.BusyPercent()
}

// name writes a core or NUMA node, of which -1 is not known.
func name(v float64) string {
	if v < 0 {
		return human.Absent
	}
	return human.Decimals(v, 0)
}
