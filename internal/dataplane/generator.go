package dataplane

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Profile is the order in which a generator's flows follow each other.
type Profile string

// The profiles.
const (
	ProfileBurst   Profile = "burst"   // 32 packets of one flow, then of the next
	ProfileScatter Profile = "scatter" // every packet another flow
	ProfileIdle    Profile = "idle"    // no packets at all
)

// MaxFlows is the largest number of flows: a flow's number is the host part of
// its destination in 10.0.0.0/8.
const MaxFlows = 1 << 24

// MinPacketSize and MinTunnelSize are the smallest frames, in bytes without frame
// check sequence, plain and in a tunnel.
const (
	MinPacketSize = 60
	MinTunnelSize = MinPacketSize + tunnelLen
	MaxPacketSize = 1518
)

// flowSrc and the three below give the fields of generated flow number i.
func flowSrc(i, classes uint32) uint32 {
	return 172<<24 | 16<<16 | i%classes<<14 | i&(1<<14-1)
}

func flowDst(i uint32) uint32   { return 10<<24 | i }
func flowPorts(i uint32) uint32 { return (1024+i&0x3fff)<<16 | (8192 + i&0xfff) }

// tunnelLen is what VXLAN (RFC 7348) puts before a frame.
const (
	tunnelLen  = etherLen + ipv4Len + udpLen + vxlanLen
	tunnelID   = 42
	tunnelPort = 4789
	tunnelSrc  = 192<<24 | 2<<8 | 2 // 192.0.2.2, TEST-NET-1
	tunnelDst  = 192<<24 | 2<<8 | 1
)

// tunnelKey returns the part of a tunnel packet's key that its rule looks at.
func tunnelKey() Key {
	return Key{tunnelDst, tunnelPort<<32 | protoUDP<<8, etherIPv4 << 48}
}

// template is the headers of generated frames, all of one size.
type template struct {
	header  []byte
	inner   int    // where the inner frame begins: 0, or tunnelLen
	size    int    // of the whole frame
	sum     uint32 // of the inner IPv4 header without addresses
	classes uint32
}

// newTemplate returns the headers of UDP frames of size bytes for flows of the
// given number of classes.
func newTemplate(size, classes int, tunnel bool) *template {
	t := &template{size: size, classes: uint32(classes)}
	if tunnel {
		t.inner = tunnelLen
		t.header = appendUDP(t.header, size, tunnelSrc, tunnelDst, 49152<<16|tunnelPort)
		t.header = append(t.header, 8, 0, 0, 0) // flags: the id is valid
		t.header = binary.BigEndian.AppendUint32(t.header, tunnelID<<8)
	}
	t.header = appendUDP(t.header, size-t.inner, 0, 0, 0)
	ip := t.header[t.inner+etherLen:]
	t.sum = uint32(^binary.BigEndian.Uint16(ip[10:]))
	return t
}

// address gives the frames, and those inside them, locally administered addresses that
// end in the given numbers.
func (t *template) address(src, dst byte) {
	for _, at := range []int{0, t.inner} {
		t.header[at+5], t.header[at+11] = dst, src
	}
}

// appendUDP appends Ethernet, IPv4 and UDP headers of a frame of size bytes. The
// addresses are locally administered; the UDP checksum is left out (RFC 768).
func appendUDP(b []byte, size int, src, dst, ports uint32) []byte {
	b = append(b, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1)
	b = binary.BigEndian.AppendUint16(b, etherIPv4)
	at := len(b)
	b = append(b, 0x45, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(size-etherLen))
	b = append(b, 0, 0, 0, 0, 64, protoUDP, 0, 0)
	b = binary.BigEndian.AppendUint32(b, src)
	b = binary.BigEndian.AppendUint32(b, dst)
	var sum uint32
	for i := at; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[at+10:], ^fold(sum))
	b = binary.BigEndian.AppendUint32(b, ports)
	b = binary.BigEndian.AppendUint16(b, uint16(size-etherLen-ipv4Len))
	return append(b, 0, 0)
}

// fold makes a one's complement sum of 16 bits (RFC 1071).
func fold(sum uint32) uint16 {
	sum = sum>>16 + sum&0xffff
	return uint16(sum>>16 + sum&0xffff)
}

// render makes p a packet of flow number i. What follows the headers is what the
// buffer held before: nobody reads it.
func (t *template) render(p *Packet, i uint32) {
	copy(p.buf[:], t.header)
	src, dst := flowSrc(i, t.classes), flowDst(i)
	ip := p.buf[t.inner+etherLen:][:ipv4Len+4]
	sum := t.sum + src>>16 + src&0xffff + dst>>16 + dst&0xffff
	binary.BigEndian.PutUint16(ip[10:], ^fold(sum))
	binary.BigEndian.PutUint64(ip[12:], uint64(src)<<32|uint64(dst))
	binary.BigEndian.PutUint32(ip[20:], flowPorts(i))
	p.off, p.size = 0, uint16(t.size)
}

// generator decides which flows arrive at one queue and when. It runs inside the
// receive burst of the queue, so that no other thread takes the core from the
// PMD, but it behaves like a network card: packets that were due while the loop
// was away fill the ring, and what finds no room is missed.
type generator struct {
	first, step, flows uint32 // numbers first, first+step, ... below flows
	repeat             uint32 // packets of one flow in a row
	now                uint32 // flow at hand
	left               uint32 // packets of it still to come

	paced   bool
	perTick uint64 // packets a tick as a fraction of 2^64
	start   uint64 // tick
	begun   uint64 // packets due before this one since start
	quiet   bool
}

// newGenerator returns the generator of queue q of queues. A rate of 0 is as fast
// as the loop takes the packets, else packets a second at hz ticks a second.
func newGenerator(profile Profile, q, queues, flows int, rate, hz float64) (*generator, error) {
	g := &generator{first: uint32(q), step: uint32(queues), flows: uint32(flows), repeat: 1}
	if profile == ProfileBurst {
		g.repeat = Burst
	}
	g.now, g.left = g.first, g.repeat
	g.quiet = profile == ProfileIdle || q >= flows
	if rate >= hz {
		return nil, fmt.Errorf("rate %.0f is faster than the clock's %.0f ticks a second: choose a lower one or 0 for unlimited", rate, hz)
	}
	g.pace(rate, hz)
	return g, nil
}

// pace lets packets arrive at a rate below hz from now on.
func (g *generator) pace(rate, hz float64) {
	g.paced = rate > 0
	g.perTick = uint64(rate / hz * (1 << 63) * 2)
	g.start, g.begun = 0, 0
}

// due returns how many packets arrived since it was called before.
func (g *generator) due(now uint64) uint64 {
	if g.start == 0 {
		g.start = now
	}
	if now < g.start { // a clock of another core that is behind
		return 0
	}
	all, _ := bits.Mul64(now-g.start, g.perTick)
	if all < g.begun {
		return 0
	}
	n := all - g.begun
	g.begun = all
	return n
}

// next returns the flow number of the next packet.
func (g *generator) next() uint32 {
	i := g.now
	if g.left--; g.left == 0 {
		g.left = g.repeat
		if g.now += g.step; g.now >= g.flows {
			g.now = g.first
		}
	}
	return i
}

// skip leaves out n packets.
func (g *generator) skip(n uint64) {
	used := uint64(g.repeat - g.left) // packets of the flow at hand that came
	all := used + n
	g.left = g.repeat - uint32(all%uint64(g.repeat))
	count := uint64((g.flows - g.first + g.step - 1) / g.step)
	pos := (uint64((g.now-g.first)/g.step) + all/uint64(g.repeat)) % count
	g.now = g.first + uint32(pos)*g.step
}

// fill puts into r what has arrived and returns how many packets found no room.
func (g *generator) fill(r *ring, now func() uint64) (missed uint64) {
	if g.quiet {
		return 0
	}
	room := r.room()
	if !g.paced {
		if have := r.len(); have < Burst {
			r.push(min(Burst-have, room), g.next)
		}
		return 0
	}
	due := g.due(now())
	n := min(due, uint64(room))
	if n > 0 {
		r.push(int(n), g.next)
	}
	if missed = due - n; missed > 0 {
		g.skip(missed)
	}
	return missed
}
