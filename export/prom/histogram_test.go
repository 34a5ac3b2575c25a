package prom

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/pmdperf/pmdperf/histogram"
)

// written returns a histogram as it is written out.
func written(t *testing.T, k kind, h Histogram, thread *Thread) *dto.Histogram {
	t.Helper()
	d := prometheus.NewDesc("h", "Help.", nil, nil)
	var m dto.Metric
	if err := newHistogram(d, k, &h, thread, len(thread.Exemplars) > 0, nil).Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.Histogram
}

// natives returns the counts of the native buckets by their number.
func natives(h *dto.Histogram) map[int]int64 {
	buckets := make(map[int]int64)
	n, count, d := 0, int64(0), 0
	for _, span := range h.PositiveSpan {
		n += int(span.GetOffset())
		for range span.GetLength() {
			count += h.PositiveDelta[d]
			d++
			if count != 0 { // client_golang bridges small holes
				buckets[n] = count
			}
			n++
		}
	}
	return buckets
}

// Native buckets are those that client_golang itself counts the same values in.
func TestNativeAsClient(t *testing.T) {
	theirs := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "h", Help: "Help.", NativeHistogramBucketFactor: 1.1, NativeHistogramZeroThreshold: zeroThreshold,
	})
	var ours histogram.Small
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		v := uint64(math.Exp(rnd.Float64()*6.9)) - 1 // 0 to 991, which are counted one by one
		ours.Add(v)
		theirs.Observe(float64(v))
	}
	var m dto.Metric
	if err := theirs.Write(&m); err != nil {
		t.Fatal(err)
	}
	want := m.Histogram
	got := written(t, counts, Histogram{Fine: fine(&ours), Sum: float64(ours.Sum())}, &Thread{})
	if diff := cmp.Diff(natives(want), natives(got)); diff != "" {
		t.Errorf("buckets (-client_golang +ours):\n%s", diff)
	}
	for _, n := range []struct {
		what      string
		want, got any
	}{
		{"schema", want.GetSchema(), got.GetSchema()},
		{"zeros", want.GetZeroCount(), got.GetZeroCount()},
		{"zero threshold", want.GetZeroThreshold(), got.GetZeroThreshold()},
		{"count", want.GetSampleCount(), got.GetSampleCount()},
		{"sum", want.GetSampleSum(), got.GetSampleSum()},
	} {
		if n.want != n.got {
			t.Errorf("%s: %v, want %v", n.what, n.got, n.want)
		}
	}
	if want.GetZeroCount() == 0 || len(want.PositiveSpan) < 2 {
		t.Error("that was no test: no zeros, or no holes")
	}
}

// Seconds are off by less than 1 %, in classic and native buckets, whatever the
// frequency.
func TestSecondsError(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, hz := range []float64{1e9, 2.3e9, 2.693670e9, 24e6} {
		var h histogram.Fine
		var values []float64
		for range 20_000 {
			ticks := uint64(math.Exp(rnd.Float64() * math.Log(12*hz)))
			h.Add(ticks)
			values = append(values, float64(ticks)/hz)
		}
		slices.Sort(values)
		got := written(t, seconds, Histogram{Fine: fine(&h), Sum: float64(h.Sum())}, &Thread{Hz: hz})
		upTo := func(bound float64) uint64 {
			n, _ := slices.BinarySearch(values, math.Nextafter(bound, math.Inf(1)))
			return uint64(n)
		}
		within := func(what string, bound float64, n uint64) {
			if lo, hi := upTo(bound*0.99), upTo(bound); n < lo || n > hi {
				t.Errorf("%g Hz, %s: %d values up to %g s, want %d to %d", hz, what, n, bound, lo, hi)
			}
		}
		if len(got.Bucket) != len(grid) {
			t.Fatalf("%d classic buckets, want %d", len(got.Bucket), len(grid))
		}
		for i, b := range got.Bucket {
			if b.GetUpperBound() != grid[i] {
				t.Errorf("bound %g, want %g", b.GetUpperBound(), grid[i])
			}
			within("classic", b.GetUpperBound(), b.GetCumulativeCount())
		}
		n, buckets := got.GetZeroCount(), natives(got)
		for _, i := range slices.Sorted(keys(buckets)) {
			n += uint64(buckets[i])
			within("native", math.Exp2(float64(i)/doubled), n)
		}
		if n != got.GetSampleCount() || n != uint64(len(values)) {
			t.Errorf("%d values in native buckets, %d in all, want %d", n, got.GetSampleCount(), len(values))
		}
		if sum := got.GetSampleSum(); math.Abs(sum-float64(h.Sum())/hz) > 1e-9*sum {
			t.Errorf("sum %g", sum)
		}
	}
}

func keys[K comparable, V any](m map[K]V) func(func(K) bool) {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// Bins are le, but for the last one.
func TestBins(t *testing.T) {
	created := time.Date(2026, 1, 31, 23, 59, 59, 1, time.UTC)
	h := Histogram{Walls: []uint64{10, 20, 40}, Bins: []uint64{1, 0, 2, 4}, Sum: 321}
	got := written(t, cycles, h, &Thread{Hz: 1e9, Created: created})
	type bucket struct {
		Le float64
		N  uint64
	}
	list := func(h *dto.Histogram) (bs []bucket) {
		for _, b := range h.Bucket {
			if n := b.GetCumulativeCount(); n > 0 && len(bs) == 0 || len(bs) > 0 && n != bs[len(bs)-1].N {
				bs = append(bs, bucket{b.GetUpperBound(), n})
			}
		}
		return bs
	}
	if diff := cmp.Diff([]bucket{{10, 1}, {40, 3}}, list(got)); diff != "" || len(got.Bucket) != 3 {
		t.Errorf("cycles (-want +got):\n%s", diff)
	}
	if got.GetSampleCount() != 7 || got.GetSampleSum() != 321 || !got.GetCreatedTimestamp().AsTime().Equal(created) {
		t.Errorf("count %d, sum %g, created %v", got.GetSampleCount(), got.GetSampleSum(), got.GetCreatedTimestamp().AsTime())
	}
	if got.Schema != nil || got.PositiveSpan != nil {
		t.Error("native buckets of what isn't known")
	}
	// On the grid of seconds a bin counts as its wall: 10, 20 and 40 ns.
	got = written(t, seconds, h, &Thread{Hz: 1e9})
	if diff := cmp.Diff([]bucket{{1e-8, 1}, {5e-8, 3}}, list(got)); diff != "" || len(got.Bucket) != len(grid) {
		t.Errorf("seconds (-want +got):\n%s", diff)
	}
	if got.GetSampleCount() != 7 || got.GetSampleSum() != 321/1e9 || got.CreatedTimestamp != nil {
		t.Errorf("count %d, sum %g, created %v", got.GetSampleCount(), got.GetSampleSum(), got.CreatedTimestamp)
	}
}

// A native histogram without values must not look like a classic one.
func TestNativeEmpty(t *testing.T) {
	h := written(t, seconds, Histogram{Fine: []histogram.Bucket{}}, &Thread{Hz: 1e9})
	if h.GetZeroThreshold() == 0 || h.GetSampleCount() != 0 || len(h.Bucket) != len(grid) {
		t.Errorf("%v", h)
	}
}

func TestHistogramNonsense(t *testing.T) {
	d := prometheus.NewDesc("h", "Help.", nil, nil)
	for _, c := range []struct {
		h    Histogram
		k    kind
		hz   float64
		want string
	}{
		{Histogram{Walls: []uint64{1, 2}, Bins: []uint64{1, 2}}, counts, 1e9, "2 bins between 2 walls"},
		{Histogram{Walls: []uint64{1, 2}}, counts, 1e9, "0 bins between 2 walls"},
		{Histogram{Walls: []uint64{2, 2}, Bins: make([]uint64, 3)}, counts, 1e9, "wall 2 after 2"},
		{Histogram{Walls: []uint64{2}, Bins: []uint64{3, 4}, Fine: []histogram.Bucket{{Lo: 1, Hi: 1, Count: 6}}}, counts, 1e9, "7 values in bins and 6 in fine ranges"},
		{Histogram{Fine: []histogram.Bucket{{Lo: 2, Hi: 2, Count: 6}, {Lo: 1, Hi: 1, Count: 6}}}, counts, 1e9, "range up to 1 after 2"},
		{Histogram{Fine: []histogram.Bucket{}}, seconds, 0, "no seconds without a frequency"},
	} {
		err := newHistogram(d, c.k, &c.h, &Thread{Hz: c.hz}, false, nil).Write(new(dto.Metric))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.h, err, c.want)
		}
	}
}

func TestExemplars(t *testing.T) {
	var h histogram.Fine
	for range 1000 {
		h.Add(1000)
	}
	h.Add(2_000_000)
	h.Add(50_000_000_000)
	at := time.Date(2026, 1, 31, 23, 59, 59, 0, time.UTC)
	thread := &Thread{Hz: 1e9, Exemplars: []Exemplar{
		{Iteration: 7, Record: "early", Cycles: 1_990_000, Time: at},
		{Iteration: 8, Record: "20260131T235959-c01-8", Cycles: 2_000_000, Time: at.Add(time.Second)},
		{Iteration: 9, Record: "long", Cycles: 50_000_000_000, Time: at},
	}}
	got := written(t, seconds, Histogram{Fine: fine(&h), Sum: float64(h.Sum())}, thread)
	found := make(map[float64]string)
	for _, b := range got.Bucket {
		if e := b.Exemplar; e != nil {
			for _, l := range e.Label {
				found[b.GetUpperBound()] += l.GetName() + "=" + l.GetValue() + " "
			}
			if e.GetValue() > b.GetUpperBound() {
				t.Errorf("exemplar %g of bucket %g", e.GetValue(), b.GetUpperBound())
			}
		}
	}
	for le, text := range found {
		parts := strings.Fields(text)
		slices.Sort(parts)
		found[le] = strings.Join(parts, " ")
	}
	want := map[float64]string{0.002: "iteration=8 record=20260131T235959-c01-8"}
	inf := math.Inf(1)
	want[inf] = "iteration=9 record=long"
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(got.Exemplars) != 3 {
		t.Errorf("%d exemplars of the native histogram, want 3", len(got.Exemplars))
	}
}
