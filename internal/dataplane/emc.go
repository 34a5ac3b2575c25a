package dataplane

// emcEntries is the size of the exact-match cache, as EM_FLOW_HASH_ENTRIES in
// Open vSwitch.
const (
	emcEntries = 1 << emcShift
	emcShift   = 13
)

// emc is the exact-match cache: a key may be in one of two places, chosen by two
// slices of its hash. Owned by one PMD.
type emc struct {
	entries [emcEntries]emcEntry
	inverse uint32 // one in so many keys is put in; 0 = none
	random  uint32 // state of a xorshift generator
}

// emcEntry is 32 bytes, two to a cache line.
type emcEntry struct {
	key  Key
	hash uint32
	flow uint32 // 0 = empty
}

func newEMC(inverse uint32) *emc { return &emc{inverse: inverse, random: 0x9e3779b9} }

// lookup returns the flow of key, or 0.
func (c *emc) lookup(key *Key, hash uint32) uint32 {
	e := &c.entries[hash%emcEntries]
	if e.hash == hash && e.key == *key {
		return e.flow
	}
	e = &c.entries[hash>>emcShift%emcEntries]
	if e.hash == hash && e.key == *key {
		return e.flow
	}
	return 0
}

// offer puts key in with the configured probability, so that with many more
// flows than entries the cache is not rewritten by every packet.
func (c *emc) offer(key *Key, hash, flow uint32) {
	if c.inverse == 0 {
		return
	}
	if c.inverse > 1 {
		c.random ^= c.random << 13
		c.random ^= c.random >> 17
		c.random ^= c.random << 5
		if c.random%c.inverse != 0 {
			return
		}
	}
	c.insert(key, hash, flow)
}

// insert puts key in one of its two places: where it is already, else in an
// empty one, else over the entry that has the smaller hash.
func (c *emc) insert(key *Key, hash, flow uint32) {
	a := &c.entries[hash%emcEntries]
	b := &c.entries[hash>>emcShift%emcEntries]
	switch {
	case a.hash == hash && a.key == *key:
	case b.hash == hash && b.key == *key:
		a = b
	case a.flow == 0:
	case b.flow == 0 || b.hash < a.hash:
		a = b
	}
	*a = emcEntry{*key, hash, flow}
}
