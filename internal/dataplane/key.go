package dataplane

import (
	"encoding/binary"
	"math/bits"
)

// Key is what flows are told apart by, or with other meaning of the bits a mask
// of it. The words hold, from the high bit down:
//
//	0: IPv4 source 32, IPv4 destination 32
//	1: source port 16, destination port 16, in port 16, protocol 8, recirculation 8
//	2: Ethernet type 16, zero 24, tunnel id 24
//
// Fields that a frame does not have are zero. Frames that are not IPv4 are told
// apart by their Ethernet type only, fragments by their addresses.
type Key [3]uint64

// and returns k with only the bits of mask.
func (k Key) and(mask Key) Key {
	return Key{k[0] & mask[0], k[1] & mask[1], k[2] & mask[2]}
}

// or returns the union of two masks.
func (k Key) or(mask Key) Key {
	return Key{k[0] | mask[0], k[1] | mask[1], k[2] | mask[2]}
}

// Odd constants with about as many ones as zeros: the first digits of the
// fractional part of the square roots of 2, 3 and 5.
const (
	mul0 = 0x6a09e667f3bcc909
	mul1 = 0xbb67ae8584caa73b
	mul2 = 0x3c6ef372fe94f82b
)

// hash mixes the key and a seed by folded 128-bit products.
func (k *Key) hash(seed uint64) uint64 {
	hi, lo := bits.Mul64(k[0]^mul0, k[1]^seed^mul1)
	hi, lo = bits.Mul64(hi^lo, k[2]^mul2)
	return hi ^ lo
}

const (
	etherIPv4 = 0x0800
	etherVLAN = 0x8100
	protoTCP  = 6
	protoUDP  = 17
	protoSCTP = 132

	etherLen = 14
	vxlanLen = 8
	udpLen   = 8
	ipv4Len  = 20
)

// portsOf says which protocols have ports in their first four bytes.
func portsOf(proto byte) bool {
	return proto == protoUDP || proto == protoTCP || proto == protoSCTP
}

// extract fills in key and hash of a packet that came in at port in, in the
// given pass of recirculation and from the given tunnel. It takes any frame.
func (p *Packet) extract(in uint16, recirc uint8, tunnel uint32) {
	f := p.Frame()
	meta := uint64(in)<<16 | uint64(recirc)
	k := Key{0, meta, uint64(tunnel & 0xffffff)}
	if len(f) >= etherLen+ipv4Len && binary.BigEndian.Uint16(f[12:]) == etherIPv4 && f[14] == 0x45 {
		k.ipv4(f[etherLen:])
	} else {
		k.other(f)
	}
	p.key = k
	p.hash = uint32(k.hash(0))
}

// ipv4 adds the fields of an IPv4 packet without options, at least 20 bytes.
func (k *Key) ipv4(ip []byte) {
	k[2] |= etherIPv4 << 48
	k[0] = binary.BigEndian.Uint64(ip[12:20])
	proto := ip[9]
	k[1] |= uint64(proto) << 8
	const moreOrOffset = 0x3fff
	if portsOf(proto) && len(ip) >= ipv4Len+4 && binary.BigEndian.Uint16(ip[6:])&moreOrOffset == 0 {
		k[1] |= uint64(binary.BigEndian.Uint32(ip[20:])) << 32
	}
}

// other adds the fields of what is not plain IPv4: one VLAN tag is skipped, IPv4
// options are too.
func (k *Key) other(f []byte) {
	if len(f) < etherLen {
		return
	}
	ether := binary.BigEndian.Uint16(f[12:])
	rest := f[etherLen:]
	if ether == etherVLAN && len(rest) >= 4 {
		ether = binary.BigEndian.Uint16(rest[2:])
		rest = rest[4:]
	}
	k[2] |= uint64(ether) << 48
	if ether != etherIPv4 || len(rest) < ipv4Len || rest[0]>>4 != 4 {
		return
	}
	header := int(rest[0]&15) * 4
	if header < ipv4Len || len(rest) < header {
		return
	}
	k[0] = binary.BigEndian.Uint64(rest[12:20])
	k[1] |= uint64(rest[9]) << 8
	const moreOrOffset = 0x3fff
	if portsOf(rest[9]) && len(rest) >= header+4 && binary.BigEndian.Uint16(rest[6:])&moreOrOffset == 0 {
		k[1] |= uint64(binary.BigEndian.Uint32(rest[header:])) << 32
	}
}

// recirc and tunnel return the fields of the packet's key that are not in its
// frame.
func (p *Packet) recirc() uint8  { return uint8(p.key[1]) }
func (p *Packet) tunnel() uint32 { return uint32(p.key[2] & keyTunnel) }

// pop takes off the headers of a VXLAN packet, whose key is known, and extracts
// the key of the frame inside. It reports false where there is none, or where a VLAN tag
// or IPv4 options move it.
func (p *Packet) pop() bool {
	f := p.Frame()
	plain := len(f) >= tunnelLen+etherLen && binary.BigEndian.Uint16(f[12:]) == etherIPv4 && f[14] == 0x45
	if !plain {
		return false
	}
	tunnel := binary.BigEndian.Uint32(f[tunnelLen-4:]) >> 8
	p.off += tunnelLen
	p.size -= tunnelLen
	p.extract(p.in, p.recirc()+1, tunnel)
	return true
}
