package top

import (
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/pmdperf/pmdperf/internal/live"
)

// eighths are the characters that fill so many eighths of a cell from below.
var eighths = [...]string{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}

// spark returns a character for each value, NaN being a blank, on a scale from 0 to most.
func spark(values []float64, most float64) string {
	var b strings.Builder
	for _, v := range values {
		share := v / most
		switch {
		case math.IsNaN(v), most > 0 && math.IsNaN(share): // infinite, both
			b.WriteString(eighths[0])
		case most <= 0:
			b.WriteString(eighths[1])
		default:
			b.WriteString(eighths[1+int(math.Round(7*min(max(share, 0), 1)))])
		}
	}
	return b.String()
}

// bar returns a bar that fills a share of a width from the left.
func bar(share float64, width int) string {
	if math.IsNaN(share) {
		share = 0
	}
	n := int(math.Round(float64(width) * min(max(share, 0), 1)))
	return strings.Repeat("█", n) + strings.Repeat("░", width-n)
}

// slot is what happened in one column of a time line.
type slot struct {
	seconds, iterations, busy, rx float64
	took, fill                    float64 // highest of the rows' averages
}

// timeline spreads the millisecond history over so many columns, the newest on the
// right, and returns how many seconds each has.
func timeline(ms []live.Milli, columns int) (slots []slot, width float64) {
	if len(ms) == 0 || columns < 1 {
		return nil, 0
	}
	oldest := &ms[len(ms)-1]
	width = (oldest.Age + oldest.Seconds) / float64(columns)
	if !(width > 0) { // NaN, too
		return nil, 0
	}
	slots = make([]slot, columns)
	for i := range ms {
		r := &ms[i]
		if !(r.Age >= 0 && r.Age < oldest.Age+oldest.Seconds && r.Seconds > 0) {
			continue // makes no sense, or has no place
		}
		for at := min(int(r.Age/width), columns-1); at < columns; at++ {
			from, to := float64(at)*width, float64(at+1)*width
			overlap := min(to, r.Age+r.Seconds) - max(from, r.Age)
			if overlap <= 0 {
				break
			}
			part := overlap / r.Seconds
			s := &slots[columns-1-at]
			s.seconds += overlap
			s.iterations += part * r.Iterations
			s.busy += part * r.BusyCycles
			s.rx += part * r.Rx
			if r.Iterations > 0 {
				s.took = max(s.took, r.Cycles/r.Iterations)
			}
			s.fill = max(s.fill, r.Fill)
		}
	}
	return slots, width
}

// histogramWidth is the width of a histogram on the screen, a column for each bin.
const histogramWidth = 32

// chart returns a histogram in so many lines of histogramWidth characters, and a line
// with the upper bounds of some of its bins. The scale is logarithmic: one slow iteration
// among millions has to be seen.
func chart(p *live.PMD, metric live.Metric, h *live.Histogram, lines int) []string {
	var most uint64
	for _, n := range h.Counts {
		most = max(most, n)
	}
	cells := make([]strings.Builder, lines)
	for _, n := range h.Counts {
		filled := 0 // eighths of a cell
		if n > 0 {
			filled = max(1, int(math.Round(float64(8*lines)*math.Log1p(float64(n))/math.Log1p(float64(most)))))
		}
		for i := range cells {
			below := 8 * (lines - 1 - i)
			cells[i].WriteString(eighths[min(max(filled-below, 0), 8)])
		}
	}
	out := make([]string, 0, lines+1)
	for i := range cells {
		out = append(out, pad(cells[i].String(), -histogramWidth))
	}
	var axis strings.Builder
	for i := 0; i < histogramWidth; i += 8 {
		label := ""
		if i < len(h.Walls) {
			label = p.Format(metric, live.Estimate{Value: float64(h.Walls[i])})
		}
		axis.WriteString(pad(label, -8))
	}
	return append(out, axis.String())
}

// pad fills a text up to a width with blanks on the left or, if width is negative,
// on the right.
func pad(s string, width int) string {
	blanks := strings.Repeat(" ", max(max(width, -width)-ansi.StringWidth(s), 0))
	if width < 0 {
		return s + blanks
	}
	return blanks + s
}

// clip shortens a text to a width.
func clip(s string, width int) string { return ansi.Truncate(s, max(width, 0), "…") }
