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

// sizeClass returns the class of a packet size.
func sizeClass(size uint16) int {
	class := 0
	for _, first := range [...]uint16{64, 65, 128, 256, 512, 1024, 1519} {
		if size >= first {
			class++
		}
	}
	return class
}

// sizeTable is more than the least size of the last class.
const sizeTable = 2048

// sizeBit gives for a packet size below sizeTable one in the byte of its class.
var sizeBit = func() (t [sizeTable]uint64) {
	for size := range t {
		t[size] = 1 << (8 * sizeClass(uint16(size)))
	}
	return t
}()

// add counts packets of the given sizes. The classes of up to 255 packets are
// summed in the eight bytes of one word, so that a packet costs a load and an add,
// and no counter in memory waits for the one before.
func (s *Sizes) add(sizes []uint16) {
	const last = 1 << (8 * 7)
	bit := &sizeBit
	for len(sizes) > 0 {
		part := sizes[:min(len(sizes), 255)]
		sizes = sizes[len(part):]
		var classes uint64
		for len(part) >= 4 && part[0]|part[1]|part[2]|part[3] < sizeTable {
			classes += bit[part[0]%sizeTable] + bit[part[1]%sizeTable] + bit[part[2]%sizeTable] + bit[part[3]%sizeTable]
			part = part[4:]
		}
		// The rest, and all after a jumbo frame.
		for _, size := range part {
			if size < sizeTable {
				classes += bit[size]
			} else {
				classes += last
			}
		}
		c := &s.Classes
		c[0] += classes & 0xff
		c[1] += classes >> 8 & 0xff
		c[2] += classes >> 16 & 0xff
		c[3] += classes >> 24 & 0xff
		c[4] += classes >> 32 & 0xff
		c[5] += classes >> 40 & 0xff
		c[6] += classes >> 48 & 0xff
		c[7] += classes >> 56
	}
}

func (s *Sizes) casts(multicast, broadcast int) {
	s.Multicast += uint64(max(multicast, 0))
	s.Broadcast += uint64(max(broadcast, 0))
}
