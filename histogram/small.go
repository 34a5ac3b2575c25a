package histogram

// The layout of Small: one counter for every value below SmallExact, above that
// the buckets of Fine up to SmallMax.
const (
	// SmallExact is the lowest value that shares a counter with others.
	SmallExact = 1024
	// SmallMax is the largest value with a bucket of its own. Larger values are
	// counted in the last bucket; Max is exact. The deepest rx rings have 2^15
	// descriptors.
	SmallMax  = 1<<16 - 1
	smallTail = (16 - 10) * fineBlock
)

// Small counts small integers one by one: exactly below 1024, within 1/128 up to
// SmallMax. The zero value is empty and ready.
type Small struct {
	counts [SmallExact + smallTail]uint64
	top    uint64 // the largest value below 1024
	// Of the values from 1024 on only; those below are known from their counts.
	tailSum uint64
	tailMax uint64
}

// Add counts one value.
func (s *Small) Add(v uint64) { s.AddN(v, 1) }

// AddN counts the value v n times; n may be 0 where v is.
func (s *Small) AddN(v, n uint64) {
	if v < SmallExact {
		s.counts[v] += n
		if v > s.top {
			s.top = v
		}
	} else {
		s.addTail(v, n)
	}
}

//go:noinline
func (s *Small) addTail(v, n uint64) {
	s.counts[smallIndex(v)] += n
	s.tailSum += v * n
	s.tailMax = max(s.tailMax, v)
}

// Exact returns the counters of the values below SmallExact, for a loop that counts many
// values and then calls Note with the largest.
func (s *Small) Exact() *[SmallExact]uint64 { return (*[SmallExact]uint64)(s.counts[:]) }

// Note notes values that were counted by way of Exact.
func (s *Small) Note(top uint64) { s.top = max(s.top, top) }

// smallIndex returns the bucket of v.
func smallIndex(v uint64) uint {
	if v < SmallExact {
		return uint(v)
	}
	return SmallExact + fineIndex(min(v, SmallMax)) - fineIndex(SmallExact)
}

// Count returns the number of values. Like Sum it looks at every bucket.
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
	for v, c := range s.counts[:SmallExact] {
		sum += uint64(v) * c
	}
	return sum
}

// Max returns the largest value exactly, 0 if there was none.
func (s *Small) Max() uint64 { return max(s.top, s.tailMax) }

// Buckets calls yield for every bucket that is not empty, in rising order.
func (s *Small) Buckets() func(yield func(Bucket) bool) { return s.buckets }

func (s *Small) buckets(yield func(Bucket) bool) {
	for i, n := range &s.counts {
		if n == 0 {
			continue
		}
		lo, hi := uint64(i), uint64(i)
		if i >= SmallExact {
			lo, hi = fineBounds(uint(i-SmallExact) + fineIndex(SmallExact))
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
	n := max(s.top, dst.top) + 1
	copy(dst.counts[:n], s.counts[:n])
	if s.tailMax != 0 || dst.tailMax != 0 {
		copy(dst.counts[SmallExact:], s.counts[SmallExact:])
	}
	dst.top, dst.tailSum, dst.tailMax = s.top, s.tailSum, s.tailMax
}

// Reset empties s, touching only what it may have written.
func (s *Small) Reset() {
	clear(s.counts[:s.top+1])
	if s.tailMax != 0 {
		clear(s.counts[SmallExact:])
	}
	s.top, s.tailSum, s.tailMax = 0, 0, 0
}

// Merge adds the values of t to s.
func (s *Small) Merge(t *Small) {
	for i, n := range &t.counts {
		s.counts[i] += n
	}
	s.top = max(s.top, t.top)
	s.tailSum += t.tailSum
	s.tailMax = max(s.tailMax, t.tailMax)
}
