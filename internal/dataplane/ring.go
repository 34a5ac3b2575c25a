package dataplane

import "sync/atomic"

// ring is a bounded queue of flow numbers, the descriptors of an in-memory port.
// One goroutine may push and one pop at the same time.
type ring struct {
	slots []uint32
	mask  uint32

	// Producer and consumer write words of different cache lines, and a line
	// of either is not the slots' neighbour.
	_    [64]byte
	tail atomic.Uint32 // next slot to fill; written by the producer
	_    [60]byte
	head atomic.Uint32 // next slot to take; written by the consumer
	_    [60]byte
}

// newRing returns a ring of size slots, a power of two.
func newRing(size int) *ring {
	return &ring{slots: make([]uint32, size), mask: uint32(size - 1)}
}

// len returns how many slots are filled.
func (r *ring) len() int { return int(r.tail.Load() - r.head.Load()) }

// room returns how many slots are free.
func (r *ring) room() int { return len(r.slots) - r.len() }

// at returns the i-th slot from head or tail h.
func (r *ring) at(h uint32, i int) *uint32 { return &r.slots[(h+uint32(i))&r.mask] }

// pop moves up to len(dst) numbers to dst and returns how many.
func (r *ring) pop(dst []uint32) int {
	head := r.head.Load()
	n := min(len(dst), int(r.tail.Load()-head))
	for i := range n {
		dst[i] = *r.at(head, i)
	}
	if n > 0 {
		r.head.Store(head + uint32(n))
	}
	return n
}

// push appends n numbers as next gives them. The producer has made sure that
// there is room for them.
func (r *ring) push(n int, next func() uint32) {
	tail := r.tail.Load()
	for i := range n {
		*r.at(tail, i) = next()
	}
	r.tail.Store(tail + uint32(n))
}
