package ovs

import (
	"bytes"
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
	text, _ := r.AppendText(nil)
	return string(text)
}

// AppendText appends the text that String returns. The error is always nil.
func (r *PerfReport) AppendText(to []byte) ([]byte, error) {
	b := bytes.NewBuffer(to)
	b.Grow(len(r.Blocks) * 8 << 10) // what a block without histories takes
	for i := range r.Blocks {
		r.Blocks[i].write(b)
	}
	return b.Bytes(), nil
}

func (p *PerfBlock) write(b *bytes.Buffer) {
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

func (r *Row) write(b *bytes.Buffer) {
	begin := b.Len()
	b.WriteString("  ")
	if r.Detail {
		b.WriteString("- ")
	}
	b.WriteString(r.Label)
	b.WriteByte(':')
	length := b.Len() - begin
	fill(b, ' ', nameWidth-length)
	var room [20]byte
	value := strconv.AppendUint(room[:0], r.Value, 10)
	if len(value) >= valueWidth && length >= nameWidth {
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
		b.WriteByte(' ')
		b.WriteString(f.Unit)
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

func (p *PerfBlock) writeHistograms(b *bytes.Buffer) {
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
	var wallRoom, countRoom [20]byte
	for row := range rows {
		b.WriteString("  ")
		for i := range p.Histograms {
			h := &p.Histograms[i]
			wall, count := append(wallRoom[:0], '>'), countRoom[:0]
			if row < len(h.Walls) {
				wall = strconv.AppendUint(wallRoom[:0], h.Walls[row], 10)
			}
			if row < len(h.Counts) {
				count = strconv.AppendUint(count, h.Counts[row], 10)
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
	fill(b, '-', ruleWidth)
	b.WriteByte('\n')
	writeAverages(b, p.Averages, func(a Average) string { return a.Title })
	writeAverages(b, p.Averages, func(a Average) string { return a.Number })
}

func writeAverages(b *bytes.Buffer, avgs []Average, text func(Average) string) {
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
