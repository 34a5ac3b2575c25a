package live

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// look returns a sample of one PMD at so many seconds by both clocks.
func look(at float64, clear uint64, counts map[Counter]uint64, bins ...uint64) *Sample {
	when := time.Unix(0, 0).Add(time.Duration(at * float64(time.Second)))
	p := PMD{Core: 1, Hz: 1e9, Seconds: at, clearTick: clear, untilTick: uint64(at * 1e9)}
	for c, v := range counts {
		p.Counts.set(c, v)
	}
	p.Histograms[CyclesPerIteration] = histogram([]uint64{10, 20}, bins)
	return &Sample{Sent: when, Arrived: when, PMDs: []PMD{p}}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Abs(want) && !(math.IsNaN(got) && math.IsNaN(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestRates(t *testing.T) {
	old := look(10, 1, map[Counter]uint64{Iterations: 100, RxPackets: 1000, BusyPackets: 1000, UsedCycles: 6e9, IdleCycles: 5e9, BusyCycles: 1e9, SleepCycles: 3e9, GapCycles: 1e9, Upcalls: 5, LostUpcalls: 1}, 60, 30, 10)
	now := look(12, 1, map[Counter]uint64{Iterations: 300, RxPackets: 5000, BusyPackets: 5000, UsedCycles: 7.5e9, IdleCycles: 5.5e9, BusyCycles: 2e9, SleepCycles: 3.4e9, GapCycles: 1.1e9, Upcalls: 8, LostUpcalls: 2}, 160, 130, 10)
	s := now.Since(old)[0]
	if s.Cleared || s.Restarted || s.Stalled() {
		t.Errorf("span is cleared %v, restarted %v, stalled %v", s.Cleared, s.Restarted, s.Stalled())
	}
	near(t, "length", s.Seconds, 2)
	near(t, "iterations a second", s.PerSecond(Iterations), 100)
	near(t, "packets a second", s.PerSecond(RxPackets), 2000)
	near(t, "busy", s.BusyPercent(), 50)
	near(t, "idle", s.IdlePercent(), 25)
	near(t, "sleep", s.SleepPercent(), 20)
	near(t, "gaps", s.GapPercent(), 5)
	near(t, "cycles a packet", s.CyclesPerPacket(), 250000)
	near(t, "upcalls a second", s.UpcallsPerSecond(), 2)
	near(t, "drops a second, which nobody counted", s.PerSecond(Drops), math.NaN())
	near(t, "median", s.Histograms[CyclesPerIteration].Percentile(50).Value, 10)

	whole := now.Since(nil)[0]
	if !whole.Cleared || whole.Restarted {
		t.Errorf("without an earlier look: cleared %v, restarted %v", whole.Cleared, whole.Restarted)
	}
	near(t, "packets a second since the clear", whole.PerSecond(RxPackets), 5000.0/12)
}

// TestTextShares has the sleep in microseconds and the use of the cycles from another moment.
func TestTextShares(t *testing.T) {
	old := look(0, 0, map[Counter]uint64{UsedCycles: 0, SleepMicros: 0, IdleCycles: 0, BusyCycles: 0})
	now := look(1, 0, map[Counter]uint64{UsedCycles: 4e8, SleepMicros: 600_000, IdleCycles: 3.3e8, BusyCycles: 1.1e8})
	old.PMDs[0].untilTick, now.PMDs[0].untilTick = 0, 0
	now.PMDs[0].sleepHz = 1e9
	s := now.Since(old)[0]
	near(t, "busy", s.BusyPercent(), 10)
	near(t, "idle", s.IdlePercent(), 30)
	near(t, "sleep", s.SleepPercent(), 60)
	near(t, "gaps", s.GapPercent(), math.NaN())
}

func TestReset(t *testing.T) {
	counts := func(n uint64) map[Counter]uint64 { return map[Counter]uint64{Iterations: n} }
	text := func(s *Sample, seconds float64) *Sample {
		s.PMDs[0].untilTick, s.PMDs[0].clearTick, s.PMDs[0].Seconds = 0, 0, seconds
		return s
	}
	for _, test := range []struct {
		name      string
		old, now  *Sample
		restarted bool
		rate      float64
	}{
		{"nothing", look(10, 1, counts(50)), look(11, 1, counts(60)), false, 10},
		{"a clear that the target tells", look(10, 1, counts(50)), look(11, 2, counts(60)), true, 60.0 / 11},
		{"a counter behind", look(10, 1, counts(50)), look(11, 1, counts(40)), true, 40.0 / 11},
		{"a bin behind", look(10, 1, counts(50), 2, 2, 2), look(11, 1, counts(60), 2, 1, 9), true, 60.0 / 11},
		{"a tick behind", look(10, 1, counts(50)), look(9, 1, counts(60)), true, 60.0 / 9},
		{"text: nothing", text(look(100, 0, counts(50)), 10), text(look(101, 0, counts(60)), 11), false, 10},
		{"text: time behind", text(look(100, 0, counts(50)), 10), text(look(101, 0, counts(60)), 0.5), true, 120},
		{"text: less time than has passed", text(look(100, 0, counts(5)), 0.1), text(look(101, 0, counts(60)), 0.6), true, 100},
		{"text: a little less", text(look(100, 0, counts(50)), 10), text(look(101, 0, counts(60)), 10.95), false, 10 / 0.95},
		{"text without times", text(look(100, 0, counts(50)), math.NaN()), text(look(102, 0, counts(60)), math.NaN()), false, 5},
		{"another PMD", look(10, 1, counts(50)), &Sample{PMDs: []PMD{{Core: 2, Seconds: 1, Counts: look(0, 0, counts(7)).PMDs[0].Counts}}}, false, 7},
	} {
		s := test.now.Since(test.old)[0]
		if s.Restarted != test.restarted {
			t.Errorf("%s: restarted is %v, want %v", test.name, s.Restarted, test.restarted)
		}
		near(t, test.name+": rate", s.PerSecond(Iterations), test.rate)
	}
}

// TestNeverNegative: whatever two looks have in them, no figure is below 0.
func TestNeverNegative(t *testing.T) {
	number := rapid.Uint64Range(0, 1000)
	sample := rapid.Custom(func(t *rapid.T) *Sample {
		counts := make(map[Counter]uint64)
		for c := range NumCounters {
			if rapid.Bool().Draw(t, "known") {
				counts[c] = number.Draw(t, "count")
			}
		}
		s := look(rapid.Float64Range(0, 10).Draw(t, "at"), rapid.Uint64Range(0, 1).Draw(t, "clear"), counts, number.Draw(t, "bin"), number.Draw(t, "bin"), number.Draw(t, "bin"))
		if rapid.Bool().Draw(t, "text") {
			s.PMDs[0].untilTick, s.PMDs[0].sleepHz = 0, 1e9
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		old, now := sample.Draw(t, "old"), sample.Draw(t, "now")
		s := now.Since(old)[0]
		figures := []float64{s.Seconds, s.BusyPercent(), s.IdlePercent(), s.SleepPercent(), s.GapPercent(),
			s.CyclesPerPacket(), s.UpcallsPerSecond(), s.Histograms[CyclesPerIteration].Percentile(50).Value}
		for c := range NumCounters {
			figures = append(figures, s.PerSecond(c))
		}
		for i, v := range figures {
			if v < 0 {
				t.Fatalf("figure %d is %v", i, v)
			}
		}
	})
}

func TestStalled(t *testing.T) {
	old, now := look(1, 1, map[Counter]uint64{Iterations: 5}), look(2, 1, map[Counter]uint64{Iterations: 5})
	if s := now.Since(old)[0]; !s.Stalled() {
		t.Error("no iteration in a second is no stall")
	}
	now.PMDs[0].State = "parked"
	if s := now.Since(old)[0]; s.Stalled() {
		t.Error("a parked PMD is stalled")
	}
	if s := now.Since(nil)[0]; s.Stalled() {
		t.Error("a PMD seen for the first time is stalled")
	}
}

func TestFormat(t *testing.T) {
	known, unknown := &PMD{Hz: 2e9}, &PMD{Hz: math.NaN()}
	for _, test := range []struct{ got, want string }{
		{known.Format(CyclesPerIteration, Estimate{2469, About}), "~1.23us"},
		{unknown.Format(CyclesPerIteration, Estimate{2469, AtMost}), "≤2.47kc"},
		{known.Format(QueueFill, Estimate{31.2, About}), "~32"},
		{known.Format(QueueFill, Estimate{1024, AtMost}), "≤1024"},
		{known.Format(QueueFill, Estimate{32768, AtMost}), "≤33k"},
		{known.Format(QueueFill, Estimate{Value: math.NaN()}), "-"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}
