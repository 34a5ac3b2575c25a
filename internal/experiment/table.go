package experiment

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// WriteTable writes the report for people. Rows that have the same labels and figures
// follow each other in one table.
func (r *Report) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, %.0f s", r.Experiment, r.Began.Format("2006-01-02 15:04 MST"), r.Seconds)
	if r.Interrupted {
		b.WriteString(", interrupted")
	}
	fmt.Fprintf(&b, "\n%s\n", r.Machine)
	for i, p := range r.Parameters {
		sep := ", "
		if i == 0 {
			sep = ""
		}
		fmt.Fprintf(&b, "%s%s %s", sep, p.Name, p.Value)
	}
	b.WriteByte('\n')
	for i := 0; i < len(r.Rows); {
		j := i
		for j < len(r.Rows) && sameColumns(&r.Rows[i], &r.Rows[j]) {
			j++
		}
		b.WriteByte('\n')
		writeRows(&b, r.Rows[i:j])
		i = j
	}
	for i := range r.Rows {
		if h := r.Rows[i].Histogram; h != nil {
			b.WriteByte('\n')
			h.write(&b, r.Rows[i].title())
		}
	}
	for i, n := range r.Notes {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func sameColumns(a, b *Row) bool {
	return strings.Join(a.header(), "\n") == strings.Join(b.header(), "\n")
}

// title returns the row's labels on one line.
func (r *Row) title() string {
	var parts []string
	for _, l := range r.Labels {
		parts = append(parts, l.Name+" "+l.Value)
	}
	return strings.Join(parts, ", ")
}

// header returns the names of the row's columns.
func (r *Row) header() (cells []string) {
	for _, l := range r.Labels {
		cells = append(cells, l.Name)
	}
	for _, f := range r.Figures {
		cells = append(cells, f.column(" "))
	}
	return cells
}

// Cell returns the figure as a table has it: with its interval where it has one.
func (f *Figure) Cell() string {
	number := func(v float64) string { return formatNumber(v, f.Unit) }
	if f.Interval == nil {
		return number(f.Value)
	}
	return fmt.Sprintf("%s [%s, %s]", number(f.Value), number(f.Interval[0]), number(f.Interval[1]))
}

// formatNumber writes a number with four digits or so; a change with its sign.
func formatNumber(v float64, unit string) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "-"
	case unit == "%":
		return fmt.Sprintf("%+.2f", v)
	case v == math.Trunc(v) && a < 1e15, a >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	default:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
}

func writeRows(b *strings.Builder, rows []Row) {
	lines := [][]string{rows[0].header()}
	labels := len(rows[0].Labels)
	for i := range rows {
		var cells []string
		for _, l := range rows[i].Labels {
			cells = append(cells, l.Value)
		}
		for _, f := range rows[i].Figures {
			cells = append(cells, f.Cell())
		}
		lines = append(lines, cells)
	}
	widths := make([]int, len(lines[0]))
	for _, cells := range lines {
		for i, c := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for _, cells := range lines {
		var line strings.Builder
		for i, c := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if i > 0 {
				line.WriteString("  ")
			}
			if i < labels {
				line.WriteString(c + pad)
			} else {
				line.WriteString(pad + c)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// write writes the histogram with a bar for every octave.
func (h *Histogram) write(b *strings.Builder, title string) {
	var octaves [65]uint64
	most := uint64(1)
	for _, k := range h.Buckets {
		o := octave(k.From)
		octaves[o] += k.Count
		most = max(most, octaves[o])
	}
	fmt.Fprintf(b, "%s, %s:\n", title, h.Unit)
	for o, n := range octaves {
		if n == 0 {
			continue
		}
		from, to := uint64(0), uint64(0)
		if o > 0 {
			from, to = 1<<(o-1), 1<<(o-1)*2-1
		}
		const width = 40
		fmt.Fprintf(b, "%12d - %-12d %8d  %s\n", from, to, n, strings.Repeat("#", int((n*width+most-1)/most)))
	}
}

// octave returns the number of bits of v.
func octave(v uint64) (bits int) {
	for ; v > 0; v >>= 1 {
		bits++
	}
	return bits
}
