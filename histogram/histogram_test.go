package histogram

import (
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pmdperf/pmdperf/internal/need"
	"pgregory.net/rapid"
)

// The walls are those of the table that Open vSwitch 3.1 printed.
func TestWallsAreOpenVSwitchs(t *testing.T) {
	text, err := os.ReadFile("testdata/ovs-walls.txt")
	if err != nil {
		t.Fatal(err)
	}
	var want [NumMetrics]Walls
	rows := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(rows) != NumBins-1 {
		t.Fatalf("%d rows in testdata", len(rows))
	}
	for r, row := range rows {
		f := regexp.MustCompile(` +`).Split(strings.TrimSpace(row), -1)
		for m := range want {
			want[m][r], err = strconv.ParseUint(f[m], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for m := Metric(0); m < NumMetrics; m++ {
		if got := m.Walls(); got != want[m] {
			t.Errorf("%v:\n got %v\nwant %v", m, got, want[m])
		}
	}
}

// naive is the bin by linear search.
func naive(w *Walls, v uint64) int {
	for i, wall := range w {
		if v <= wall {
			return i
		}
	}
	return NumBins - 1
}

// Every value up to 30 million, beyond the highest wall, is put where a linear
// search puts it, and so are the values around every power of two above.
func TestBinnerExhaustively(t *testing.T) {
	top := uint64(3_000_000)
	if need.Long() {
		top = 30_000_000
	}
	for m := Metric(0); m < NumMetrics; m++ {
		w := m.Walls()
		b := NewBinner(w)
		check := func(v uint64, want int) {
			var h Binned
			h.Add(b, v)
			if h.Bins[want] != 1 {
				t.Fatalf("%v: %d is not in bin %d: %v", m, v, want, h.Bins)
			}
		}
		bin := 0
		for v := range top {
			for bin < len(w) && v > w[bin] {
				bin++
			}
			// Inline what Binned.Add does, or the copying would take minutes.
			i := fineIndex(v)
			got := int(b.bin[i] % NumBins)
			if v > b.walls[got] {
				got++
			}
			if got != bin {
				t.Fatalf("%v: %d in bin %d, want %d", m, v, got, bin)
			}
		}
		for _, wall := range w {
			for _, v := range []uint64{wall - 1, wall, wall + 1} {
				check(v, naive(&w, v))
			}
		}
		for shift := range 64 {
			for _, v := range []uint64{1<<shift - 1, 1 << shift, 1<<shift + 1} {
				check(v, naive(&w, v))
			}
		}
		check(math.MaxUint64, NumBins-1)
	}
}

// An iteration of 2^32 + 1000 cycles belongs beyond the last wall, where 32-bit
// values would put it into the bin of 1025.
func TestNo32BitTruncation(t *testing.T) {
	w := CyclesPerIteration.Walls()
	var h Binned
	h.Add(NewBinner(w), 1<<32+1000)
	if h.Bins[NumBins-1] != 1 || h.Bins[w.Bin(1000)] != 0 {
		t.Errorf("bins %v", h.Bins)
	}
	if h.Max() != 1<<32+1000 || h.Sum() != 1<<32+1000 {
		t.Errorf("max %d sum %d", h.Max(), h.Sum())
	}
}

// Buckets partition the values: bounds and index agree, neighbours touch, and no
// bucket is wider than 1/128 of its values.
func TestFineBuckets(t *testing.T) {
	next := uint64(0)
	for i := range uint(FineLen) {
		lo, hi := fineBounds(i)
		if lo != next {
			t.Fatalf("bucket %d begins at %d, want %d", i, lo, next)
		}
		if fineIndex(lo) != i || fineIndex(hi) != i {
			t.Fatalf("bucket %d is [%d, %d], indexes %d and %d", i, lo, hi, fineIndex(lo), fineIndex(hi))
		}
		if (hi-lo)*128 > lo {
			t.Fatalf("bucket %d = [%d, %d] is too wide", i, lo, hi)
		}
		next = hi + 1
	}
	if next != FineMax+1 {
		t.Fatalf("the last bucket ends at %d", next-1)
	}
}

func values() *rapid.Generator[[]uint64] {
	return rapid.SliceOf(rapid.OneOf(
		rapid.Uint64Range(0, 40), rapid.Uint64Range(0, 2000), rapid.Uint64Range(0, 1<<20),
		rapid.Uint64Range(0, 1<<50), rapid.Uint64()))
}

// counter is what the three shapes have in common.
type counter interface {
	Count() uint64
	Sum() uint64
	Max() uint64
	Quantile(float64) uint64
	Buckets() func(func(Bucket) bool)
}

// check compares h with the values it was given.
func check(t *rapid.T, h counter, vs []uint64, limit uint64) {
	var sum, top uint64
	for _, v := range vs {
		sum += v
		top = max(top, v)
	}
	if h.Count() != uint64(len(vs)) || h.Sum() != sum || h.Max() != top {
		t.Fatalf("count %d sum %d max %d, want %d %d %d", h.Count(), h.Sum(), h.Max(), len(vs), sum, top)
	}
	rest := append([]uint64(nil), vs...)
	for b := range h.Buckets() {
		var n uint64
		kept := rest[:0]
		for _, v := range rest {
			if c := min(v, limit); c >= b.Lo && c <= b.Hi {
				n++
			} else {
				kept = append(kept, v)
			}
		}
		rest = kept
		if n != b.Count {
			t.Fatalf("bucket [%d, %d] counts %d, want %d", b.Lo, b.Hi, b.Count, n)
		}
	}
	if len(rest) != 0 {
		t.Fatalf("in no bucket: %v", rest)
	}
	if len(vs) > 0 {
		sorted := slices.Sorted(slices.Values(vs))
		for _, q := range []float64{0, 0.25, 0.5, 0.75, 0.9, 0.99, 0.99999, 1} {
			// The value of the rank, found in the bucket that the quantile ends.
			rank := max(1, int(math.Ceil(q*float64(len(vs))-1e-9)))
			want := min(sorted[rank-1], limit)
			if got := h.Quantile(q); got < want || got > want+want/127+1 && got != top {
				t.Fatalf("quantile %v is %d, the value of rank %d is %d", q, got, rank, want)
			}
		}
	}
}

func TestShapesAgainstModel(t *testing.T) {
	binner := NewBinner(CyclesPerIteration.Walls())
	rapid.Check(t, func(t *rapid.T) {
		as, bs := values().Draw(t, "a"), values().Draw(t, "b")
		var fa, fb, fc Binned
		var sa, sb, sc Small
		for _, v := range as {
			fa.Add(binner, v)
			sa.AddN(v, 1)
			sa.AddN(0, 0) // counts nothing
		}
		for _, v := range bs {
			fb.Add(binner, v)
			sb.Add(v)
		}
		check(t, &fa, as, FineMax)
		check(t, &sa, as, SmallMax)
		if fa.Bins.Total() != uint64(len(as)) {
			t.Fatalf("%d values in bins, want %d", fa.Bins.Total(), len(as))
		}
		// Into a copy that holds something else.
		fb.CopyTo(&fc)
		fa.CopyTo(&fc)
		sb.CopyTo(&sc)
		sa.CopyTo(&sc)
		if fc != fa || sc != sa {
			t.Fatal("a copy differs")
		}
		fc.Merge(&fb)
		sc.Merge(&sb)
		both := append(append([]uint64(nil), as...), bs...)
		check(t, &fc, both, FineMax)
		check(t, &sc, both, SmallMax)
		fc.Reset()
		sc.Reset()
		if fc != (Binned{}) || sc != (Small{}) {
			t.Fatal("something is left after a reset")
		}
	})
}

// Values counted by their buckets, many at once, are counted as one by one.
func TestAddIndexed(t *testing.T) {
	for _, m := range []Metric{CyclesPerIteration, CyclesPerPacket, CyclesPerUpcall} {
		w := m.Walls()
		b := NewBinner(w)
		rapid.Check(t, func(t *rapid.T) {
			vs := rapid.SliceOf(rapid.OneOf(rapid.Uint64Range(0, 40_000), rapid.Uint64(), rapid.Custom(func(t *rapid.T) uint64 {
				return w[rapid.IntRange(0, len(w)-1).Draw(t, "wall")] + rapid.Uint64Range(0, 2).Draw(t, "beside") - 1
			}))).Draw(t, "values")
			var one, many Binned
			var sum, top, blocks uint64
			for _, v := range vs {
				one.Add(b, v)
				i := FineIndex(v)
				if many.AddIndexed(b, uint64(i)) {
					many.AddBeyond(b, uint64(i), v)
				}
				many.AddIndexed(b, FineNone)
				sum += v
				top = max(top, v)
				blocks |= FineBlock(i)
			}
			many.Note(sum, top, blocks)
			many.Settle(b)
			// What is no value leaves no trace in a copy.
			var seen Binned
			many.CopyTo(&seen)
			if seen != one {
				t.Fatalf("%v: bins %v, want %v", m, seen.Bins, one.Bins)
			}
		})
	}
}

// The derived bins of small integers are those of a linear search.
func TestSmallBins(t *testing.T) {
	for _, m := range []Metric{PacketsPerIteration, PacketsPerBatch, QueueFill, UpcallsPerIteration} {
		w := m.Walls()
		var s Small
		var want Bins
		for v := range uint64(5000) {
			s.Add(v)
			want[naive(&w, v)]++
		}
		if got := s.Bins(w); got != want {
			t.Errorf("%v:\n got %v\nwant %v", m, got, want)
		}
	}
}

func TestQuantile(t *testing.T) {
	var f Fine
	if f.Quantile(0.5) != 0 {
		t.Error("a quantile of nothing")
	}
	for v := range uint64(100) {
		f.Add(v + 1)
	}
	got := []uint64{f.Quantile(0), f.Quantile(0.5), f.Quantile(0.9), f.Quantile(0.99), f.Quantile(0.991), f.Quantile(1)}
	if want := []uint64{1, 50, 90, 99, 100, 100}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v want %v", got, want)
	}
}

func TestAddAllocatesNothing(t *testing.T) {
	b := NewBinner(CyclesPerIteration.Walls())
	h, s := new(Binned), new(Small)
	if n := testing.AllocsPerRun(1000, func() { h.Add(b, 1<<60); s.Add(1 << 40) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkBinnedAdd(b *testing.B) {
	binner, h := NewBinner(CyclesPerIteration.Walls()), new(Binned)
	v := uint64(1)
	for b.Loop() {
		v = v*6364136223846793005 + 1442695040888963407
		h.Add(binner, v>>44)
	}
}

func BenchmarkSmallAdd(b *testing.B) {
	h := new(Small)
	v := uint64(1)
	for b.Loop() {
		v = v*6364136223846793005 + 1442695040888963407
		h.Add(v >> 59)
	}
}
