package dataplane

import (
	"testing"

	"pgregory.net/rapid"
)

// TestMegaflowsDecideAsTheSlowPath: a packet that agrees with another one in all
// bits that its megaflow pins gets the same decision from the slow path.
func TestMegaflowsDecideAsTheSlowPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			Subtables:   rapid.IntRange(1, MaxSubtables).Draw(t, "subtables"),
			Recirculate: rapid.Bool().Draw(t, "recirculate"),
			Tunnel:      rapid.Bool().Draw(t, "tunnel"),
		}
		s := newSlowPath(&cfg, [][]uint16{{1, 2, 3}, {0}, nil})
		draw := func(name string) Key {
			i := rapid.Uint32Range(0, 1000).Draw(t, name)
			k := Key{
				uint64(flowSrc(i, uint32(cfg.Subtables)))<<32 | uint64(flowDst(i)),
				uint64(flowPorts(i))<<32 | protoUDP<<8,
				etherIPv4 << 48,
			}
			if rapid.Bool().Draw(t, "tunnelled") {
				k = tunnelKey()
			}
			// Any bit may be another one.
			for w := range k {
				if rapid.Bool().Draw(t, "change") {
					k[w] ^= 1 << rapid.IntRange(0, 63).Draw(t, "bit")
				}
			}
			k[1] &^= keyIn
			return k
		}
		a, b := draw("a"), draw("b")
		in := uint64(rapid.IntRange(0, 2).Draw(t, "in"))
		a[1] |= in << 16
		b[1] |= in << 16
		ida, rule, acta := s.decide(a)
		// b with the pinned bits of a is any packet that a's megaflow catches.
		for w := range b {
			b[w] = a[w]&rule.pin[w] | b[w]&^rule.pin[w]
		}
		idb, _, actb := s.decide(b)
		if ida != idb || acta != actb {
			t.Fatalf("%x decides %d %v, its megaflow catches %x, which decides %d %v", a, ida, acta, b, idb, actb)
		}
	})
}

// TestEveryClassHasASubtable: generated flows use as many masks as are wanted.
func TestEveryClassHasASubtable(t *testing.T) {
	for _, n := range []int{1, 3, 20, MaxSubtables} {
		cfg := Config{Subtables: n}
		s := newSlowPath(&cfg, [][]uint16{{0}})
		pins := make(map[Key]bool)
		frames := newTemplate(MinPacketSize, n, false)
		var p Packet
		for i := range uint32(1000) {
			frames.render(&p, i)
			p.extract(0, 0, 0)
			id, rule, act := s.decide(p.key)
			if id != i%uint32(n) || act.kind != actOutput {
				t.Fatalf("%d subtables: flow %d gets rule %d and action %v", n, i, id, act)
			}
			pins[rule.pin] = true
		}
		if len(pins) != n {
			t.Errorf("%d masks, want %d", len(pins), n)
		}
	}
}
