package perf

// SizeNames are the packet size classes, in bytes, named as the vhost library of
// DPDK does.
var SizeNames = [...]string{"undersize", "64", "65-127", "128-255", "256-511",
	"512-1023", "1024-1518", "1519-max"}

// Sizes counts the packets of a queue by size class, in the order of SizeNames,
// and by destination where the embedder tells.
type Sizes struct {
	Classes   [8]uint64
	Multicast uint64
	Broadcast uint64
}

// sizeShift gives for a packet size 8 times its class; beyond its end all sizes
// are of the last class.
var sizeShift = func() (t [2048]uint8) {
	for size := range t {
		class := 0
		for _, first := range []int{64, 65, 128, 256, 512, 1024, 1519} {
			if size >= first {
				class++
			}
		}
		t[size] = uint8(8 * class)
	}
	return t
}()

// add counts packets of the given sizes. The classes of up to 255 packets are
// summed in the eight bytes of one word, so that a packet costs a table lookup,
// a shift and an add, and no counter in memory waits for the one before.
func (s *Sizes) add(sizes []uint16) {
	for len(sizes) > 0 {
		part := sizes[:min(len(sizes), 255)]
		sizes = sizes[len(part):]
		var classes uint64
		for _, size := range part {
			classes += 1 << (sizeShift[min(size, uint16(len(sizeShift)-1))] & 63)
		}
		for i := range s.Classes {
			s.Classes[i] += classes >> (8 * i) & 0xff
		}
	}
}

func (s *Sizes) casts(multicast, broadcast int) {
	s.Multicast += uint64(max(multicast, 0))
	s.Broadcast += uint64(max(broadcast, 0))
}
