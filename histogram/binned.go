package histogram

import "math/bits"

// A Binner finds the Open vSwitch bin of a value in constant time: by the value's
// Fine bucket it looks up the bin of that bucket's lowest value, and one compare
// with that bin's wall decides whether the value lies beyond. It is right if no
// bucket holds two walls, which NewBinner checks. A Binner is immutable.
type Binner struct {
	walls [NumBins]uint64 // the 32nd is never exceeded
	bin   [FineLen]uint8
}

// NewBinner returns a Binner for the walls. It panics if two walls share a bucket
// of Fine, which walls less than 1/128 apart do.
func NewBinner(w Walls) *Binner {
	b := new(Binner)
	copy(b.walls[:], w[:])
	b.walls[NumBins-1] = 1<<64 - 1
	for i := range b.bin {
		lo, hi := fineBounds(uint(i))
		first, last := w.Bin(lo), w.Bin(hi)
		if last > first+1 {
			panic("histogram: two walls in one bucket")
		}
		b.bin[i] = uint8(first)
	}
	return b
}

// Binned is a Fine histogram that counts the same values in Open vSwitch's bins.
// Its AddAll takes the binner, so that a Binned is plain memory.
type Binned struct {
	Fine
	Bins Bins
}

// Add counts one value in both; b must be the same at every call.
func (h *Binned) Add(b *Binner, v uint64) {
	h.AddAll(b, []uint64{v})
}

// AddAll counts all of vs and returns their sum and the largest, 0 if there is
// none. It is several times as fast as adding them one by one.
func (h *Binned) AddAll(b *Binner, vs []uint64) (sum, top uint64) {
	var touched uint64
	for _, v := range vs {
		sum += v
		top = max(top, v)
		v = min(v, FineMax)
		i := fineIndex(v)
		h.counts[i]++
		touched |= 1 << (i >> fineShift & 63)
		bin := uint64(b.bin[i])
		// The borrow of the subtraction is 1 where v is beyond the wall; a branch on
		// that would be mispredicted every other time.
		_, beyond := bits.Sub64(b.walls[bin%NumBins], v, 0)
		h.Bins[(bin+beyond)%NumBins]++
	}
	h.touched |= touched
	h.sum += sum
	h.max = max(h.max, top)
	return sum, top
}

// CopyTo makes dst equal to h, touching only what either has written.
func (h *Binned) CopyTo(dst *Binned) {
	h.Fine.CopyTo(&dst.Fine)
	dst.Bins = h.Bins
}

// Reset empties h.
func (h *Binned) Reset() {
	h.Fine.Reset()
	h.Bins = Bins{}
}

// Merge adds the values of g to h; both must have used the same walls.
func (h *Binned) Merge(g *Binned) {
	h.Fine.Merge(&g.Fine)
	for i, n := range g.Bins {
		h.Bins[i] += n
	}
}
