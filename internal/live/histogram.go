package live

import (
	"math"
	"slices"

	"github.com/pmdperf/pmdperf/export/ovs"
)

// Metric is one of the quantities that there are histograms of.
type Metric int

// The metrics in Open vSwitch's order.
const (
	CyclesPerIteration Metric = iota
	PacketsPerIteration
	CyclesPerPacket
	PacketsPerBatch
	QueueFill
	UpcallsPerIteration
	CyclesPerUpcall
	NumMetrics
)

// metrics are their names in JSON and in text.
var metrics = [NumMetrics]struct{ key, title string }{
	{"cycles_per_iteration", "cycles/it"},
	{"packets_per_iteration", "packets/it"},
	{"cycles_per_packet", "cycles/pkt"},
	{"packets_per_batch", "pkts/batch"},
	{"queue_fill_per_iteration", "max vhost qlen"},
	{"upcalls_per_iteration", "upcalls/it"},
	{"cycles_per_upcall", "cycles/upcall"},
}

// Title says in a few words what a metric is.
func (m Metric) Title() string {
	return [NumMetrics]string{"time of an iteration", "packets of an iteration", "time of a packet",
		"packets of a batch", "queue fill", "upcalls of an iteration", "time of an upcall"}[m]
}

// InCycles reports whether the metric's values are lengths, in cycles.
func (m Metric) InCycles() bool {
	return m == CyclesPerIteration || m == CyclesPerPacket || m == CyclesPerUpcall
}

// Histogram counts values in bins. The zero value is one that is not known.
type Histogram struct {
	Walls  []uint64 // inclusive upper bounds, rising
	Counts []uint64 // one for each wall, and last the number of values beyond all of them

	most    uint64 // no value is larger; 0 if that is not known
	reached bool   // there is a value of most
	exact   []ovs.Percentile
}

// Bound says how exact an [Estimate] is.
type Bound int

const (
	Exact    Bound = iota
	About          // interpolated inside a bin
	AtMost         // not larger
	MoreThan       // beyond all walls
)

// String returns the sign to be written before the number.
func (b Bound) String() string { return [...]string{"", "~", "≤", ">"}[b] }

// Estimate is a value of a histogram, NaN if there is none.
type Estimate struct {
	Value float64
	Bound Bound
}

func histogram(walls, counts []uint64) Histogram {
	if len(walls) == 0 || len(counts) < len(walls) || len(counts) > len(walls)+1 {
		return Histogram{}
	}
	h := Histogram{Walls: walls, Counts: make([]uint64, len(walls)+1)}
	copy(h.Counts, counts) // a text that was cut may lack the last one
	return h
}

// Known reports whether there is a histogram at all, if an empty one.
func (h *Histogram) Known() bool { return h.Walls != nil }

// Total returns the number of values.
func (h *Histogram) Total() uint64 {
	var n uint64
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// sub returns the histogram of the values that came since old; ok is false if a bin
// holds less than old's.
func (h *Histogram) sub(old *Histogram) (d Histogram, ok bool) {
	if !h.Known() || !old.Known() {
		return *h, true
	}
	if !slices.Equal(h.Walls, old.Walls) {
		return Histogram{}, false
	}
	d = Histogram{Walls: h.Walls, Counts: make([]uint64, len(h.Counts)), most: h.most}
	for i, n := range h.Counts {
		if n < old.Counts[i] {
			return Histogram{}, false
		}
		d.Counts[i] = n - old.Counts[i]
	}
	d.reached = h.reached && h.most > old.most
	return d, true
}

// bounds returns the smallest and the largest value that bin i can hold; hi is 0 if
// it has no end.
func (h *Histogram) bounds(i int) (lo, hi uint64) {
	if i > 0 {
		lo = h.Walls[i-1] + 1
	}
	if i < len(h.Walls) {
		hi = h.Walls[i]
	}
	if h.most > 0 && (hi == 0 && i > 0 || h.most < hi) {
		hi = max(lo, h.most)
	}
	return lo, hi
}

// Percentile returns the value that so many percent of all values don't exceed. It
// is interpolated inside its bin where the target didn't tell it.
func (h *Histogram) Percentile(percent float64) Estimate {
	for _, p := range h.exact {
		if p.Percent == percent {
			return Estimate{float64(p.Value), Exact}
		}
	}
	total := h.Total()
	if total == 0 {
		return Estimate{Value: math.NaN()}
	}
	rank := max(1, percent/100*float64(total))
	var below float64
	for i, n := range h.Counts {
		if n == 0 || below+float64(n) < rank {
			below += float64(n)
			continue
		}
		lo, hi := h.bounds(i)
		switch {
		case i == len(h.Walls) && hi == 0:
			return Estimate{float64(h.Walls[i-1]), MoreThan}
		case lo == hi:
			return Estimate{float64(hi), Exact}
		}
		// The n values are taken to lie at equal distances, the last at the bin's end.
		from := float64(lo) - 1
		return Estimate{max(from+(float64(hi)-from)*(rank-below)/float64(n), 0), About}
	}
	return h.Max()
}

// Max returns the largest value.
func (h *Histogram) Max() Estimate {
	if h.reached {
		return Estimate{float64(h.most), Exact}
	}
	for i := len(h.Counts) - 1; i >= 0; i-- {
		if h.Counts[i] == 0 {
			continue
		}
		lo, hi := h.bounds(i)
		switch {
		case i == len(h.Walls) && hi == 0:
			return Estimate{float64(h.Walls[i-1]), MoreThan}
		case lo == hi:
			return Estimate{float64(hi), Exact}
		}
		return Estimate{float64(hi), AtMost}
	}
	return Estimate{Value: math.NaN()}
}
