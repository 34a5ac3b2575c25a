package dataplane

// Burst is the most packets that a receive or transmit burst holds, as
// NETDEV_MAX_BURST in Open vSwitch.
const Burst = 32

// Packet is a frame and what the pipeline knows of it. It belongs to the Pool of
// one PMD for ever; batches refer to it by its index, so that handing it on
// stores no pointer.
type Packet struct {
	key  Key
	hash uint32 // of key, as a network card's RSS hash would be
	flow uint32 // index into the classifier's flows, 0 = none yet
	off  uint16 // where the frame begins in buf: a popped tunnel header moves it
	size uint16
	in   uint16 // index of the port it came from
	_    uint16
	buf  [bufSize]byte
}

// bufSize makes a Packet 35 cache lines long. The number of lines is odd so that
// the headers of neighbours fall into different sets of the first-level cache: at
// 2048 bytes each, 32 headers would fight for 2 of its 64 sets.
const bufSize = 35*64 - 40

// MaxFrame is the longest frame in bytes, without frame check sequence, that the
// forwarder takes. Ports drop and count longer ones.
const MaxFrame = bufSize

// Frame returns the frame. It is valid until the packet is sent or dropped.
func (p *Packet) Frame() []byte { return p.buf[p.off : p.off+p.size] }

// setSize makes the first n bytes of buf the frame.
func (p *Packet) setSize(n int) {
	p.off = 0
	p.size = uint16(min(n, bufSize))
}

// Pool owns the packets of one PMD. Only that PMD's thread may use it.
type Pool struct {
	packets []Packet
	free    []uint32 // a stack: the packet used last is the one still in the cache
}

// NewPool returns a pool of n packets.
func NewPool(n int) *Pool {
	p := &Pool{packets: make([]Packet, n), free: make([]uint32, n)}
	for i := range p.free {
		p.free[i] = uint32(n - 1 - i)
	}
	return p
}

// put takes back packets.
func (p *Pool) put(idx []uint32) {
	n := len(p.free)
	p.free = p.free[:n+len(idx)]
	copy(p.free[n:], idx)
}

// Batch is up to Burst packets of one Pool. Only the pool's owner may use it.
type Batch struct {
	pool *Pool
	n    int
	idx  [Burst]uint32
}

// NewBatch returns an empty batch of packets from pool.
func NewBatch(pool *Pool) *Batch { return &Batch{pool: pool} }

// Len returns the number of packets in the batch.
func (b *Batch) Len() int { return b.n }

// At returns packet i.
func (b *Batch) At(i int) *Packet { return &b.pool.packets[b.idx[i]] }

// Add takes a packet out of the pool and appends it. It returns nil when the
// batch is full or the pool empty.
func (b *Batch) Add() *Packet {
	last := len(b.pool.free) - 1
	if b.n == Burst || last < 0 {
		return nil
	}
	i := b.pool.free[last]
	b.pool.free = b.pool.free[:last]
	b.idx[b.n] = i
	b.n++
	return &b.pool.packets[i]
}

// Release gives all packets back to the pool and empties the batch.
func (b *Batch) Release() {
	b.pool.put(b.idx[:b.n])
	b.n = 0
}

// Defer moves packet i behind all others, which keep their order: a port that
// cannot send it goes on with the rest.
func (b *Batch) Defer(i int) {
	bad := b.idx[i]
	copy(b.idx[i:b.n-1], b.idx[i+1:b.n])
	b.idx[b.n-1] = bad
}
