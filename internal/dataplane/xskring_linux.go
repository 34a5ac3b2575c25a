package dataplane

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// xskRing is one of the four rings that an AF_XDP socket shares with the kernel
// (Documentation/networking/af_xdp.rst of Linux). Indices run on and on; an entry's
// place is the index modulo the size, a power of two. One side writes entries and
// moves the producer index, the other reads them and moves the consumer index. Of
// our side only one thread at a time uses a ring.
type xskRing[T uint64 | unix.XDPDesc] struct {
	mem                []byte
	producer, consumer *uint32
	entries            []T
	next               uint32 // index that our side writes or reads next
}

// mapXSKRing maps a ring of n entries of socket fd. option says which it is when it
// is sized, page when it is mapped.
func mapXSKRing[T uint64 | unix.XDPDesc](fd, option int, page int64, at *unix.XDPRingOffset, n int) (r xskRing[T], err error) {
	var entry T
	if r.mem, err = unix.Mmap(fd, page, int(at.Desc)+n*int(unsafe.Sizeof(entry)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE); err != nil {
		return r, fmt.Errorf("map ring %d: %w", option, err)
	}
	r.producer = (*uint32)(unsafe.Pointer(&r.mem[at.Producer]))
	r.consumer = (*uint32)(unsafe.Pointer(&r.mem[at.Consumer]))
	r.entries = unsafe.Slice((*T)(unsafe.Pointer(&r.mem[at.Desc])), n)
	return r, nil
}

func (r *xskRing[T]) unmap() error {
	if r.mem == nil {
		return nil
	}
	err := unix.Munmap(r.mem)
	*r = xskRing[T]{}
	return call("munmap", err)
}

// put writes the next entry, for which there must be room. The kernel sees it from
// publish on.
func (r *xskRing[T]) put(v T) {
	r.entries[int(r.next)&(len(r.entries)-1)] = v
	r.next++
}

func (r *xskRing[T]) publish() { atomic.StoreUint32(r.producer, r.next) }

// taken reports whether the kernel has read all that was published.
func (r *xskRing[T]) taken() bool { return atomic.LoadUint32(r.consumer) == r.next }

// ready returns how many entries the kernel has written that get has not returned.
func (r *xskRing[T]) ready() int { return int(atomic.LoadUint32(r.producer) - r.next) }

// get returns the next entry, of which there must be one. Its place is the kernel's
// again from release on.
func (r *xskRing[T]) get() T {
	v := r.entries[int(r.next)&(len(r.entries)-1)]
	r.next++
	return v
}

func (r *xskRing[T]) release() { atomic.StoreUint32(r.consumer, r.next) }
