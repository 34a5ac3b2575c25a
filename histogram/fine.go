package histogram

import (
	"math"
	"math/bits"
)

// The layout of Fine. Values below 256 have a bucket each; above, every octave
// [2^k, 2^(k+1)) has 128 buckets. That is HdrHistogram's layout for 2 significant
// digits: 2 * 10^2 = 200 distinct values, rounded up to the next power of two.
//
// Worked example: 1000 has 10 bits. Its octave [512, 1024) has buckets 4 wide, so 1000
// shares one with 1001, 1002 and 1003: the octave's first bucket, (9-6)*128 = 384,
// plus (1000-512)/4 = 122, makes 506.
const (
	fineBlock  = 128 // buckets of an octave
	fineShift  = 7   // and their number's logarithm
	fineMaxBit = 48

	// FineMax is the largest value with a bucket of its own, 2^48 - 1: a day of
	// ticks at 3 GHz. Larger values are counted in the last bucket; Max is exact.
	FineMax = 1<<fineMaxBit - 1
	// FineLen is the number of buckets.
	FineLen = (fineMaxBit - fineShift + 1) * fineBlock
	// FineNone is the bucket of what is no value.
	FineNone = FineLen
)

// Fine is a log-linear histogram. The zero value is empty and ready.
type Fine struct {
	counts  [FineLen + 1]uint64 // the last, FineNone, is never looked at
	sum     uint64
	max     uint64
	touched uint64 // bit k: one of the 128 buckets from k*128 on was written
}

// FineIndex returns the bucket that Fine counts v in.
func FineIndex(v uint64) uint { return fineIndex(min(v, FineMax)) }

// How to find the bucket of many values side by side, for code in assembly that Fine's
// AddIndexed follows on. A float64 is a log-linear bucket already: its exponent is the
// octave and the highest 7 bits of its mantissa are the bucket in it. So the bucket of
// v is v itself below FineLinear, and else
//
//	math.Float64bits(float64(v))>>FineShift - FineBias
//
// where the bias makes 128 = 2^7, with exponent 1023+7, come out as 128. Of an integer
// below 2^53 nothing is lost, and what is behind its point matters in no way.
const (
	FineLinear = fineBlock
	FineShift  = 52 - fineShift
	FineBias   = (1023 + fineShift - 1) << fineShift
)

// fineIndex returns the bucket of v, which must not exceed FineMax. Converting to
// float64 takes a quarter of the cycles of finding the highest bit.
func fineIndex(v uint64) uint {
	i := uint(math.Float64bits(float64(int64(v)))>>FineShift) - FineBias
	if v < FineLinear {
		i = uint(v)
	}
	return i
}

// FineBlock returns the bit of Note that stands for bucket i.
func FineBlock(i uint) uint64 { return 1 << (i >> fineShift & 63) }

// Note takes over what AddIndexed left out: the sum of the values, the largest, and
// the FineBlocks of their buckets.
func (f *Fine) Note(sum, top, blocks uint64) {
	f.sum += sum
	f.max = max(f.max, top)
	f.touched |= blocks
}

// fineBounds returns the lowest and highest value of bucket i.
func fineBounds(i uint) (lo, hi uint64) {
	if i < 2*fineBlock {
		return uint64(i), uint64(i)
	}
	o := i>>fineShift - 1
	lo = uint64(i-o<<fineShift) << o
	return lo, lo + 1<<o - 1
}

// Add counts one value.
func (f *Fine) Add(v uint64) {
	i := FineIndex(v)
	f.counts[i]++
	f.Note(v, v, FineBlock(i))
}

// AddN counts n values v.
func (f *Fine) AddN(v, n uint64) {
	if n == 0 {
		return
	}
	f.Add(v)
	f.counts[fineIndex(min(v, FineMax))] += n - 1
	f.sum += v * (n - 1)
}

// Count returns the number of values. It looks at every bucket.
func (f *Fine) Count() uint64 {
	var n uint64
	for c := range f.buckets {
		n += c.Count
	}
	return n
}

// Sum returns the exact sum of the values (modulo 2^64).
func (f *Fine) Sum() uint64 { return f.sum }

// Max returns the largest value exactly, 0 if there was none.
func (f *Fine) Max() uint64 { return f.max }

// A Bucket is a range of values, both ends inclusive, and how many fell into it.
type Bucket struct {
	Lo, Hi, Count uint64
}

// Buckets calls yield for every bucket that is not empty, in rising order.
func (f *Fine) Buckets() func(yield func(Bucket) bool) { return f.buckets }

func (f *Fine) buckets(yield func(Bucket) bool) {
	for m := f.touched; m != 0; m &= m - 1 {
		lo, hi := lowestBlock(m)
		for i := lo; i < hi; i++ {
			if n := f.counts[i]; n != 0 {
				l, h := fineBounds(i)
				if !yield(Bucket{l, h, n}) {
					return
				}
			}
		}
	}
}

// lowestBlock returns the half-open range of buckets of the lowest bit set in
// touched.
func lowestBlock(touched uint64) (lo, hi uint) {
	lo = uint(bits.TrailingZeros64(touched)) << fineShift
	return lo, lo + fineBlock
}

// CopyTo makes dst equal to f, touching only blocks in which either has counts.
func (f *Fine) CopyTo(dst *Fine) {
	for m := f.touched | dst.touched; m != 0; m &= m - 1 {
		lo, hi := lowestBlock(m)
		copy(dst.counts[lo:hi], f.counts[lo:hi])
	}
	dst.sum, dst.max, dst.touched = f.sum, f.max, f.touched
}

// Reset empties f, touching only what was written.
func (f *Fine) Reset() {
	for m := f.touched; m != 0; m &= m - 1 {
		lo, hi := lowestBlock(m)
		clear(f.counts[lo:hi])
	}
	f.sum, f.max, f.touched = 0, 0, 0
}

// Merge adds the values of g to f.
func (f *Fine) Merge(g *Fine) {
	for m := g.touched; m != 0; m &= m - 1 {
		lo, hi := lowestBlock(m)
		for i := lo; i < hi; i++ {
			f.counts[i] += g.counts[i]
		}
	}
	f.sum += g.sum
	f.max = max(f.max, g.max)
	f.touched |= g.touched
}

// Quantile returns the smallest value such that at least the fraction q (0 .. 1)
// of all values is not larger, as the upper end of its bucket and never more than
// Max; 0 if there are no values.
func (f *Fine) Quantile(q float64) uint64 {
	return quantile(f.buckets, f.Count(), f.max, q)
}

func quantile(buckets func(func(Bucket) bool), count, maximum uint64, q float64) uint64 {
	if count == 0 {
		return 0
	}
	// The rank is at least 1, so that q = 0 gives the smallest value.
	rank := max(1, min(count, ceil(q*float64(count))))
	var seen uint64
	for b := range buckets {
		if seen += b.Count; seen >= rank {
			return min(b.Hi, maximum)
		}
	}
	return maximum
}

// ceil rounds a fraction of a count up, forgiving what q*count is off by in
// floating point: 0.9 * 10 is a hair more than 9 for no good reason.
func ceil(x float64) uint64 {
	if x <= 0 {
		return 0
	}
	n := uint64(x)
	if x-float64(n) > 1e-9*x {
		n++
	}
	return n
}
