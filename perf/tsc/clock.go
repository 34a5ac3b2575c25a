package tsc

import (
	"math"
	"math/bits"
	"sync"
	"time"
)

// Anchor is one instant on both clocks.
type Anchor struct {
	Ticks uint64
	Wall  time.Time // with its monotonic reading, unless it was decoded from text
}

// Take reads both clocks as one. It brackets the system clock with two tick
// reads several times and keeps the tightest bracket, so that a preemption
// between the reads does not count. Any goroutine may call it; it takes about
// a microsecond.
func Take() Anchor {
	var best Anchor
	width := uint64(math.MaxUint64)
	for range 5 {
		before := Now()
		wall := time.Now()
		after := Now()
		if w := after - before; w < width {
			width = w
			best = Anchor{Ticks: before + w/2, Wall: wall}
		}
	}
	return best
}

// Clock knows the frequency of the ticks. Its methods may be called by any
// goroutine.
type Clock struct {
	source Source
	hz     float64
	exact  bool
	origin Anchor
}

// origin is the far end of every calibration: the earlier it was taken, the
// better the frequency. The calls of source and monotonic make Go initialize what the
// assembler of Now uses before this.
var origin = func() Anchor { source(); monotonic(); return Take() }()

// System returns the clock of this process. The first call fixes the frequency
// for the life of the process, since counters of seconds derived from ticks must
// never step back: it is what processor or hypervisor state, and else measured
// against the monotonic clock over at least 20 ms since the start of the process,
// for which the first call waits if need be. Two brackets of 50 ns in 20 ms are an
// error of 5 ppm.
var System = sync.OnceValue(func() *Clock {
	c := &Clock{source: source(), hz: exposedHz(), exact: true, origin: origin}
	if c.hz <= 1 {
		c.exact = false
		const window = 20 * time.Millisecond
		if rest := window - time.Since(origin.Wall); rest > 0 {
			time.Sleep(rest)
		}
		c.hz = math.Round(c.Measure())
	}
	return c
})

// Source returns where the ticks come from.
func (c *Clock) Source() Source { return c.source }

// Hz returns ticks per second. It never changes and is never 1.
func (c *Clock) Hz() float64 { return c.hz }

// Exact reports whether Hz was stated by processor, firmware or hypervisor, and
// not measured.
func (c *Clock) Exact() bool { return c.exact }

// Measure returns ticks per second as measured from the start of the process to
// now against the monotonic clock. It gets better the longer the process runs,
// and shows how far off a stated or early frequency is.
func (c *Clock) Measure() float64 {
	now := Take()
	return float64(now.Ticks-c.origin.Ticks) / now.Wall.Sub(c.origin.Wall).Seconds()
}

// Ticks returns the number of ticks in d, at least 1 for any positive d.
func (c *Clock) Ticks(d time.Duration) uint64 {
	if d <= 0 {
		return 0
	}
	return max(1, uint64(d.Seconds()*c.hz))
}

// Duration returns the length of ticks, and the longest duration there is where
// it does not fit.
func (c *Clock) Duration(ticks uint64) time.Duration { return Duration(ticks, c.hz) }

// Duration returns the length of ticks at hz ticks a second, exact to the
// nanosecond as long as hz is a whole number, and the longest duration there is
// where it does not fit or hz is not positive.
func Duration(ticks uint64, hz float64) time.Duration {
	if !(hz >= 1) { // also not a number
		return math.MaxInt64
	}
	// ticks * 1e9 / hz in 128 bits: a float64 has too few digits for years of ticks.
	hi, lo := bits.Mul64(ticks, 1e9)
	whole := uint64(hz)
	if hi >= whole {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, whole)
	return time.Duration(min(q, math.MaxInt64))
}

// Time returns the wall-clock time of a tick before or after the anchor, at hz
// ticks a second.
func (a Anchor) Time(ticks uint64, hz float64) time.Time {
	if ticks >= a.Ticks {
		return a.Wall.Add(Duration(ticks-a.Ticks, hz))
	}
	return a.Wall.Add(-Duration(a.Ticks-ticks, hz))
}
