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

// sizeTally is the owner's form of Sizes. The classes of up to 255 packets are summed
// in the eight bytes of one word, so that a packet costs a load and an add, and no
// counter in memory waits for the one before.
type sizeTally struct {
	sums    Sizes
	classes uint64 // of the last packets, a byte a class
	packets int    // how many they are, at most 255
}

// add counts packets of the given sizes.
func (t *sizeTally) add(sizes []uint16) {
	if len(sizes) > 255-t.packets {
		t.sum()
		for ; len(sizes) > 255; sizes = sizes[255:] {
			t.add(sizes[:255])
			t.sum()
		}
	}
	const (
		last = 1 << (8 * 7)
		// The bits of four sizes that one below sizeTable has not.
		tooLarge = (1<<16 - sizeTable) * (1 + 1<<16 + 1<<32 + 1<<48)
	)
	bit := &sizeBit
	t.packets += len(sizes)
	classes := t.classes
	for len(sizes) >= 8 {
		// Four sizes in a word each, which the compiler loads at once.
		p := (*[8]uint16)(sizes)
		lo := uint64(p[0]) | uint64(p[1])<<16 | uint64(p[2])<<32 | uint64(p[3])<<48
		hi := uint64(p[4]) | uint64(p[5])<<16 | uint64(p[6])<<32 | uint64(p[7])<<48
		if (lo|hi)&tooLarge != 0 {
			break
		}
		classes += (bit[lo%sizeTable] + bit[lo>>16%sizeTable] + bit[lo>>32%sizeTable] + bit[lo>>48]) +
			(bit[hi%sizeTable] + bit[hi>>16%sizeTable] + bit[hi>>32%sizeTable] + bit[hi>>48])
		sizes = sizes[8:]
	}
	// The rest, and all after a jumbo frame.
	for _, size := range sizes {
		if size < sizeTable {
			classes += bit[size]
		} else {
			classes += last
		}
	}
	t.classes = classes
}

// sum empties the word and returns all sums.
func (t *sizeTally) sum() Sizes {
	for i := range t.sums.Classes {
		t.sums.Classes[i] += t.classes >> (8 * i) & 0xff
	}
	t.classes, t.packets = 0, 0
	return t.sums
}

func (t *sizeTally) casts(multicast, broadcast int) {
	t.sums.Multicast += uint64(max(multicast, 0))
	t.sums.Broadcast += uint64(max(broadcast, 0))
}
