package histogram

// The layout of Small: one counter for every value below smallExact, above that
// the buckets of Fine up to SmallMax.
const (
	smallExact = 1024
	// SmallMax is the largest value with a bucket of its own. Larger values are
	// counted in the last bucket; Max is exact. The deepest rx rings have 2^15
	// descriptors.
	SmallMax  = 1<<16 - 1
	smallTail = (16 - 10) * fineBlock
)

// Small counts small integers one by one: exactly below 1024, within 1/128 up to
// SmallMax. The zero value is empty and ready.
type Small struct {
	counts [smallExact + smallTail]uint64
	// All values below 1024, or-ed: none is larger than this.
	bits uint64
	// Of the values from 1024 on only; those below are known from their counts.
	tailSum uint64
	tailMax uint64
}

// Add counts one value.
func (s *Small) Add(v uint64) {
	if v < smallExact {
		s.counts[v]++
		s.bits |= v
	} else {
		s.addTail(v)
	}
}

//go:noinline
func (s *Small) addTail(v uint64) {
	s.counts[smallIndex(v)]++
	s.tailSum += v
	s.tailMax = max(s.tailMax, v)
}

// AddZeros counts n zeros.
func (s *Small) AddZeros(n uint64) { s.counts[0] += n }

// AddAll counts all of vs.
func (s *Small) AddAll(vs []uint64) {
	var bits uint64
	for _, v := range vs {
		if v < smallExact {
			s.counts[v]++
			bits |= v
		} else {
			s.addTail(v)
		}
	}
	s.bits |= bits
}

// smallIndex returns the bucket of v.
func smallIndex(v uint64) uint {
	if v < smallExact {
		return uint(v)
	}
	return smallExact + fineIndex(min(v, SmallMax)) - fineIndex(smallExact)
}

// Count returns the number of values. Like Sum and Max it looks at every bucket.
func (s *Small) Count() uint64 {
	var n uint64
	for _, c := range &s.counts {
		n += c
	}
	return n
}

// Sum returns the exact sum of the values (modulo 2^64).
func (s *Small) Sum() uint64 {
	sum := s.tailSum
	for v, c := range s.counts[:smallExact] {
		sum += uint64(v) * c
	}
	return sum
}

// Max returns the largest value exactly, 0 if there was none.
func (s *Small) Max() uint64 {
	if s.tailMax != 0 {
		return s.tailMax
	}
	for v := smallExact - 1; v > 0; v-- {
		if s.counts[v] != 0 {
			return uint64(v)
		}
	}
	return 0
}

// Buckets calls yield for every bucket that is not empty, in rising order.
func (s *Small) Buckets() func(yield func(Bucket) bool) { return s.buckets }

func (s *Small) buckets(yield func(Bucket) bool) {
	for i, n := range &s.counts {
		if n == 0 {
			continue
		}
		lo, hi := uint64(i), uint64(i)
		if i >= smallExact {
			lo, hi = fineBounds(uint(i-smallExact) + fineIndex(smallExact))
		}
		if !yield(Bucket{lo, hi, n}) {
			return
		}
	}
}

// Quantile is as for Fine.
func (s *Small) Quantile(q float64) uint64 { return quantile(s.buckets, s.Count(), s.Max(), q) }

// Bins derives the counts in Open vSwitch's bins. They are exact where no wall is
// above 1024, which holds for all of Open vSwitch's own.
func (s *Small) Bins(w Walls) Bins {
	var b Bins
	for bucket := range s.buckets {
		b[w.Bin(bucket.Lo)] += bucket.Count
	}
	return b
}

// CopyTo makes dst equal to s, touching only what either may have written.
func (s *Small) CopyTo(dst *Small) {
	n := max(s.bits, dst.bits) + 1
	copy(dst.counts[:n], s.counts[:n])
	if s.tailMax != 0 || dst.tailMax != 0 {
		copy(dst.counts[smallExact:], s.counts[smallExact:])
	}
	dst.bits, dst.tailSum, dst.tailMax = s.bits, s.tailSum, s.tailMax
}

// Reset empties s, touching only what it may have written.
func (s *Small) Reset() {
	clear(s.counts[:s.bits+1])
	if s.tailMax != 0 {
		clear(s.counts[smallExact:])
	}
	s.bits, s.tailSum, s.tailMax = 0, 0, 0
}

// Merge adds the values of t to s.
func (s *Small) Merge(t *Small) {
	for i, n := range &t.counts {
		s.counts[i] += n
	}
	s.bits |= t.bits
	s.tailSum += t.tailSum
	s.tailMax = max(s.tailMax, t.tailMax)
}
