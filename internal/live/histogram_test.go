package live

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pmdperf/pmdperf/export/ovs"
)

func TestPercentile(t *testing.T) {
	walls := []uint64{0, 1, 10, 20}
	h := func(counts ...uint64) Histogram { return histogram(walls, counts) }
	with := func(h Histogram, most uint64, reached bool) Histogram {
		h.most, h.reached = most, reached
		return h
	}
	for _, test := range []struct {
		name    string
		h       Histogram
		percent float64 // 100 is the maximum
		value   float64
		bound   Bound
	}{
		{"one bin", h(0, 0, 10, 0, 0), 50, 1 + 4.5, About},
		{"its end", h(0, 0, 10, 0, 0), 99.999, 1 + 9*0.99999, About},
		{"of one value", h(0, 10, 0, 0, 0), 50, 1, Exact},
		{"zero", h(10, 0, 0, 0, 0), 50, 0, Exact},
		{"second bin", h(5, 0, 0, 5, 0), 75, 10 + 5, About},
		{"first of two", h(5, 0, 0, 5, 0), 50, 0, Exact},
		{"beyond all walls", h(1, 0, 0, 0, 99), 50, 20, MoreThan},
		{"beyond, but bounded", with(h(0, 0, 0, 0, 10), 40, false), 50, 20 + 10, About},
		{"bounded bin", with(h(0, 0, 10, 0, 0), 5, false), 50, 1 + 2, About},
		{"max of a bin", h(1, 0, 1, 0, 0), 100, 10, AtMost},
		{"max of a bin of one", h(1, 1, 0, 0, 0), 100, 1, Exact},
		{"max beyond", h(1, 0, 0, 0, 1), 100, 20, MoreThan},
		{"max beyond, bounded", with(h(1, 0, 0, 0, 1), 33, false), 100, 33, AtMost},
		{"max bounded", with(h(1, 0, 1, 0, 0), 7, false), 100, 7, AtMost},
		{"max known", with(h(1, 0, 1, 0, 0), 7, true), 100, 7, Exact},
		{"max below the bound", with(h(1, 0, 1, 0, 0), 15, false), 100, 10, AtMost},
		{"text cut before the last bin", h(0, 0, 10, 0), 100, 10, AtMost},
		{"empty", h(0, 0, 0, 0, 0), 50, math.NaN(), Exact},
		{"empty, max", h(0, 0, 0, 0, 0), 100, math.NaN(), Exact},
		{"not known", Histogram{}, 50, math.NaN(), Exact},
		{"exact", Histogram{exact: []ovs.Percentile{{Percent: 50, Value: 3}}}, 50, 3, Exact},
	} {
		got := test.h.Percentile(test.percent)
		if test.percent == 100 {
			got = test.h.Max()
		}
		same := math.Abs(got.Value-test.value) < 1e-9 || math.IsNaN(got.Value) && math.IsNaN(test.value)
		if !same || got.Bound != test.bound {
			t.Errorf("%s: %v%v, want %v%v", test.name, got.Bound, got.Value, test.bound, test.value)
		}
	}
}

// TestPercentileTruth compares with the values that the bins were filled from: the
// estimate lies in the bin of the true percentile, and percentiles rise.
func TestPercentileTruth(t *testing.T) {
	walls := []uint64{0, 1, 2, 5, 10, 100, 1000}
	bin := func(v uint64) int {
		i, _ := slices.BinarySearch(walls, v)
		return i
	}
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Uint64Range(0, 2000), 1, 200).Draw(t, "values")
		counts := make([]uint64, len(walls)+1)
		for _, v := range values {
			counts[bin(v)]++
		}
		h := histogram(walls, counts)
		h.most = slices.Max(values)
		slices.Sort(values)
		last := -1.0
		for _, p := range []float64{1, 50, 90, 99, 99.9} {
			e := h.Percentile(p)
			truth := values[max(int(math.Ceil(p/100*float64(len(values))))-1, 0)]
			lo, hi := h.bounds(bin(truth))
			if e.Value < float64(lo)-1 || e.Value > float64(hi) {
				t.Fatalf("p%v is %v, the truth %d lies in %d..%d", p, e, truth, lo, hi)
			}
			if e.Value < last {
				t.Fatalf("p%v is %v, a lower one %v", p, e.Value, last)
			}
			last = e.Value
		}
		if m := h.Max(); m.Value < float64(h.most) || m.Value < last {
			t.Fatalf("max is %v, the truth %d", m, h.most)
		}
	})
}

func TestHistogramSub(t *testing.T) {
	walls := []uint64{1, 10}
	old, now := histogram(walls, []uint64{1, 2, 3}), histogram(walls, []uint64{1, 5, 3})
	old.most, old.reached, now.most, now.reached = 20, true, 20, true
	now.exact = []ovs.Percentile{{Percent: 50, Value: 3}}
	d, ok := now.sub(&old)
	if !ok || !slices.Equal(d.Counts, []uint64{0, 3, 0}) || d.exact != nil {
		t.Errorf("difference is %+v, %v", d, ok)
	}
	if m := d.Max(); m != (Estimate{10, AtMost}) {
		t.Errorf("max of the difference is %+v, want at most 10: 20 may be an old one", m)
	}
	now.most = 30
	now.Counts[2]++
	if d, _ := now.sub(&old); d.Max() != (Estimate{30, Exact}) {
		t.Errorf("max of the difference is %+v, want 30, which is new", d.Max())
	}
	if _, ok := old.sub(&now); ok {
		t.Error("a bin that went back is not noticed")
	}
	other := histogram([]uint64{1, 11}, []uint64{1, 2, 3})
	if _, ok := other.sub(&old); ok {
		t.Error("other walls are not noticed")
	}
	if d, ok := now.sub(&Histogram{}); !ok || d.Total() != now.Total() {
		t.Error("a histogram that is new is not whole")
	}
}
