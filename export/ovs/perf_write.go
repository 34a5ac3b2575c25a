package ovs

import (
	"strconv"
	"strings"
)

const (
	nameWidth    = 22 // "  - Simple Match hits:"
	valueWidth   = 12
	wallWidth    = 9
	countWidth   = 11
	averageWidth = wallWidth + 1 + countWidth
	ruleWidth    = 7*(averageWidth+2) - 7 // the line of dashes below the histograms
)

// String returns the report as OVS 3.1 prints it.
func (r *PerfReport) String() string {
	var b strings.Builder
	b.Grow(len(r.Blocks) * 8 << 10) // what a block without histories takes; to grow byte by byte makes twice the garbage
	for i := range r.Blocks {
		r.Blocks[i].write(&b)
	}
	return b.String()
}

func (p *PerfBlock) write(b *strings.Builder) {
	b.WriteByte('\n')
	if p.Time != "" {
		b.WriteString("Time: " + p.Time + "\n")
	}
	if p.Duration != "" {
		b.WriteString("Measurement duration: " + p.Duration + " s\n")
	}
	b.WriteString("\n" + p.Thread.String() + "\n\n")
	for i := range p.Rows {
		p.Rows[i].write(b)
	}
	// Where no packet was sent, OVS has a blank line in place of the Tx batches.
	if n := len(p.Rows); n > 0 && p.Rows[n-1].Label == labelTxPackets && p.Rows[n-1].Value == 0 {
		b.WriteByte('\n')
	}
	if len(p.Histograms) > 0 {
		b.WriteByte('\n')
		p.writeHistograms(b)
	}
	for _, t := range []*Table{p.Iterations, p.Milliseconds} {
		if t != nil {
			b.WriteByte('\n')
			t.write(b)
		}
	}
}

func (r *Row) write(b *strings.Builder) {
	name := "  " + r.Label + ":"
	if r.Detail {
		name = "  - " + r.Label + ":"
	}
	value := strconv.FormatUint(r.Value, 10)
	pad(b, name, -nameWidth)
	if len(value) >= valueWidth && len(name) >= nameWidth {
		b.WriteByte(' ')
	}
	pad(b, value, valueWidth)
	for i, f := range r.Figures {
		if i == 0 {
			b.WriteString("  (")
		} else {
			b.WriteString(", ")
		}
		pad(b, f.Number, figureWidth(f.Unit))
		b.WriteString(" " + f.Unit)
	}
	if len(r.Figures) > 0 {
		b.WriteByte(')')
	}
	b.WriteByte('\n')
}

// figureWidth returns the least width of a figure: only percentages and the average
// sleep are aligned.
func figureWidth(unit string) int {
	switch {
	case strings.HasPrefix(unit, "%"):
		return 5
	case unit == unitSleep:
		return 3
	}
	return 0
}

func (p *PerfBlock) writeHistograms(b *strings.Builder) {
	b.WriteString("Histograms\n  ")
	rows := 0
	for i := range p.Histograms {
		h := &p.Histograms[i]
		b.WriteString(" ")
		pad(b, h.Title, -averageWidth)
		if i < len(p.Histograms)-1 {
			b.WriteString(" ")
		}
		rows = max(rows, len(h.Counts))
	}
	b.WriteByte('\n')
	for row := range rows {
		b.WriteString("  ")
		for i := range p.Histograms {
			h := &p.Histograms[i]
			wall, count := ">", ""
			if row < len(h.Walls) {
				wall = strconv.FormatUint(h.Walls[row], 10)
			}
			if row < len(h.Counts) {
				count = strconv.FormatUint(h.Counts[row], 10)
			}
			b.WriteString(" ")
			pad(b, wall, -wallWidth)
			b.WriteByte(' ')
			pad(b, count, -countWidth)
			if i < len(p.Histograms)-1 {
				b.WriteString(" ")
			}
		}
		b.WriteByte('\n')
	}
	if len(p.Averages) == 0 {
		return
	}
	b.WriteString(strings.Repeat("-", ruleWidth) + "\n")
	writeAverages(b, p.Averages, func(a Average) string { return a.Title })
	writeAverages(b, p.Averages, func(a Average) string { return a.Number })
}

func writeAverages(b *strings.Builder, avgs []Average, text func(Average) string) {
	b.WriteString("  ")
	for i, a := range avgs {
		b.WriteByte(' ')
		pad(b, text(a), -averageWidth)
		if i < len(avgs)-1 {
			b.WriteByte(' ')
		}
	}
	b.WriteByte('\n')
}
