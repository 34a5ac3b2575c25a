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
	sum    uint64
	max    uint64
}

// Add counts one value.
func (s *Small) Add(v uint64) {
	if v >= smallExact {
		s.addTail(v)
		return
	}
	s.counts[v]++
	s.sum += v
	s.max = max(s.max, v)
}

// AddN counts the value v n times.
func (s *Small) AddN(v, n uint64) {
	if n != 0 {
		s.counts[smallIndex(v)] += n
		s.sum += v * n
		s.max = max(s.max, v)
	}
}

// AddAll counts all of vs and returns the largest, 0 if there is none.
func (s *Small) AddAll(vs []uint64) uint64 {
	var sum, top uint64
	for _, v := range vs {
		if v < smallExact {
			s.counts[v]++
		} else {
			s.counts[smallIndex(v)]++
		}
		sum += v
		top = max(top, v)
	}
	s.sum += sum
	s.max = max(s.max, top)
	return top
}

//go:noinline
func (s *Small) addTail(v uint64) {
	s.counts[smallIndex(v)]++
	s.sum += v
	s.max = max(s.max, v)
}

// smallIndex returns the bucket of v.
func smallIndex(v uint64) uint {
	if v < smallExact {
		return uint(v)
	}
	return smallExact + fineIndex(min(v, SmallMax)) - fineIndex(smallExact)
}

// Count returns the number of values. It looks at every bucket in use.
func (s *Small) Count() uint64 {
	var n uint64
	for _, c := range s.used() {
		n += c
	}
	return n
}

// Sum returns the exact sum of the values (modulo 2^64).
func (s *Small) Sum() uint64 { return s.sum }

// Max returns the largest value exactly, 0 if there was none.
func (s *Small) Max() uint64 { return s.max }

// used returns the buckets up to the largest value seen.
func (s *Small) used() []uint64 { return s.counts[:smallIndex(s.max)+1] }

// Buckets calls yield for every bucket that is not empty, in rising order.
func (s *Small) Buckets() func(yield func(Bucket) bool) { return s.buckets }

func (s *Small) buckets(yield func(Bucket) bool) {
	for i, n := range s.used() {
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
func (s *Small) Quantile(q float64) uint64 { return quantile(s.buckets, s.Count(), s.max, q) }

// Bins derives the counts in Open vSwitch's bins. They are exact where no wall is
// above 1024, which holds for all of Open vSwitch's own.
func (s *Small) Bins(w Walls) Bins {
	var b Bins
	for bucket := range s.buckets {
		b[w.Bin(bucket.Lo)] += bucket.Count
	}
	return b
}

// CopyTo makes dst equal to s, touching only what either has written.
func (s *Small) CopyTo(dst *Small) {
	n := max(len(s.used()), len(dst.used()))
	copy(dst.counts[:n], s.counts[:n])
	dst.sum, dst.max = s.sum, s.max
}

// Reset empties s, touching only what was written.
func (s *Small) Reset() {
	clear(s.used())
	s.sum, s.max = 0, 0
}

// Merge adds the values of t to s.
func (s *Small) Merge(t *Small) {
	for i, n := range t.used() {
		s.counts[i] += n
	}
	s.sum += t.sum
	s.max = max(s.max, t.max)
}
