package tsc

import (
	"math"
	"testing"
	"time"
)

func TestNowAdvances(t *testing.T) {
	a := Now()
	time.Sleep(time.Millisecond)
	if b := Now(); b <= a {
		t.Fatalf("clock did not advance: %d then %d", a, b)
	}
}

// The frequency agrees with a measurement of our own, so that it is neither the
// 1 Hz of a clock that was never calibrated nor off by a factor.
func TestFrequency(t *testing.T) {
	c := System()
	if c.Hz() < 1e6 {
		t.Fatalf("frequency %v Hz is absurd", c.Hz())
	}
	a := Take()
	time.Sleep(50 * time.Millisecond)
	b := Take()
	got := c.Duration(b.Ticks - a.Ticks)
	want := b.Wall.Sub(a.Wall)
	if diff := math.Abs(float64(got-want)) / float64(want); diff > 1e-3 {
		t.Errorf("ticks say %v, the monotonic clock %v (off by %.2g)", got, want, diff)
	}
	if off := math.Abs(c.Measure()/c.Hz() - 1); off > 1e-3 {
		t.Errorf("frequency %v, measured %v", c.Hz(), c.Measure())
	}
	if System() != c {
		t.Error("the clock is not the same at the second use")
	}
}

func TestDuration(t *testing.T) {
	for _, tt := range []struct {
		ticks uint64
		hz    float64
		want  time.Duration
	}{
		{0, 2.3e9, 0},
		{2_300_000_000, 2.3e9, time.Second},
		{2_300, 2.3e9, time.Microsecond},
		{25_000_000, 25e6, time.Second},
		{1 << 62, 2.5e9, 1844674407370955161},
		{math.MaxUint64, 1e3, math.MaxInt64},
		{1, 0, math.MaxInt64},
	} {
		if got := Duration(tt.ticks, tt.hz); got != tt.want {
			t.Errorf("Duration(%d, %v) = %d, want %d", tt.ticks, tt.hz, got, tt.want)
		}
	}
}

func TestAnchorTime(t *testing.T) {
	wall := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := Anchor{Ticks: 10_000, Wall: wall}
	if got := a.Time(12_000, 1e6); !got.Equal(wall.Add(2 * time.Millisecond)) {
		t.Errorf("later tick: %v", got)
	}
	if got := a.Time(8_000, 1e6); !got.Equal(wall.Add(-2 * time.Millisecond)) {
		t.Errorf("earlier tick: %v", got)
	}
}

func BenchmarkNow(b *testing.B) {
	var sink uint64
	for b.Loop() {
		sink += Now()
	}
	_ = sink
}

func BenchmarkTimeNow(b *testing.B) {
	for b.Loop() {
		_ = time.Now()
	}
}
