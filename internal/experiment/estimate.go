package experiment

import (
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
)

// confidence is that of every interval.
const confidence = 0.95

// median returns the median of the values and the interval between those two of them
// that have it between them with 95 % confidence, whatever the distribution. No
// value gives NaN, fewer than six give no interval.
func median(values []float64) Estimate {
	if len(values) == 0 {
		return Estimate{Value: math.NaN()}
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds), confidence)
	e := Estimate{Value: s.Center, N: len(values)}
	if !math.IsInf(s.Lo, 0) && !math.IsInf(s.Hi, 0) {
		e.Interval = &[2]float64{s.Lo, s.Hi}
	}
	return e
}

// change returns how much more in percent than its partner in base a value of with
// is. Values with the same index were measured one right after the other.
func change(base, with []float64) Estimate {
	return pairs(base, with, func(a, b float64) float64 { return 100 * (b/a - 1) })
}

// difference does the same for the plain difference.
func difference(base, with []float64) Estimate {
	return pairs(base, with, func(a, b float64) float64 { return b - a })
}

func pairs(base, with []float64, f func(a, b float64) float64) Estimate {
	n := min(len(base), len(with))
	d := make([]float64, n)
	for i := range d {
		d[i] = f(base[i], with[i])
	}
	return median(d)
}

// plus returns a plus scale times b, which was measured independently of a: the
// squares of what the intervals have at each side add up.
func plus(a, b Estimate, scale float64) Estimate {
	sum := Estimate{Value: a.Value + scale*b.Value, N: a.N}
	if a.Interval != nil && b.Interval != nil {
		below, above := scale*(b.Value-b.Interval[0]), scale*(b.Interval[1]-b.Value)
		if scale < 0 {
			below, above = -above, -below
		}
		sum.Interval = &[2]float64{
			sum.Value - math.Hypot(a.Value-a.Interval[0], below),
			sum.Value + math.Hypot(a.Interval[1]-a.Value, above),
		}
	}
	return sum
}

// moreRounds returns how many more rounds it takes until the interval is only that
// wide, going by the law that it narrows with the root of their number. Where there
// is no interval it is a first few.
func moreRounds(e Estimate, rounds int, width float64) int {
	if e.Interval == nil {
		return max(rounds, 10)
	}
	if e.Width() <= width {
		return 0
	}
	need := float64(rounds) * math.Pow(e.Width()/width, 2)
	return int(math.Min(math.Ceil(need)-float64(rounds), 1e9))
}

// parts returns the medians of n consecutive parts of the values.
func parts(values []float64, n int) []float64 {
	n = min(n, len(values))
	var medians []float64
	for i := range n {
		medians = append(medians, middle(values[i*len(values)/n:(i+1)*len(values)/n]))
	}
	return medians
}

// middle returns the median of values, of which there is at least one.
func middle(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// figure returns a figure of the values' median.
func figure(name, unit string, values []float64) Figure {
	return Figure{Name: name, Unit: unit, Estimate: median(values), Parts: parts(values, partsShown)}
}

// partsShown is how many parts of the time a report shows, as many as benchstat wants.
const partsShown = 10

// exact returns a figure that was not estimated.
func exact(name, unit string, value float64) Figure {
	return Figure{Name: name, Unit: unit, Estimate: Estimate{Value: value}}
}
