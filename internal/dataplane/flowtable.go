package dataplane

import "math/bits"

// flowTable is the hash table behind all subtables: open addressing in groups of
// eight slots, with one word of eight one-byte tags a group. Most lookups of a
// tuple space search miss, and a miss reads one word of tags: a million flows have
// two megabytes of tags, where their keys have 64. It never grows and nothing is
// taken out, so nothing is allocated after construction. Owned by one PMD.
type flowTable struct {
	tags  []uint64 // a tag is 0 where the slot is empty, else has bit 7 set
	slots []flowSlot
	mask  uint64 // number of groups - 1
	room  int    // insertions still allowed
}

type flowSlot struct {
	key      Key
	subtable uint32
	flow     uint32
}

const (
	groupSize = 8
	tagOnes   = 0x0101010101010101
	tagHighs  = 0x8080808080808080
)

// newFlowTable returns a table for limit flows, at most 7/8 full.
func newFlowTable(limit int) *flowTable {
	groups := uint64(1)
	for groups*(groupSize-1) < uint64(limit) {
		groups *= 2
	}
	return &flowTable{
		tags:  make([]uint64, groups),
		slots: make([]flowSlot, groups*groupSize),
		mask:  groups - 1,
		room:  limit,
	}
}

// maybe reports false where a group with these tags shows that a key with this hash
// is nowhere in the table: no tag is equal, and there is an empty slot.
func maybe(tags, hash uint64) bool {
	diff := tags ^ (hash>>57|0x80)*tagOnes
	return (diff-tagOnes)&^diff&tagHighs != 0 || tags&tagHighs == tagHighs
}

// lookup returns the flow of a masked key in a subtable, or 0. The top 7 bits of
// hash are the tag, the low bits the group.
func (t *flowTable) lookup(key *Key, hash uint64, subtable uint32) uint32 {
	want := (hash>>57 | 0x80) * tagOnes
	for g := hash & t.mask; ; g = (g + 1) & t.mask {
		tags := t.tags[g]
		// A zero byte in diff is an equal tag. The borrow of the subtraction may
		// also mark a byte above an equal one: the key tells.
		diff := tags ^ want
		for m := (diff - tagOnes) &^ diff & tagHighs; m != 0; m &= m - 1 {
			s := &t.slots[g*groupSize+uint64(bits.TrailingZeros64(m))/8]
			if s.key == *key && s.subtable == subtable {
				return s.flow
			}
		}
		if tags&tagHighs != tagHighs {
			return 0
		}
	}
}

// insert adds a masked key that is not there yet. It reports whether there was
// room for it.
func (t *flowTable) insert(key *Key, hash uint64, subtable, flow uint32) bool {
	if t.room == 0 {
		return false
	}
	t.room--
	for g := hash & t.mask; ; g = (g + 1) & t.mask {
		free := ^t.tags[g] & tagHighs
		if free == 0 {
			continue
		}
		i := uint64(bits.TrailingZeros64(free)) / 8
		t.tags[g] |= (hash>>57 | 0x80) << (8 * i)
		t.slots[g*groupSize+i] = flowSlot{*key, subtable, flow}
		return true
	}
}
