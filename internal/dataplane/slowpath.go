package dataplane

// action is what happens to the packets of a flow.
type action struct {
	kind actionKind
	port uint16 // for actOutput and actNormal: index of the port
}

type actionKind uint8

const (
	actDrop   actionKind = iota
	actOutput            // send to port
	actRecirc            // classify once more
	actPop               // take off the tunnel header and classify what is inside
	actNormal            // send to where the destination's address is, or to port
)

// slowPath has all rules and decides about packets that no megaflow knows, as
// ovs-vswitchd does for the datapath. It is read-only after construction, so all
// PMDs share it.
//
// Generated flow number i has class i % subtables in the top six of the 20 bits
// of its source in 172.16.0.0/12 (see flowKey). There is one rule a class and a
// last one for all other traffic; with a tunnel, a first one for its packets. The
// megaflow of a packet pins every bit that the rules before and its own looked at,
// so that no two megaflows overlap, and some bits more, so that every rule has a
// mask of its own.
type slowPath struct {
	rules   []rule
	outputs [][]uint16 // by in port: where its packets may go, one chosen by destination
	passes  uint64     // the pass of recirculation from which on packets are sent
	output  actionKind // of packets that are sent
}

// rule is one row of the slow path's table. Its place is the id of its subtable.
type rule struct {
	mask, match Key // the rule is for packets with key & mask == match
	pin         Key // the mask of its megaflows
	pop         bool
}

// Fields of a key or mask. Those of different words may have equal bits.
const (
	keySrcShift = 32
	keyDst      = 0xffffffff   // word 0
	keyDstPort  = 0xffff << 32 // word 1
	keySrcPort  = 0xffff << 48 // word 1
	keyIn       = 0xffff << 16 // word 1
	keyProto    = 0xff << 8    // word 1
	keyRecirc   = 0xff         // word 1
	keyEther    = 0xffff << 48 // word 2
	keyTunnel   = 0xffffff     // word 2
)

// srcPrefix returns the mask of the first n bits of the source.
func srcPrefix(n int) uint64 { return (uint64(1)<<32 - uint64(1)<<(32-n)) << keySrcShift }

// MaxSubtables is the largest number of subtables: the class rules differ in how
// many bits of the source they pin, 18 to 32, and in which of the two ports.
const MaxSubtables = 15 * 4

// classPrefix is the number of source bits that tell the class.
const classPrefix = 18

// newSlowPath returns the rules for c with the given outputs by in port.
func newSlowPath(c *Config, outputs [][]uint16) *slowPath {
	s := &slowPath{outputs: outputs, output: actOutput}
	if c.Normal {
		s.output = actNormal
	}
	looked := Key{srcPrefix(classPrefix), keyIn | keyProto | keyRecirc, keyEther}
	if c.Tunnel {
		match := tunnelKey()
		mask := Key{keyDst, keyDstPort | keyProto | keyRecirc, keyEther | keyTunnel}
		s.rules = append(s.rules, rule{mask: mask, match: match, pin: mask.or(Key{0, keyIn}), pop: true})
		looked = looked.or(mask)
	}
	for class := range c.Subtables {
		pin := looked.or(Key{keyDst | srcPrefix(classPrefix+class%15)})
		if class/15&1 != 0 {
			pin[1] |= keyDstPort
		}
		if class/15&2 != 0 {
			pin[1] |= keySrcPort
		}
		s.rules = append(s.rules, rule{
			mask:  Key{srcPrefix(classPrefix), 0, keyEther},
			match: Key{uint64(flowSrc(uint32(class), uint32(c.Subtables))) << keySrcShift & srcPrefix(classPrefix), 0, etherIPv4 << 48},
			pin:   pin,
		})
	}
	s.rules = append(s.rules, rule{pin: looked.or(Key{keyDst})})
	if c.Recirculate {
		s.passes = 1
		if c.Tunnel {
			s.passes = 2
		}
	}
	return s
}

// decide returns the first rule for key, its place, and the action.
func (s *slowPath) decide(key Key) (id uint32, r *rule, act action) {
	for i := range s.rules {
		r = &s.rules[i]
		if key.and(r.mask) == r.match {
			id = uint32(i)
			break
		}
	}
	outs := s.outputs[key[1]&keyIn>>16]
	switch {
	case r.pop:
		act.kind = actPop
	case key[1]&keyRecirc < s.passes:
		act.kind = actRecirc
	case len(outs) > 0:
		act = action{s.output, outs[uint32(key[0])%uint32(len(outs))]}
	}
	return id, r, act
}
