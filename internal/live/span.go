package live

import (
	"math"

	"github.com/pmdperf/pmdperf/internal/human"
)

// Span is what a PMD did between two looks. Figures that are not known or have no
// meaning are NaN. It is a plain value over samples that don't change.
type Span struct {
	*PMD // the later look

	// Cleared says that the span begins at the last clear instead of at an earlier
	// look: there was none, or Restarted, its counters were ahead.
	Cleared, Restarted bool

	Seconds    float64 // how long it was
	Counts     Counts
	Histograms [NumMetrics]Histogram
}

// Since returns what the PMDs of s did since old, or since their last clear if old is nil.
func (s *Sample) Since(old *Sample) []Span {
	spans := make([]Span, len(s.PMDs))
	for i := range s.PMDs {
		spans[i] = s.since(old, &s.PMDs[i])
	}
	return spans
}

func (s *Sample) since(old *Sample, p *PMD) Span {
	whole := Span{PMD: p, Cleared: true, Seconds: p.Seconds, Counts: p.Counts, Histograms: p.Histograms}
	if old == nil {
		return whole
	}
	for i := range old.PMDs {
		before := &old.PMDs[i]
		if before.Core != p.Core || before.NUMA != p.NUMA {
			continue
		}
		span := Span{PMD: p}
		seconds, ok := p.secondsSince(before, s.Sent.Sub(old.Arrived).Seconds())
		if ok {
			span.Counts, ok = p.Counts.sub(&before.Counts)
		}
		for m := 0; ok && m < len(p.Histograms); m++ {
			span.Histograms[m], ok = p.Histograms[m].sub(&before.Histograms[m])
		}
		if !ok {
			whole.Restarted = true
			return whole
		}
		if span.Seconds = seconds; !(seconds > 0) { // not known, or parked all the time
			span.Seconds = s.Arrived.Sub(old.Arrived).Seconds()
		}
		return span
	}
	return whole
}

// secondsSince returns the time between two looks by the target's clock, NaN if it
// isn't known; ok is false if the counters were cleared in between. At least passed
// seconds went by between the two, by our clock.
func (p *PMD) secondsSince(old *PMD, passed float64) (seconds float64, ok bool) {
	if p.clearTick != old.clearTick {
		return 0, false
	}
	if p.untilTick != 0 {
		return float64(p.untilTick-old.untilTick) / p.Hz, p.untilTick >= old.untilTick
	}
	seconds = p.Seconds - old.Seconds
	if math.IsNaN(seconds) {
		return seconds, true
	}
	// Some of that is forgiven: the target's clock may be set, and prints milliseconds.
	return seconds, seconds >= 0 && seconds >= passed*0.9-0.1
}

// PerSecond returns the rate of a counter.
func (s *Span) PerSecond(c Counter) float64 { return ratio(s.Counts.Get(c), s.Seconds) }

// Per returns how much of one counter came on one of another: cycles on a packet, say.
func (s *Span) Per(a, b Counter) float64 { return ratio(s.Counts.Get(a), s.Counts.Get(b)) }

// sleep returns the cycles slept.
func (s *Span) sleep() float64 {
	if v := s.Counts.Get(SleepCycles); !math.IsNaN(v) {
		return v
	}
	if us := s.Counts.Get(SleepMicros); us != 0 {
		return us / 1e6 * s.sleepHz
	}
	return 0
}

// wall returns all cycles of the span: in passes, asleep and between passes.
func (s *Span) wall() float64 {
	gaps := s.Counts.Get(GapCycles)
	if math.IsNaN(gaps) {
		gaps = 0 // Open vSwitch doesn't count them
	}
	return s.Counts.Get(UsedCycles) + s.sleep() + gaps
}

// BusyPercent returns the share of all cycles that went into passes with packets.
func (s *Span) BusyPercent() float64 { return s.usedPercent(BusyCycles) }

// IdlePercent returns the share of all cycles that went into passes without packets.
func (s *Span) IdlePercent() float64 { return s.usedPercent(IdleCycles) }

// usedPercent splits the share of the used cycles: the text has used cycles and what
// they were used for from two moments.
func (s *Span) usedPercent(c Counter) float64 {
	idle, busy := s.Counts.Get(IdleCycles), s.Counts.Get(BusyCycles)
	return 100 * ratio(s.Counts.Get(c), idle+busy) * ratio(s.Counts.Get(UsedCycles), s.wall())
}

// SleepPercent returns the share of all cycles that were slept.
func (s *Span) SleepPercent() float64 { return 100 * ratio(s.sleep(), s.wall()) }

// GapPercent returns the share of all cycles that lay between passes.
func (s *Span) GapPercent() float64 { return 100 * ratio(s.Counts.Get(GapCycles), s.wall()) }

// CyclesPerPacket returns the cycles of passes with packets that came on a received one.
func (s *Span) CyclesPerPacket() float64 { return s.Per(BusyCycles, BusyPackets) }

// UpcallsPerSecond returns the rate of upcalls, whether their flow was installed or not.
func (s *Span) UpcallsPerSecond() float64 {
	return ratio(s.Counts.Get(Upcalls)+s.Counts.Get(LostUpcalls), s.Seconds)
}

// Stalled reports whether not a single pass was completed between two looks.
func (s *Span) Stalled() bool {
	return !s.Cleared && s.Counts.Get(Iterations) == 0 && (s.State == "" || s.State == "running")
}

// Time turns cycles into seconds, NaN if the frequency isn't known.
func (p *PMD) Time(cycles float64) float64 { return cycles / p.Hz }

// Format writes a value of a metric in at most seven characters, with a sign for how
// exact it is: lengths as times if the frequency is known, else in cycles ("c").
func (p *PMD) Format(m Metric, e Estimate) string {
	switch {
	case math.IsNaN(e.Value):
		return human.Absent
	case !m.InCycles() && e.Value <= 9999:
		return e.Bound.String() + human.Decimals(math.Ceil(e.Value), 0)
	case !m.InCycles():
		return e.Bound.String() + human.Decimals(e.Value/1000, 0) + "k"
	case math.IsNaN(p.Hz):
		return e.Bound.String() + human.Short(math.Ceil(e.Value)) + "c"
	}
	return e.Bound.String() + human.Duration(p.Time(e.Value))
}

// ratio returns a/b, NaN if b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}
