package dataplane

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/perf/tsc"
)

// The rings of a queue and its memory: a chunk for every place in the receive ring
// and one for every place in the transmit ring, so that no ring is ever full. The
// kernel keeps some bytes in front of a frame, which leaves room for the longest.
const (
	xskRingSize  = 2048
	xskChunkSize = 4096
	xskMemory    = 2 * xskRingSize * xskChunkSize
)

// afXDP is a network interface whose frames a program at its driver, or in the
// kernel's generic receive path, puts into sockets' rings (AF_XDP), past the network
// stack. There is one socket a queue; it sends too. Frames are copied: that is what
// every interface can, and there is one copy into a Packet anyway.
type afXDP struct {
	name    string
	rx      int // sockets that receive, the first ones
	queues  []xsk
	sockets *ebpf.Map // receive queue to socket
	program *ebpf.Program
	hook    link.Link // the program is attached while this is open
	promisc int       // a packet socket that keeps the interface promiscuous
}

// xsk is a socket and its memory. Its receiving and its sending half may be used by
// two threads.
type xsk struct {
	fd     int
	memory []byte // chunks to receive into, then chunks to send from

	fill xskRing[uint64] // chunks that the kernel may receive into
	rx   xskRing[unix.XDPDesc]

	missed  uint64
	told    uint64 // missed packets that the kernel counts
	drained uint64 // tick from which on nothing can arrive; 0 = not quiet

	_ [64]byte // between the threads

	tx   xskRing[unix.XDPDesc]
	done xskRing[uint64] // chunks that were sent
	free []uint64        // chunks to send from
	owed int             // packets reported as sent that the kernel dropped later

	_ [64]byte // between the sockets
}

// openAFXDP opens an interface, with "/native" or "/generic" behind its name to say
// where the program is to run, with the given numbers of queues.
func openAFXDP(spec string, rx, tx int) (*afXDP, error) {
	name, mode, _ := strings.Cut(spec, "/")
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("port %s%s: there is no such interface: 'ip link' lists them", afxdpPrefix, spec)
	}
	if ifi.Flags&net.FlagUp == 0 {
		return nil, fmt.Errorf("port %s%s: the interface is down: use 'ip link set %s up'", afxdpPrefix, spec, name)
	}
	p := &afXDP{name: name, rx: rx, queues: make([]xsk, max(rx, tx)), promisc: -1}
	for i := range p.queues {
		p.queues[i].fd = -1
	}
	if err := p.open(ifi, mode, tx); err != nil {
		_ = p.Close()
		switch {
		case errors.Is(err, os.ErrPermission):
			err = errors.New("no privilege for AF_XDP sockets: run as root or with CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF")
		case errors.Is(err, unix.EAFNOSUPPORT):
			err = fmt.Errorf("this kernel has no AF_XDP sockets: use %s%s", afpacketPrefix, name)
		}
		return nil, fmt.Errorf("port %s%s: %w", afxdpPrefix, spec, err)
	}
	return p, nil
}

func (p *afXDP) open(ifi *net.Interface, mode string, tx int) (err error) {
	// Others' frames are to be forwarded too. A socket without a protocol receives
	// nothing itself.
	if p.promisc, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return call("socket", err)
	}
	if err := p.checkQueues(tx); err != nil {
		return err
	}
	mreq := unix.PacketMreq{Ifindex: int32(ifi.Index), Type: unix.PACKET_MR_PROMISC}
	if err := unix.SetsockoptPacketMreq(p.promisc, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &mreq); err != nil {
		return call("setsockopt PACKET_ADD_MEMBERSHIP", err)
	}
	for i := range p.queues {
		if err := p.queues[i].open(ifi.Index, i); err != nil {
			return fmt.Errorf("queue %d: %w", i, err)
		}
	}
	return p.attach(ifi, mode)
}

// attach puts the program that hands frames to the sockets on the interface.
func (p *afXDP) attach(ifi *net.Interface, mode string) (err error) {
	if p.sockets, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: uint32(p.rx)}); err != nil {
		return fmt.Errorf("map of sockets: %w", err)
	}
	for i := range p.rx {
		if err := p.sockets.Put(uint32(i), uint32(p.queues[i].fd)); err != nil {
			return fmt.Errorf("map of sockets: %w", err)
		}
	}
	const queueIndex, pass = 16, 2 // rx_queue_index in struct xdp_md, XDP_PASS
	p.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "pmdperf_xsk", Type: ebpf.XDP, License: "Apache-2.0",
		Instructions: asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, queueIndex, asm.Word),
			asm.LoadMapPtr(asm.R1, p.sockets.FD()),
			asm.Mov.Imm(asm.R3, pass), // for queues without a socket
			asm.FnRedirectMap.Call(),
			asm.Return(),
		},
	})
	if err != nil {
		return fmt.Errorf("program: %w", err)
	}
	at := func(flags link.XDPAttachFlags) error {
		p.hook, err = link.AttachXDP(link.XDPOptions{Program: p.program, Interface: ifi.Index, Flags: flags})
		return err
	}
	if mode != "generic" {
		err = at(link.XDPDriverMode)
	}
	if mode == "generic" || mode == "" && errors.Is(err, unix.EOPNOTSUPP) {
		err = at(link.XDPGenericMode)
	}
	switch {
	case errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST):
		return fmt.Errorf("the interface has an XDP program: 'ip link set %s xdp off' removes it", ifi.Name)
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("its driver takes no XDP program: use %s%s/generic", afxdpPrefix, ifi.Name)
	case err != nil:
		return fmt.Errorf("attach the program: %w", err)
	}
	return nil
}

// checkQueues wants every receive queue of the interface to have a socket, as frames
// of the others would pass by unseen, and every PMD to have a queue to send on.
func (p *afXDP) checkQueues(tx int) error {
	rx, all, ok := channels(p.promisc, p.name)
	switch {
	case !ok: // a driver that does not tell has one queue, mostly
		return nil
	case rx != p.rx:
		return fmt.Errorf("it has %d receive queues and %d would be polled: choose %d queues, or use 'ethtool -L'", rx, p.rx, rx)
	case tx > all:
		return fmt.Errorf("it has %d queues and %d PMDs would send on it, each on its own: use fewer cores", all, tx)
	}
	return nil
}

// channels returns how many receive queues, and how many queues of any kind, an
// interface has, and whether its driver tells.
func channels(fd int, name string) (rx, all int, ok bool) {
	const getChannels = 0x3c // ETHTOOL_GCHANNELS
	// struct ethtool_channels: the command, four maxima, four counts.
	c := [9]uint32{getChannels}
	const rxCount, txCount, combined = 5, 6, 8
	req := struct { // struct ifreq
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&c)}
	copy(req.name[:unix.IFNAMSIZ-1], name)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return 0, 0, false
	}
	rx = int(c[rxCount] + c[combined])
	return rx, max(rx, int(c[txCount]+c[combined])), rx > 0
}

// open makes the socket with its memory and rings and binds it to a queue.
func (x *xsk) open(index, queue int) (err error) {
	if x.fd, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return call("socket", err)
	}
	if x.memory, err = unix.Mmap(-1, 0, xskMemory, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE); err != nil {
		return call("mmap", err)
	}
	umem := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&x.memory[0]))), Len: xskMemory, Size: xskChunkSize}
	if err := x.set(unix.XDP_UMEM_REG, unsafe.Pointer(&umem), unsafe.Sizeof(umem)); err != nil {
		return call("setsockopt XDP_UMEM_REG", err)
	}
	for _, option := range []int{unix.XDP_UMEM_FILL_RING, unix.XDP_UMEM_COMPLETION_RING, unix.XDP_RX_RING, unix.XDP_TX_RING} {
		size := uint32(xskRingSize)
		if err := x.set(option, unsafe.Pointer(&size), unsafe.Sizeof(size)); err != nil {
			return fmt.Errorf("size ring %d: %w", option, err)
		}
	}
	var at unix.XDPMmapOffsets
	if err := x.get(unix.XDP_MMAP_OFFSETS, unsafe.Pointer(&at), unsafe.Sizeof(at)); err != nil {
		return call("getsockopt XDP_MMAP_OFFSETS", err)
	}
	if x.fill, err = mapXSKRing[uint64](x.fd, unix.XDP_UMEM_FILL_RING, unix.XDP_UMEM_PGOFF_FILL_RING, &at.Fr, xskRingSize); err != nil {
		return err
	}
	if x.done, err = mapXSKRing[uint64](x.fd, unix.XDP_UMEM_COMPLETION_RING, unix.XDP_UMEM_PGOFF_COMPLETION_RING, &at.Cr, xskRingSize); err != nil {
		return err
	}
	if x.rx, err = mapXSKRing[unix.XDPDesc](x.fd, unix.XDP_RX_RING, unix.XDP_PGOFF_RX_RING, &at.Rx, xskRingSize); err != nil {
		return err
	}
	if x.tx, err = mapXSKRing[unix.XDPDesc](x.fd, unix.XDP_TX_RING, unix.XDP_PGOFF_TX_RING, &at.Tx, xskRingSize); err != nil {
		return err
	}
	for i := range uint64(xskRingSize) {
		x.fill.put(i * xskChunkSize)
		x.free = append(x.free, (xskRingSize+i)*xskChunkSize)
	}
	x.fill.publish()
	return x.bind(index, queue)
}

// bind binds the socket to a queue. The kernel takes a socket that was bound there
// before away with a delay, some 30 ms.
func (x *xsk) bind(index, queue int) (err error) {
	addr := unix.SockaddrXDP{Flags: unix.XDP_COPY, Ifindex: uint32(index), QueueID: uint32(queue)}
	for range 100 {
		if err = unix.Bind(x.fd, &addr); !errors.Is(err, unix.EBUSY) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	switch {
	case errors.Is(err, unix.EBUSY):
		return errors.New("another AF_XDP socket has it")
	case errors.Is(err, unix.EINVAL):
		return errors.New("the interface has no such queue")
	}
	return call("bind", err)
}

func (x *xsk) set(option int, value unsafe.Pointer, size uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(x.fd), unix.SOL_XDP, uintptr(option), uintptr(value), size, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func (x *xsk) get(option int, value unsafe.Pointer, size uintptr) error {
	n := uint32(size)
	_, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(x.fd), unix.SOL_XDP, uintptr(option), uintptr(value), uintptr(unsafe.Pointer(&n)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func (p *afXDP) Name() string  { return p.name }
func (p *afXDP) RxQueues() int { return p.rx }
func (p *afXDP) RxSize() int   { return xskRingSize }

func (p *afXDP) RxBurst(q int, b *Batch) (fill int) {
	x := &p.queues[q]
	fill = x.rx.ready()
	n := min(fill, Burst-b.n)
	if n == 0 {
		return fill
	}
	for range n {
		d := x.rx.get()
		if !take(x.memory[d.Addr:d.Addr+uint64(d.Len)], b) {
			x.missed++
		}
		x.fill.put(d.Addr &^ (xskChunkSize - 1))
	}
	x.rx.release()
	x.fill.publish()
	return fill
}

// take copies a frame into a packet.
func take(frame []byte, b *Batch) bool {
	if len(frame) < etherLen || len(frame) > bufSize {
		return false
	}
	p := b.Add()
	if p == nil {
		return false
	}
	p.setSize(copy(p.buf[:], frame))
	return true
}

// TxBurst hands packets to the kernel, which sends them within the system call. What
// it could not take then counts as sent, stays in the ring and goes first the next time;
// only an interface that fails for good loses it, some 32 packets. Which packets of a
// burst the interface refused isn't told: the last ones are taken for them.
func (p *afXDP) TxBurst(q int, b *Batch) (sent int) {
	x := &p.queues[q]
	if !x.tx.taken() && !x.kick() {
		return 0
	}
	for range x.done.ready() {
		x.free = append(x.free, x.done.get())
	}
	x.done.release()
	n := min(b.n, len(x.free))
	for i := range n {
		at := x.free[len(x.free)-1-i]
		size := copy(x.memory[at:at+xskChunkSize], b.At(i).Frame())
		x.tx.put(unix.XDPDesc{Addr: at, Len: uint32(size)})
	}
	x.free = x.free[:len(x.free)-n]
	x.tx.publish()
	x.kick()
	settled := min(x.owed, n)
	x.owed -= settled
	return n - settled
}

// kick has the kernel send what is in the transmit ring, and reports whether it took
// all. It takes some 32 frames a call. One that the interface refuses counts as taken
// and ends the call with EBUSY: that it was not sent is owed to our counters.
func (x *xsk) kick() bool {
	const patience = 64 // calls; the interface may have to send some first
	for range patience {
		_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(x.fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
		if errno == unix.EBUSY {
			x.owed++
		}
		if x.tx.taken() {
			return true
		}
	}
	return false
}

func (p *afXDP) Missed(q int) uint64 {
	x := &p.queues[q]
	if x.fd >= 0 {
		var s unix.XDPStatistics
		if err := x.get(unix.XDP_STATISTICS, unsafe.Pointer(&s), unsafe.Sizeof(s)); err == nil {
			// An empty fill ring is in Rx_dropped already.
			x.told = s.Rx_dropped + s.Rx_ring_full
		}
	}
	return x.missed + x.told
}

// Quiesce lets the interface's frames go to the network stack. Those on their way to
// the socket arrive within the time of a few softirqs.
func (p *afXDP) Quiesce(q int) {
	_ = p.sockets.Delete(uint32(q)) // it is there
	p.queues[q].drained = tsc.Now() + tsc.System().Ticks(20*time.Millisecond)
}

func (p *afXDP) Drained(q int) bool {
	x := &p.queues[q]
	return tsc.Now() >= x.drained && x.rx.ready() == 0
}

// Close takes the program off the interface and closes the sockets. What Missed
// returns stays.
func (p *afXDP) Close() error {
	var errs []error
	if p.hook != nil {
		errs = append(errs, p.hook.Close())
		p.hook = nil
	}
	if p.program != nil {
		errs = append(errs, p.program.Close())
		p.program = nil
	}
	if p.sockets != nil {
		errs = append(errs, p.sockets.Close())
		p.sockets = nil
	}
	for i := range p.queues {
		errs = append(errs, p.queues[i].close())
	}
	if p.promisc >= 0 {
		errs = append(errs, call("close", unix.Close(p.promisc)))
		p.promisc = -1
	}
	return errors.Join(errs...)
}

// close unmaps the rings first: the kernel keeps the queue taken as long as one is
// mapped.
func (x *xsk) close() error {
	if x.fd < 0 {
		return nil
	}
	if x.tx.mem != nil && !x.tx.taken() {
		x.kick()
	}
	errs := []error{x.fill.unmap(), x.done.unmap(), x.rx.unmap(), x.tx.unmap(), call("close", unix.Close(x.fd))}
	x.fd = -1
	if x.memory != nil {
		errs = append(errs, call("munmap", unix.Munmap(x.memory)))
		x.memory = nil
	}
	return errors.Join(errs...)
}
