package experiment

import (
	"math"
	"math/rand/v2"
	"testing"
)

// noisy is a machine as one meets it: its speed wanders, a slice now and then loses
// much of its time to somebody else, and every slice is off by a little.
type noisy struct {
	*rand.Rand
	speed float64
}

func newNoisy(seed uint64) *noisy {
	return &noisy{rand.New(rand.NewPCG(seed, 7)), 10}
}

// slice measures something that is slower by so many percent.
func (m *noisy) slice(change float64) float64 {
	m.speed *= 1 + 0.003*m.NormFloat64()
	v := m.speed * (1 + change/100) * (1 + 0.01*m.NormFloat64())
	if m.Float64() < 0.1 {
		v *= 1 - 0.6*m.Float64()
	}
	return v
}

// rounds measures both ways in n rounds, each in random order.
func (m *noisy) rounds(n int, change float64) (base, with []float64) {
	for range n {
		order := []float64{0, change}
		swap := m.IntN(2)
		first, second := m.slice(order[swap]), m.slice(order[1-swap])
		if swap == 1 {
			first, second = second, first
		}
		base, with = append(base, first), append(with, second)
	}
	return base, with
}

// TestVerdictIsRight: the interval has the true change in it in 95 % of all
// experiments, and where the change is large enough for the rounds, it tells its sign.
func TestVerdictIsRight(t *testing.T) {
	const experiments = 400
	for _, tt := range []struct {
		change float64
		rounds int
		clear  bool
	}{{0, 100, false}, {0, 1000, false}, {-0.3, 1000, false}, {-1, 1000, true}, {-3, 100, true}, {2, 300, true}} {
		right, told := 0, 0
		for i := range experiments {
			base, with := newNoisy(uint64(i)).rounds(tt.rounds, tt.change)
			e := change(base, with)
			if e.Interval[0] <= tt.change && tt.change <= e.Interval[1] {
				right++
			}
			if tt.change < 0 && e.Interval[1] < 0 || tt.change > 0 && e.Interval[0] > 0 {
				told++
			}
		}
		// 400 experiments are themselves a sample: three standard deviations of it.
		const least = experiments*0.95 - 3*4.36
		if float64(right) < least {
			t.Errorf("%+v: the interval was right %d times of %d", tt, right, experiments)
		}
		if tt.clear && float64(told) < experiments*0.95 {
			t.Errorf("%+v: the sign was told %d times of %d", tt, told, experiments)
		}
	}
}

// TestInterleavingMatters: the same machine measured one way first and then the other
// deceives: the test above could fail.
func TestInterleavingMatters(t *testing.T) {
	wrong := 0
	const experiments = 100
	for i := range experiments {
		m := newNoisy(uint64(i))
		var base, with []float64
		for range 300 {
			base = append(base, m.slice(0))
		}
		for range 300 {
			with = append(with, m.slice(0))
		}
		if e := change(base, with); e.Interval[0] > 0 || e.Interval[1] < 0 {
			wrong++
		}
	}
	if wrong < experiments/2 {
		t.Errorf("only %d of %d were wrong: is the machine of these tests a quiet one?", wrong, experiments)
	}
}

// TestPlus: the interval of a sum of independent estimates is right as often.
func TestPlus(t *testing.T) {
	const experiments = 400
	for _, scale := range []float64{1, -2} {
		right := 0
		for i := range experiments {
			a := change(newNoisy(uint64(i)).rounds(200, -1))
			b := change(newNoisy(uint64(i)+experiments).rounds(300, 0.5))
			if e, want := plus(a, b, scale), -1+scale*0.5; e.Interval[0] <= want && want <= e.Interval[1] {
				right++
			}
		}
		if right < experiments*92/100 || right > experiments*99/100 {
			t.Errorf("scale %v: right %d times of %d, want 95 %%", scale, right, experiments)
		}
	}
}

// TestPairs: what is compared with what, exactly.
func TestPairs(t *testing.T) {
	if e := change([]float64{10, 20, 40}, []float64{11, 26, 20}); math.Abs(e.Value-10) > 1e-9 || e.N != 3 {
		t.Errorf("change %+v, want 10 %%", e)
	}
	if e := difference([]float64{10, 20, 40}, []float64{11, 26, 20}); e.Value != 1 {
		t.Errorf("difference %+v, want 1", e)
	}
	a := Estimate{Value: 10, Interval: &[2]float64{9, 12}, N: 7}
	b := Estimate{Value: 1, Interval: &[2]float64{1, 3}, N: 5}
	if e := plus(a, b, 1); e.Value != 11 || e.N != 7 || *e.Interval != [2]float64{10, 11 + math.Hypot(2, 2)} {
		t.Errorf("a + b = %+v %v", e, e.Interval)
	}
	if e := plus(a, b, -1); e.Value != 9 || *e.Interval != [2]float64{9 - math.Hypot(1, 2), 11} {
		t.Errorf("a - b = %+v %v", e, e.Interval)
	}
	if e := plus(a, Estimate{Value: 1}, 1); e.Value != 11 || e.Interval != nil {
		t.Errorf("with an interval that is not known: %+v", e)
	}
}

// TestMoreRounds: as many more as it says are enough, and not many too many.
func TestMoreRounds(t *testing.T) {
	const width = 0.3
	enough, wanted := 0, 0.0
	const experiments = 100
	for i := range experiments {
		m := newNoisy(uint64(i))
		base, with := m.rounds(200, 0)
		more := moreRounds(change(base, with), 200, width)
		if more <= 0 {
			t.Fatalf("experiment %d: %d more rounds", i, more)
		}
		base2, with2 := m.rounds(more, 0)
		w := change(append(base, base2...), append(with, with2...)).Width()
		if w <= width*1.2 {
			enough++
		}
		wanted += w / experiments
	}
	if enough < experiments*8/10 || wanted < width*0.8 {
		t.Errorf("enough in %d of %d experiments, %.2f points wide on average, want %.2f", enough, experiments, wanted, width)
	}
	if n := moreRounds(Estimate{Interval: &[2]float64{1, 1.2}}, 10, width); n != 0 {
		t.Errorf("narrow enough, but %d more rounds", n)
	}
	if n := moreRounds(Estimate{}, 0, width); n <= 0 {
		t.Errorf("no interval yet, but %d more rounds", n)
	}
}

func TestMedianOfFew(t *testing.T) {
	if e := median(nil); !math.IsNaN(e.Value) || e.Interval != nil || e.N != 0 {
		t.Errorf("of none: %+v", e)
	}
	in := []float64{3, 1, 2}
	if e := median(in); e.Value != 2 || e.Interval != nil || e.N != 3 || in[0] != 3 {
		t.Errorf("of three: %+v", e)
	}
	if e := median([]float64{1, 2, 3, 4, 5, 6}); e.Value != 3.5 || e.Interval == nil || *e.Interval != [2]float64{1, 6} {
		t.Errorf("of six: %+v", e)
	}
	// One outlier of nine moves the median of the others not at all.
	if e := median([]float64{1, 2, 3, 4, 5, 6, 7, 8, 1e9}); e.Value != 5 {
		t.Errorf("with an outlier: %+v", e)
	}
	if p := parts([]float64{1, 2, 3, 4, 5, 6}, 3); len(p) != 3 || p[0] != 1.5 || p[2] != 5.5 {
		t.Errorf("parts %v", p)
	}
	if p := parts([]float64{1}, 3); len(p) != 1 {
		t.Errorf("parts %v", p)
	}
}
