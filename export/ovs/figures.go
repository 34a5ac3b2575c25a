package ovs

import (
	"math"
	"time"

	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/perf"
)

// figures derives from a snapshot what text and JSON print besides the raw numbers.
// A figure that has no meaning, since it would be a division by zero or would need a
// frequency that isn't known, is NaN.
type figures struct {
	s       *perf.Snapshot
	seconds float64 // length of the measurement
	// usPerCycle is NaN if the frequency isn't known. Multiplying by it rather than
	// dividing by the frequency is what the original does, to the last digit.
	usPerCycle float64
}

// exactFigures takes the measurement's length as it is.
func exactFigures(s *perf.Snapshot) figures {
	f := figures{s: s, seconds: math.NaN(), usPerCycle: math.NaN()}
	if hz, ok := frequency(s); ok {
		f.seconds = float64(s.Now-s.Since) / hz
		f.usPerCycle = 1e6 / hz
	}
	return f
}

// printedFigures takes the measurement's length in whole milliseconds, as the
// original does, so that the printed figures follow from the printed numbers.
func printedFigures(s *perf.Snapshot) figures {
	f := exactFigures(s)
	f.seconds = math.Round(f.seconds*1000) / 1000
	return f
}

// frequency returns ticks per second. Below 1 kHz it is no counter's: the original
// calculates with 1 Hz where it doesn't know.
func frequency(s *perf.Snapshot) (hz float64, ok bool) {
	if s.Hz >= 1000 && !math.IsInf(s.Hz, 0) { // false for NaN, too
		return s.Hz, true
	}
	return 0, false
}

// wallClock returns the time of a tick in UTC; ok is false if it isn't known.
func wallClock(s *perf.Snapshot, tick uint64) (t time.Time, ok bool) {
	if _, ok := frequency(s); !ok || s.Anchor.Wall.IsZero() {
		return t, false
	}
	return s.Time(tick).UTC(), true
}

// ratio returns a/b, NaN if b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}

// percent returns a in percent of b.
func percent(a, b uint64) float64 { return ratio(100*float64(a), float64(b)) }

func (f *figures) usPerIteration() float64 {
	t := &f.s.Totals
	return ratio(float64(t.Cycles+t.Sleep)*f.usPerCycle, float64(t.Iterations))
}

// usedPercent is the share of all cycles of the measurement that passes took.
func (f *figures) usedPercent() float64 {
	hz, ok := frequency(f.s)
	if !ok {
		return math.NaN()
	}
	return 100 * ratio(float64(f.s.Totals.Cycles), f.seconds) / hz
}

func (f *figures) busyPercent() float64 { return percent(f.s.Totals.BusyCycles, f.s.Totals.Cycles) }
func (f *figures) idlePercent() float64 { return percent(f.s.Totals.IdleCycles(), f.s.Totals.Cycles) }

func (f *figures) sleepPercent() float64 {
	return percent(f.s.Totals.SleepIterations, f.s.Totals.Iterations)
}

func (f *figures) sleepMicros() float64 { return float64(f.s.Totals.Sleep) * f.usPerCycle }

// microsPerSleep is the average sleep of the passes that slept.
func (f *figures) microsPerSleep() float64 {
	return ratio(f.sleepMicros(), float64(f.s.Totals.SleepIterations))
}

// perSecond returns the rate of n over the measurement.
func (f *figures) perSecond(n uint64) float64 { return ratio(float64(n), f.seconds) }

// cyclesPerPacket is the cost of a received packet in cycles of busy passes.
func (f *figures) cyclesPerPacket() float64 {
	return ratio(float64(f.s.Totals.BusyCycles), float64(f.s.Totals.RxPackets))
}

func (f *figures) passesPerPacket() float64 {
	return ratio(float64(f.s.DatapathPasses()), float64(f.s.Totals.RxPackets))
}

// passesPercent is the share of datapath passes that had a counted outcome.
func (f *figures) passesPercent(n uint64) float64 { return percent(n, f.s.DatapathPasses()) }

func (f *figures) lookupsPerHit() float64 {
	return ratio(float64(f.s.Counts[perf.SubtableLooks]), float64(f.s.Counts[perf.MegaflowHit]))
}

// cyclesPerUpcall is the average of the upcalls that were timed. The original divides
// by all successful ones instead: also by those before the measuring was switched on,
// and never by those whose flow could not be installed.
func (f *figures) cyclesPerUpcall() float64 { return mean(&f.s.CyclesPerUpcall) }

func (f *figures) packetsPerTxBatch() float64 {
	return ratio(float64(f.s.Totals.TxPackets), float64(f.s.Counts[perf.TxBatches]))
}

// samples is what all histograms have.
type samples interface {
	Count() uint64
	Sum() uint64
	Max() uint64
	Quantile(q float64) uint64
	Buckets() func(yield func(histogram.Bucket) bool)
}

// mean returns the average of a histogram's values from their exact sum.
func mean(h samples) float64 { return ratio(float64(h.Sum()), float64(h.Count())) }

// ovsHistogram returns the histogram of a metric and its counts in Open vSwitch's
// bins.
func ovsHistogram(s *perf.Snapshot, m histogram.Metric) (samples, histogram.Bins) {
	small := func(h *histogram.Small) (samples, histogram.Bins) { return h, h.Bins(m.Walls()) }
	binned := func(h *histogram.Binned) (samples, histogram.Bins) { return h, h.Bins }
	switch m {
	case histogram.CyclesPerIteration:
		return binned(&s.Cycles)
	case histogram.PacketsPerIteration:
		return small(&s.Packets)
	case histogram.CyclesPerPacket:
		return binned(&s.CyclesPerPacket)
	case histogram.PacketsPerBatch:
		return small(&s.BatchPackets)
	case histogram.QueueFill:
		return small(&s.QueueFill)
	case histogram.UpcallsPerIteration:
		return small(&s.Upcalls)
	default:
		return binned(&s.CyclesPerUpcall)
	}
}
