package histogram

import "math/bits"

// A Binner finds the Open vSwitch bin of a value in constant time: by the value's
// Fine bucket it looks up the bin of that bucket's lowest value, and one compare
// with that bin's wall decides whether the value lies beyond. It is right if no
// bucket holds two walls, which NewBinner checks. A Binner is immutable.
type Binner struct {
	walls [NumBins]uint64    // the 32nd is never exceeded
	bin   [FineLen + 1]uint8 // and walled where the bucket holds the bin's wall
}

// walled marks a bucket of which not all values are in the same bin.
const walled = 0x80

// NewBinner returns a Binner for the walls. It panics if two walls share a bucket
// of Fine, which walls less than 1/128 apart do.
func NewBinner(w Walls) *Binner {
	b := new(Binner)
	copy(b.walls[:], w[:])
	b.walls[NumBins-1] = 1<<64 - 1
	for i := range b.bin[:FineLen] {
		lo, hi := fineBounds(uint(i))
		first, last := w.Bin(lo), w.Bin(hi)
		if last > first+1 {
			panic("histogram: two walls in one bucket")
		}
		b.bin[i] = uint8(first)
		if last != first {
			b.bin[i] |= walled
		}
	}
	return b
}

// Binned is a Fine histogram that knows how many of its values are in each of Open
// vSwitch's bins.
//
// All values of a bucket are in the same bin but in the few buckets that hold a wall.
// Only there does counting a value need more than the bucket, and only what lies beyond
// the wall is counted apart; the bins are summed up when somebody reads.
type Binned struct {
	Fine
	// Bins lack what AddIndexed counted since the last Settle.
	Bins Bins
	// Values in a bucket that holds the wall of a bin, and beyond that wall.
	beyond Bins
}

// Add counts one value; b must be the same at every call.
func (h *Binned) Add(b *Binner, v uint64) {
	i := FineIndex(v)
	h.Fine.Add(v)
	bin := b.bin[i] % NumBins
	if v > b.walls[bin] {
		h.beyond[bin]++
		bin++
	}
	h.Bins[bin%NumBins]++
}

// AddIndexed counts a value whose bucket is i (FineIndex, or FineNone for one that is not
// to be counted), with as few instructions as that takes. It reports whether the bucket
// holds a wall, when AddBeyond has to be told the value. Settle and Note are left to the
// caller; b must be the same at every call.
func (h *Binned) AddIndexed(b *Binner, i uint64) (wall bool) {
	h.counts[i]++
	return b.bin[i] >= walled
}

// AddBeyond finishes what AddIndexed did for the value v.
func (h *Binned) AddBeyond(b *Binner, i, v uint64) {
	// The borrow of the subtraction is 1 where v is beyond the wall; a branch on that
	// would be mispredicted every other time.
	bin := b.bin[i] % NumBins
	_, beyond := bits.Sub64(b.walls[bin], v, 0)
	h.beyond[bin] += beyond
}

// Settle brings Bins up to date. It looks at every bucket that may have been written.
func (h *Binned) Settle(b *Binner) {
	h.Bins = Bins{}
	for m := h.touched; m != 0; m &= m - 1 {
		lo, hi := lowestBlock(m)
		for i := lo; i < hi; i++ {
			h.Bins[b.bin[i]%NumBins] += h.counts[i]
		}
	}
	for i, n := range h.beyond[:NumBins-1] {
		h.Bins[i] -= n
		h.Bins[i+1] += n
	}
}

// CopyTo makes dst equal to h, touching only what either has written.
func (h *Binned) CopyTo(dst *Binned) {
	h.Fine.CopyTo(&dst.Fine)
	dst.Bins, dst.beyond = h.Bins, h.beyond
}

// Reset empties h.
func (h *Binned) Reset() {
	h.Fine.Reset()
	h.Bins, h.beyond = Bins{}, Bins{}
}

// Merge adds the values of g to h; both must have used the same walls.
func (h *Binned) Merge(g *Binned) {
	h.Fine.Merge(&g.Fine)
	for i := range g.Bins {
		h.Bins[i] += g.Bins[i]
		h.beyond[i] += g.beyond[i]
	}
}
