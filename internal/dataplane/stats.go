package dataplane

import (
	"math/bits"
	"sync/atomic"
)

// StatsMode says who counts the packets of every port by their sizes, as the vhost
// library of DPDK does for its queues.
type StatsMode string

// The modes.
const (
	StatsOff    StatsMode = "off"    // nobody
	StatsOwn    StatsMode = "own"    // every PMD for itself
	StatsShared StatsMode = "shared" // all PMDs together, behind one lock a port
)

// sizeStats count packets of one direction.
type sizeStats struct {
	packets, bytes, multicast, broadcast uint64
	classes                              [sizeClasses]uint64
}

// The size classes are: below 64 bytes, 64, to 127, 255, 511, 1023, 1518 and above,
// with the frame check sequence, as RFC 2819 has them.
const sizeClasses = 8

// checkSequence is what a frame has on the wire and not in memory.
const checkSequence = 4

func sizeClass(size int) int {
	switch {
	case size < 64:
		return 0
	case size == 64:
		return 1
	case size > 1518:
		return 7
	}
	return min(bits.Len(uint(size))-5, 6)
}

// count adds the first n packets of b.
func (s *sizeStats) count(b *Batch, n int) {
	for i := range n {
		f := b.At(i).Frame()
		size := len(f) + checkSequence
		s.packets++
		s.bytes += uint64(size)
		s.classes[sizeClass(size)%sizeClasses]++
		if len(f) >= 6 && f[0]&1 != 0 {
			if string(f[:6]) == "\xff\xff\xff\xff\xff\xff" {
				s.broadcast++
			} else {
				s.multicast++
			}
		}
	}
}

func (s *sizeStats) merge(o *sizeStats) {
	s.packets += o.packets
	s.bytes += o.bytes
	s.multicast += o.multicast
	s.broadcast += o.broadcast
	for i := range s.classes {
		s.classes[i] += o.classes[i]
	}
}

// portStats are those of one port. The zero value is ready.
type portStats struct {
	rx, tx sizeStats
	_      [64]byte
}

// sharedStats are those of one port behind a lock, which is held while a batch is
// counted.
type sharedStats struct {
	held atomic.Bool
	portStats
}

// lock waits busily, as a lock in a poll loop has to.
func (s *sharedStats) lock() {
	for !s.held.CompareAndSwap(false, true) {
		for s.held.Load() {
			relax()
		}
	}
}

func (s *sharedStats) unlock() { s.held.Store(false) }

// statistics are what a PMD counts with.
type statistics struct {
	mode   StatsMode
	own    []portStats   // by port
	shared []sharedStats // by port; of all PMDs
}

// rx counts what was received in the first n packets of b.
func (s *statistics) rx(port uint16, b *Batch, n int) {
	switch s.mode {
	case StatsOwn:
		s.own[port].rx.count(b, n)
	case StatsShared:
		p := &s.shared[port]
		p.lock()
		p.rx.count(b, n)
		p.unlock()
	}
}

// tx counts what was sent.
func (s *statistics) tx(port int, b *Batch, n int) {
	switch s.mode {
	case StatsOwn:
		s.own[port].tx.count(b, n)
	case StatsShared:
		p := &s.shared[port]
		p.lock()
		p.tx.count(b, n)
		p.unlock()
	}
}
