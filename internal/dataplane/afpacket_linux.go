package dataplane

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/perf/tsc"
)

// The receive ring of a queue: 64 blocks of 64 KiB, some 25,000 of the smallest
// frames. The kernel hands a block over when it is full, or after retireMillis
// with whatever is in it.
const (
	blockSize    = 1 << 16
	blockCount   = 64
	retireMillis = 1
)

// afPacket is a network interface, received from by TPACKET_V3 rings (packet(7),
// and Documentation/networking/packet_mmap.rst of Linux) and sent to by sendmmsg.
// Several queues are a fanout group by flow hash.
type afPacket struct {
	name string
	rx   []afRx
	tx   []afTx
}

// afRx is a receive queue.
type afRx struct {
	fd      int
	ring    []byte
	block   int    // being read
	left    uint32 // packets of it not read yet
	offset  uint32 // of the next of them in the block
	missed  uint64
	drops   uint64 // as PACKET_STATISTICS, which starts anew at each reading, has told
	drained uint64 // tick from which on no block can be handed over; 0 = not quiet
	_       [64]byte
}

// afTx is a transmit queue.
type afTx struct {
	fd  int
	msg [Burst]mmsghdr
	iov [Burst]unix.Iovec
}

// mmsghdr is struct mmsghdr of sendmmsg(2).
type mmsghdr struct {
	unix.Msghdr
	n uint32
	_ [4]byte
}

// openAFPacket opens an interface with the given numbers of queues.
func openAFPacket(name string, rx, tx int) (*afPacket, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("port %s%s: there is no such interface: 'ip link' lists them", afpacketPrefix, name)
	}
	if ifi.Flags&net.FlagUp == 0 {
		return nil, fmt.Errorf("port %s%s: the interface is down: use 'ip link set %s up'", afpacketPrefix, name, name)
	}
	p := &afPacket{name: name, rx: make([]afRx, rx), tx: make([]afTx, tx)}
	for i := range p.rx {
		p.rx[i].fd = -1
	}
	for i := range p.tx {
		p.tx[i].fd = -1
	}
	if err := p.open(ifi.Index); err != nil {
		_ = p.Close()
		if errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("port %s%s: no privilege for packet sockets: run as root or with CAP_NET_RAW", afpacketPrefix, name)
		}
		return nil, fmt.Errorf("port %s%s: %w", afpacketPrefix, name, err)
	}
	return p, nil
}

func (p *afPacket) open(index int) error {
	for i := range p.rx {
		if err := p.rx[i].open(index); err != nil {
			return fmt.Errorf("receive queue %d: %w", i, err)
		}
	}
	for i := range p.rx {
		if err := p.rx[i].bind(index, len(p.rx) > 1); err != nil {
			return fmt.Errorf("receive queue %d: %w", i, err)
		}
	}
	for i := range p.rx {
		if err := unix.SetsockoptInt(p.rx[i].fd, unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0); err != nil {
			return call("setsockopt SO_DETACH_FILTER", err)
		}
	}
	for i := range p.tx {
		if err := p.tx[i].open(index); err != nil {
			return fmt.Errorf("transmit queue %d: %w", i, err)
		}
	}
	return nil
}

// htons returns a number in network byte order.
func htons(n uint16) uint16 {
	var b [2]byte
	b[0], b[1] = byte(n>>8), byte(n)
	return *(*uint16)(unsafe.Pointer(&b))
}

// call names the system call in an error.
func call(name string, err error) error {
	if err != nil {
		return os.NewSyscallError(name, err)
	}
	return nil
}

// open makes the socket and its ring. It receives nothing yet.
func (r *afRx) open(index int) (err error) {
	r.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return call("socket", err)
	}
	if err := unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return call("setsockopt PACKET_VERSION", err)
	}
	// What we and others send on the interface is not received.
	if err := unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return call("setsockopt PACKET_IGNORE_OUTGOING", err)
	}
	const frame = 1 << 11 // only has to divide the block
	req := unix.TpacketReq3{
		Block_size:     blockSize,
		Block_nr:       blockCount,
		Frame_size:     frame,
		Frame_nr:       blockSize / frame * blockCount,
		Retire_blk_tov: retireMillis,
	}
	if err := unix.SetsockoptTpacketReq3(r.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req); err != nil {
		return call("setsockopt PACKET_RX_RING", err)
	}
	mreq := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC}
	if err := unix.SetsockoptPacketMreq(r.fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &mreq); err != nil {
		return call("setsockopt PACKET_ADD_MEMBERSHIP", err)
	}
	r.ring, err = unix.Mmap(r.fd, 0, blockSize*blockCount, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	return call("mmap", err)
}

// bind binds the socket to the interface. A socket can join a fanout group only
// after that, and until then would get every packet that others of the group get
// too: so it is shut before and opened when all have joined.
func (r *afRx) bind(index int, fanout bool) error {
	if err := r.shut(); err != nil {
		return err
	}
	addr := unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: index}
	if err := unix.Bind(r.fd, &addr); err != nil {
		return call("bind", err)
	}
	if !fanout {
		return nil
	}
	// Groups are numbered per network namespace; process and interface keep
	// ours apart from others'.
	group := (os.Getpid()*31 + index) & 0xffff
	// The group has a hook of its own, for which PACKET_IGNORE_OUTGOING of its
	// sockets does not count.
	const kind = unix.PACKET_FANOUT_HASH | unix.PACKET_FANOUT_FLAG_IGNORE_OUTGOING
	return call("setsockopt PACKET_FANOUT", unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_FANOUT, kind<<16|group))
}

// shut puts a filter before the ring that lets no packet through.
func (r *afRx) shut() error {
	none := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K}}
	return call("setsockopt SO_ATTACH_FILTER", unix.SetsockoptSockFprog(r.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &none[0]}))
}

// open makes the socket, which receives nothing.
func (t *afTx) open(index int) (err error) {
	t.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return call("socket", err)
	}
	for i := range t.msg {
		t.msg[i].Iov = &t.iov[i]
		t.msg[i].SetIovlen(1)
	}
	return call("bind", unix.Bind(t.fd, &unix.SockaddrLinklayer{Ifindex: index}))
}

func (p *afPacket) Name() string  { return p.name }
func (p *afPacket) RxQueues() int { return len(p.rx) }
func (p *afPacket) RxSize() int   { return 0 }

// header returns the header of block i.
func (r *afRx) header(i int) *unix.TpacketHdrV1 {
	const offset = 8 // of the union in struct tpacket_block_desc
	return (*unix.TpacketHdrV1)(unsafe.Pointer(&r.ring[i*blockSize+offset]))
}

// handedOver reports whether block i is ours.
func (r *afRx) handedOver(i int) bool {
	return atomic.LoadUint32(&r.header(i).Block_status)&unix.TP_STATUS_USER != 0
}

func (p *afPacket) RxBurst(q int, b *Batch) (fill int) {
	r := &p.rx[q]
	if r.left == 0 && !r.next() {
		return 0
	}
	fill = r.fill()
	for b.n < Burst && (r.left != 0 || r.next()) {
		h := (*unix.Tpacket3Hdr)(unsafe.Pointer(&r.ring[r.block*blockSize+int(r.offset)]))
		if !r.take(h, b) {
			r.missed++
		}
		r.offset += h.Next_offset
		if r.left--; r.left == 0 {
			atomic.StoreUint32(&r.header(r.block).Block_status, unix.TP_STATUS_KERNEL)
			r.block = (r.block + 1) % blockCount
		}
	}
	return fill
}

// next begins the next block, if there is one with packets.
func (r *afRx) next() bool {
	for r.handedOver(r.block) {
		h := r.header(r.block)
		if h.Num_pkts != 0 {
			r.left, r.offset = h.Num_pkts, h.Offset_to_first_pkt
			return true
		}
		atomic.StoreUint32(&h.Block_status, unix.TP_STATUS_KERNEL)
		r.block = (r.block + 1) % blockCount
	}
	return false
}

// fill returns how many packets have been handed over.
func (r *afRx) fill() int {
	n := int(r.left)
	for i := 1; i < blockCount; i++ {
		k := (r.block + i) % blockCount
		if !r.handedOver(k) {
			break
		}
		n += int(r.header(k).Num_pkts)
	}
	return n
}

// take copies a frame into a packet, with the VLAN tag that the kernel took out.
func (r *afRx) take(h *unix.Tpacket3Hdr, b *Batch) bool {
	n := int(h.Snaplen)
	tagged := h.Status&unix.TP_STATUS_VLAN_VALID != 0
	room := bufSize
	if tagged {
		room -= vlanLen
	}
	if h.Snaplen != h.Len || n > room || n < etherLen {
		return false
	}
	p := b.Add()
	if p == nil {
		return false
	}
	frame := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(h), int(h.Mac))), n)
	if !tagged {
		copy(p.buf[:], frame)
	} else {
		const addresses = 12
		tpid := uint16(etherVLAN)
		if h.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
			tpid = h.Hv1.Vlan_tpid
		}
		copy(p.buf[:], frame[:addresses])
		p.buf[12], p.buf[13] = byte(tpid>>8), byte(tpid)
		p.buf[14], p.buf[15] = byte(h.Hv1.Vlan_tci>>8), byte(h.Hv1.Vlan_tci)
		n = addresses + vlanLen + copy(p.buf[addresses+vlanLen:], frame[addresses:])
	}
	p.setSize(n)
	return true
}

const vlanLen = 4

func (p *afPacket) TxBurst(q int, b *Batch) (sent int) {
	t := &p.tx[q]
	last := b.n
	for sent < last {
		for i := sent; i < last; i++ {
			f := b.At(i).Frame()
			t.iov[i].Base = unsafe.SliceData(f)
			t.iov[i].SetLen(len(f))
		}
		// Raw: the call takes as long as the frames take to be sent, and the
		// runtime is not to hand on what the thread holds.
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(t.fd), uintptr(unsafe.Pointer(&t.msg[sent])), uintptr(last-sent), unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == 0:
			sent += int(n)
		case errno == unix.EINTR:
		case errno == unix.EMSGSIZE || errno == unix.EINVAL:
			// This frame does not fit the interface. The others may.
			b.Defer(sent)
			last--
		default:
			return sent
		}
	}
	return sent
}

func (p *afPacket) Missed(q int) uint64 {
	r := &p.rx[q]
	if r.fd >= 0 {
		var s unix.TpacketStatsV3
		n := uint32(unsafe.Sizeof(s))
		if _, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(r.fd), unix.SOL_PACKET, unix.PACKET_STATISTICS, uintptr(unsafe.Pointer(&s)), uintptr(unsafe.Pointer(&n)), 0); errno == 0 {
			r.drops += uint64(s.Drops)
		}
	}
	return r.missed + r.drops
}

// Quiesce shuts the socket. Packets that were in the ring by then are handed over
// within the time after which a block is.
func (p *afPacket) Quiesce(q int) {
	r := &p.rx[q]
	_ = r.shut() // it worked before
	r.drained = tsc.Now() + tsc.System().Ticks(20*retireMillis*time.Millisecond)
}

func (p *afPacket) Drained(q int) bool {
	r := &p.rx[q]
	return r.left == 0 && tsc.Now() >= r.drained && !r.handedOver(r.block)
}

// Close closes the sockets. What Missed returns stays.
func (p *afPacket) Close() error {
	var errs []error
	for i := range p.rx {
		r := &p.rx[i]
		if r.ring != nil {
			errs = append(errs, call("munmap", unix.Munmap(r.ring)))
			r.ring = nil
		}
		if r.fd >= 0 {
			errs = append(errs, call("close", unix.Close(r.fd)))
			r.fd = -1
		}
	}
	for i := range p.tx {
		if t := &p.tx[i]; t.fd >= 0 {
			errs = append(errs, call("close", unix.Close(t.fd)))
			t.fd = -1
		}
	}
	return errors.Join(errs...)
}
