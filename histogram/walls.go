package histogram

import "math"

// NumBins is the number of bins of Open vSwitch's histograms, the last of which
// counts what is above all walls.
const NumBins = 32

// Walls are the inclusive upper bounds of the first 31 bins, strictly rising.
type Walls [NumBins - 1]uint64

// Bins are the counts in Open vSwitch's 32 bins, not cumulative.
type Bins [NumBins]uint64

// Total returns the number of values counted.
func (b *Bins) Total() uint64 {
	var n uint64
	for _, c := range b {
		n += c
	}
	return n
}

// LogWalls returns walls that rise by a constant factor from lo to hi, truncated
// to integers and kept strictly rising; a lo of 0 gets a wall of its own before
// the scale begins at 1. hi is always the last wall.
func LogWalls(lo, hi uint64) Walls {
	var w Walls
	first := 0
	if lo == 0 {
		first, lo = 1, 1
	}
	from := math.Log(float64(lo))
	width := math.Log(float64(hi)) - from
	steps := float64(len(w) - 1 - first)
	w.fill(first, func(i int) float64 { return math.Exp(from + float64(i)*width/steps) })
	w[len(w)-1] = hi
	return w
}

// LinearWalls returns walls at equal distances from lo to hi, truncated to
// integers and kept strictly rising, with hi as the last.
func LinearWalls(lo, hi uint64) Walls {
	var w Walls
	step := float64(hi-lo) / float64(len(w)-1)
	w.fill(0, func(i int) float64 { return float64(lo) + float64(i)*step })
	w[len(w)-1] = hi
	return w
}

// fill sets the walls from first on to at(0), at(1) ... truncated, each at least
// one above the wall before it.
func (w *Walls) fill(first int, at func(int) float64) {
	next := uint64(first)
	for i := first; i < len(w); i++ {
		next = max(next, uint64(at(i-first)))
		w[i] = next
		next++
	}
}

// Bin returns the bin of v by binary search. It is for readers; a recorder's
// owner uses a Binner.
func (w *Walls) Bin(v uint64) int {
	lo, hi := 0, len(w)
	for lo < hi {
		if mid := (lo + hi) / 2; w[mid] < v {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// A Metric is one of the seven quantities that Open vSwitch keeps histograms of.
type Metric int

// The metrics in the order in which pmd-perf-show prints them.
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

// The ranges and scales are Open vSwitch's.
var metricWalls = [NumMetrics]Walls{
	CyclesPerIteration:  LogWalls(500, 24_000_000),
	PacketsPerIteration: LogWalls(0, 1000),
	CyclesPerPacket:     LinearWalls(100, 30_000),
	PacketsPerBatch:     LinearWalls(0, 32),
	QueueFill:           LogWalls(0, 512),
	UpcallsPerIteration: LinearWalls(0, 30),
	CyclesPerUpcall:     LogWalls(1000, 1_000_000),
}

// Walls returns the metric's walls in Open vSwitch.
func (m Metric) Walls() Walls { return metricWalls[m] }

// String returns the metric's title in pmd-perf-show.
func (m Metric) String() string {
	return [NumMetrics]string{"cycles/it", "packets/it", "cycles/pkt", "pkts/batch",
		"max vhost qlen", "upcalls/it", "cycles/upcall"}[m]
}
