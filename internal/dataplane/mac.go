package dataplane

import "sync/atomic"

// macTable remembers at which port a MAC address was seen last, as a learning bridge
// does. All PMDs share it: one learns what another looks for. An address has one place,
// which it takes from another with the same hash, so a packet reads two words and
// writes one only where an address moved.
type macTable struct {
	entries [macEntries]atomic.Uint64 // address << 16 | port + 1; 0 = empty
}

const macEntries = 4096

// macHash is 2^64 divided by the golden ratio.
const macHash = 0x9e3779b97f4a7c15

func (t *macTable) entry(mac uint64) *atomic.Uint64 {
	return &t.entries[mac*macHash>>(64-12)%macEntries]
}

// forward learns where the frame's source is and returns the port of its destination.
// It reports false where that is not known or is the port it came from.
func (t *macTable) forward(frame []byte, in uint16) (port uint16, ok bool) {
	if len(frame) < etherLen {
		return 0, false
	}
	dst, src := macOf(frame), macOf(frame[6:])
	const group = 1 << 40
	if src&group == 0 {
		seen := src<<16 | uint64(in+1)
		if e := t.entry(src); e.Load() != seen {
			e.Store(seen)
		}
	}
	if dst&group != 0 {
		return 0, false
	}
	e := t.entry(dst).Load()
	if e>>16 != dst || e&0xffff == 0 || uint16(e)-1 == in {
		return 0, false
	}
	return uint16(e) - 1, true
}

// macOf returns the address in the first six bytes of b.
func macOf(b []byte) uint64 {
	_ = b[5]
	return uint64(b[0])<<40 | uint64(b[1])<<32 | uint64(b[2])<<24 | uint64(b[3])<<16 | uint64(b[4])<<8 | uint64(b[5])
}
