package dataplane

import (
	"encoding/binary"
	"testing"
)

// onesSum adds up 16-bit words, as every IPv4 header must to 0xffff.
func onesSum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// TestGeneratedFrames renders flows and wants their fields in the keys, and right
// lengths and checksums.
func TestGeneratedFrames(t *testing.T) {
	const in, classes = 3, 20
	for _, size := range []int{MinPacketSize, MinTunnelSize, MaxPacketSize} {
		for _, tunnel := range []bool{false, true} {
			if tunnel && size < MinTunnelSize {
				continue
			}
			frames := newTemplate(size, classes, tunnel)
			p := new(Packet)
			seen := make(map[Key]uint32)
			for i := uint32(0); i < MaxFlows; i += 9973 {
				frames.render(p, i)
				if len(p.Frame()) != size {
					t.Fatalf("flow %d: %d bytes, want %d", i, len(p.Frame()), size)
				}
				p.in = in
				p.extract(in, 0, 0)
				meta, tunnelBits := uint64(in<<16), uint64(0)
				if tunnel {
					checkHeader(t, p.Frame())
					if got := p.key.and(tunnelKey()); got != tunnelKey() {
						t.Fatalf("flow %d: outer key %x, want %x", i, p.key, tunnelKey())
					}
					if !p.pop() {
						t.Fatalf("flow %d: no frame inside", i)
					}
					meta, tunnelBits = meta|1, tunnelID
				}
				checkHeader(t, p.Frame())
				want := Key{
					uint64(flowSrc(i, classes))<<32 | uint64(flowDst(i)),
					uint64(flowPorts(i))<<32 | protoUDP<<8 | meta,
					etherIPv4<<48 | tunnelBits,
				}
				if p.key != want {
					t.Fatalf("flow %d: key %x, want %x", i, p.key, want)
				}
				if j, ok := seen[p.key]; ok {
					t.Fatalf("flows %d and %d have the same key", i, j)
				}
				seen[p.key] = i
			}
		}
	}
}

func checkHeader(t *testing.T, f []byte) {
	t.Helper()
	ip := f[etherLen:]
	if sum := onesSum(ip[:ipv4Len]); sum != 0xffff {
		t.Fatalf("IPv4 header sums up to %#x", sum)
	}
	if n := int(binary.BigEndian.Uint16(ip[2:])); n != len(ip) {
		t.Fatalf("IPv4 length %d of %d bytes", n, len(ip))
	}
	if n := int(binary.BigEndian.Uint16(ip[ipv4Len+4:])); n != len(ip)-ipv4Len {
		t.Fatalf("UDP length %d of %d bytes", n, len(ip)-ipv4Len)
	}
}

// frameOf returns a frame with the given bytes after 12 of addresses.
func frameOf(parts ...string) []byte {
	f := make([]byte, 12)
	for _, p := range parts {
		f = append(f, p...)
	}
	return f
}

const (
	ipv4Plain    = "\x45\x00\x00\x20\x00\x00\x00\x00\x40\x06\x00\x00\x0a\x00\x00\x01\x0a\x00\x00\x02"
	ipv4Options  = "\x46\x00\x00\x24\x00\x00\x00\x00\x40\x06\x00\x00\x0a\x00\x00\x01\x0a\x00\x00\x02\x01\x01\x01\x01"
	ipv4Fragment = "\x45\x00\x00\x20\x00\x00\x00\x05\x40\x06\x00\x00\x0a\x00\x00\x01\x0a\x00\x00\x02"
	ipv4ICMP     = "\x45\x00\x00\x20\x00\x00\x00\x00\x40\x01\x00\x00\x0a\x00\x00\x01\x0a\x00\x00\x02"
	tcpPorts     = "\x00\x50\x04\x00"
)

func TestExtract(t *testing.T) {
	const (
		addresses = 0x0a000001_0a000002
		ports     = 0x0050_0400 << 32
	)
	for name, c := range map[string]struct {
		frame []byte
		want  Key
	}{
		"empty":        {nil, Key{}},
		"no header":    {make([]byte, 13), Key{}},
		"plain":        {frameOf("\x08\x00", ipv4Plain, tcpPorts), Key{addresses, ports | 6<<8, 0x0800 << 48}},
		"no ports":     {frameOf("\x08\x00", ipv4Plain), Key{addresses, 6 << 8, 0x0800 << 48}},
		"options":      {frameOf("\x08\x00", ipv4Options, tcpPorts), Key{addresses, ports | 6<<8, 0x0800 << 48}},
		"cut options":  {frameOf("\x08\x00", ipv4Options[:21]), Key{0, 0, 0x0800 << 48}},
		"fragment":     {frameOf("\x08\x00", ipv4Fragment, tcpPorts), Key{addresses, 6 << 8, 0x0800 << 48}},
		"icmp":         {frameOf("\x08\x00", ipv4ICMP, tcpPorts), Key{addresses, 1 << 8, 0x0800 << 48}},
		"vlan":         {frameOf("\x81\x00\x00\x05\x08\x00", ipv4Plain, tcpPorts), Key{addresses, ports | 6<<8, 0x0800 << 48}},
		"cut vlan":     {frameOf("\x81\x00\x00"), Key{0, 0, 0x8100 << 48}},
		"cut ipv4":     {frameOf("\x08\x00", ipv4Plain[:19]), Key{0, 0, 0x0800 << 48}},
		"ipv6":         {frameOf("\x86\xdd", ipv4Plain, tcpPorts), Key{0, 0, 0x86dd << 48}},
		"not really 4": {frameOf("\x08\x00", "\x65", ipv4Plain[1:], tcpPorts), Key{0, 0, 0x0800 << 48}},
		"short header": {frameOf("\x08\x00", "\x44", ipv4Plain[1:], tcpPorts), Key{0, 0, 0x0800 << 48}},
	} {
		p := new(Packet)
		p.setSize(copy(p.buf[:], c.frame))
		p.extract(0, 0, 0)
		if p.key != c.want {
			t.Errorf("%s: key %x, want %x", name, p.key, c.want)
		}
	}
}

// FuzzExtract wants no panic, and that only what belongs to a frame is looked at.
func FuzzExtract(f *testing.F) {
	f.Add(frameOf("\x08\x00", ipv4Plain, tcpPorts))
	f.Add(frameOf("\x08\x00", ipv4Options, tcpPorts))
	f.Add(frameOf("\x81\x00\x00\x05\x08\x00", ipv4Plain, tcpPorts))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if len(frame) > bufSize {
			return
		}
		a, b := new(Packet), new(Packet)
		for i := range b.buf {
			b.buf[i] = 0xff
		}
		a.setSize(copy(a.buf[:], frame))
		b.setSize(copy(b.buf[:], frame))
		a.extract(1, 2, 3)
		b.extract(1, 2, 3)
		if a.key != b.key || a.hash != b.hash {
			t.Fatalf("keys %x and %x of the same frame", a.key, b.key)
		}
		if a.key[1]&(keyIn|keyRecirc) != 1<<16|2 || a.key[2]&keyTunnel != 3 {
			t.Fatalf("key %x lost what is not in the frame", a.key)
		}
		if ok := a.pop(); ok != b.pop() || a.key != b.key {
			t.Fatalf("keys %x and %x inside of the same frame", a.key, b.key)
		}
	})
}
