package ovs

import (
	"math"
	"strconv"
	"strings"
)

// PerfReport is what pmd-perf-show prints: a block for every PMD thread.
type PerfReport struct {
	Blocks []PerfBlock
	Unread []Line // lines that could not be read; String doesn't write them
}

// PerfBlock is what pmd-perf-show prints about one thread. What the text doesn't have
// is empty.
type PerfBlock struct {
	Time     string // time of day in UTC, as "14:46:09.304"
	Duration string // seconds since the last clear, as "6.402"
	Thread   Thread
	Rows     []Row // the counters

	Histograms []Histogram // in the order of their columns
	Averages   []Average   // the line below the histograms, over completed milliseconds

	Iterations   *Table // iteration history, newest first
	Milliseconds *Table // millisecond history, newest first
}

// Row is a counter with the figures that were derived from it:
// "  - Used TSC cycles:   11564883724  ( 78.5 % of total cycles)".
type Row struct {
	Label   string // "Used TSC cycles"
	Detail  bool   // a dash stands before the label: the row details the one above it
	Value   uint64
	Figures []Figure // what stands in the parentheses
}

// Figure is a derived figure of a [Row]: "78.5" and "% of total cycles".
type Figure struct {
	Number string // as printed; may be "-nan"
	Unit   string
}

// Float returns the figure's number; "-nan" gives NaN, and so does what is no number.
func (f Figure) Float() float64 {
	v, err := strconv.ParseFloat(strings.TrimPrefix(f.Number, "-"), 64)
	switch {
	case err != nil && v == 0:
		return math.NaN()
	case strings.HasPrefix(f.Number, "-"):
		return -v
	}
	return v
}

// Histogram is one of the histograms, two columns in print.
type Histogram struct {
	Title string
	Walls []uint64 // inclusive upper bounds, rising
	// Counts has a number for each wall and, last, the number of samples beyond all
	// walls. In a text that was cut it may lack that last one.
	Counts []uint64
}

// Average is one figure of the line below the histograms.
type Average struct {
	Title  string // "cycles/it"
	Number string // as printed: "89587", "32.00000"
}

// Value returns the value of the row with that label, as OVS 3.1 labels it, whatever
// version printed the text. It is 0 for a row that was left out because no packet was
// received or sent; ok is false for one that the version doesn't have.
func (b *PerfBlock) Value(label string) (v uint64, ok bool) {
	if r := b.find(label); r != nil {
		return r.Value, true
	}
	return 0, b.leftOut(label)
}

// Figure returns the figure of that unit, for example "cycles/pkt", in the row
// with that label, see Value; ok is false if there is none. The units of OVS 2.10 differ
// for cycles and iterations: "GHz" and "% cycles".
func (b *PerfBlock) Figure(label, unit string) (f Figure, ok bool) {
	if r := b.find(label); r != nil {
		for _, f := range r.Figures {
			if f.Unit == unit {
				return f, true
			}
		}
	}
	return Figure{}, false
}

// Histogram returns the histogram with that title, for example "cycles/it", or nil.
func (b *PerfBlock) Histogram(title string) *Histogram {
	for i := range b.Histograms {
		if b.Histograms[i].Title == title {
			return &b.Histograms[i]
		}
	}
	return nil
}

func (b *PerfBlock) row(label string) *Row {
	for i := range b.Rows {
		if b.Rows[i].Label == label {
			return &b.Rows[i]
		}
	}
	return nil
}
