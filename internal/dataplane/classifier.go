package dataplane

// classifier is the tuple space search: one subtable a mask, searched in the
// order of their hits, so that the popular ones come first. Owned by one PMD.
type classifier struct {
	table *flowTable
	subs  []subtable // in the order of search
	flows []flow     // index 0 stands for none, 1 to Burst for those of passing
	hits  int        // since the order was last looked at

	// What find knows of its packets.
	hash, tags [Burst]uint64
}

type subtable struct {
	mask Key
	id   uint32
	hits uint64 // since the order was last looked at
}

// rerank is the number of hits after which the subtables are put in order again.
// Open vSwitch does it once a second.
const rerank = 1 << 17

// flow is what a megaflow does with its packets.
type flow struct {
	packets uint64 // costs what flow statistics cost elsewhere
	action  action
}

// newClassifier returns a classifier for limit flows and subtables 0 to
// subtables-1. A subtable is searched from its first flow on.
func newClassifier(subtables, limit int) *classifier {
	return &classifier{
		table: newFlowTable(limit),
		subs:  make([]subtable, 0, subtables),
		flows: make([]flow, 1+Burst, 1+Burst+limit),
	}
}

// seed keeps equal masked keys of different subtables apart.
func (s *subtable) seed() uint64 { return uint64(s.id+1) * mul2 }

// find sets the flow of every packet of todo that has a megaflow. It moves those
// that have none to the front of todo and returns their number, and how many
// subtables were searched for the packets found: as Open vSwitch counts it, a hit
// in the third subtable is three lookups.
func (c *classifier) find(pool *Pool, todo []uint32) (missed int, lookups uint64) {
	for pos := range c.subs {
		s := &c.subs[pos]
		seed := s.seed()
		left := 0
		// Two loops, so that the tags of all packets are fetched at once and not
		// each behind the branches that the one before took.
		for j, i := range todo {
			key := pool.packets[i].key.and(s.mask)
			c.hash[j%Burst] = key.hash(seed)
			c.tags[j%Burst] = c.table.tags[c.hash[j%Burst]&c.table.mask]
		}
		for j, i := range todo {
			p := &pool.packets[i]
			f := uint32(0)
			if hash := c.hash[j%Burst]; maybe(c.tags[j%Burst], hash) {
				key := p.key.and(s.mask)
				f = c.table.lookup(&key, hash, s.id)
			}
			p.flow = f
			todo[left] = i
			if f == 0 {
				left++
			}
		}
		found := len(todo) - left
		s.hits += uint64(found)
		c.hits += found
		lookups += uint64(found * (pos + 1))
		if todo = todo[:left]; left == 0 {
			break
		}
	}
	if c.hits >= rerank {
		c.rank()
	}
	return len(todo), lookups
}

// install adds a megaflow for key in the subtable id, which has the given mask,
// and returns its flow, or 0 when the table is full.
func (c *classifier) install(key, mask Key, id uint32, act action) uint32 {
	masked := key.and(mask)
	s := subtable{mask: mask, id: id}
	f := uint32(len(c.flows))
	if !c.table.insert(&masked, masked.hash(s.seed()), id, f) {
		return 0
	}
	c.flows = append(c.flows, flow{action: act})
	for i := range c.subs {
		if c.subs[i].id == id {
			return f
		}
	}
	c.subs = append(c.subs, s)
	return f
}

// installed returns the number of megaflows.
func (c *classifier) installed() int { return len(c.flows) - 1 - Burst }

// passing returns a flow with the given action that is good until the next batch,
// the nth of this batch.
func (c *classifier) passing(nth int, act action) uint32 {
	f := uint32(1 + nth%Burst)
	c.flows[f].action = act
	return f
}

// rank puts the subtables in the order of their hits since the last time. They
// are few and nearly sorted, so insertion it is.
func (c *classifier) rank() {
	for i := range c.subs {
		s := c.subs[i]
		j := i
		for ; j > 0 && c.subs[j-1].hits < s.hits; j-- {
			c.subs[j] = c.subs[j-1]
		}
		c.subs[j] = s
	}
	for i := range c.subs {
		c.subs[i].hits = 0
	}
	c.hits = 0
}
