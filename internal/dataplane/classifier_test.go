package dataplane

import (
	"testing"

	"pgregory.net/rapid"
)

// TestClassifierMatchesModel installs flows and looks packets up, in a small world of
// keys so that they meet, and compares with a map.
func TestClassifierMatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type masked struct {
			key Key
			id  uint32
		}
		masks := []Key{{0xff, 0, 0}, {0xff00, 0xf, 0}, {0xf0f0, 0, 0xff}, {0xff, 0xff, 0xff}}
		limit := rapid.IntRange(1, 200).Draw(t, "limit")
		c := newClassifier(len(masks), limit)
		model := make(map[masked]action)
		word := rapid.Uint64Range(0, 1<<16-1)
		key := rapid.Custom(func(t *rapid.T) Key {
			return Key{word.Draw(t, "0"), word.Draw(t, "1") & 0x3, word.Draw(t, "2") & 1}
		})
		pool := NewPool(Burst)
		t.Repeat(map[string]func(*rapid.T){
			"install": func(t *rapid.T) {
				k := key.Draw(t, "key")
				id := rapid.Uint32Range(0, uint32(len(masks)-1)).Draw(t, "subtable")
				m := masked{k.and(masks[id]), id}
				if _, ok := model[m]; ok {
					return // the pipeline looks before it installs
				}
				act := action{actOutput, uint16(len(model))}
				f := c.install(k, masks[id], id, act)
				if full := len(model) == limit; (f == 0) != full {
					t.Fatalf("installed as flow %d with %d of %d there", f, len(model), limit)
				}
				if f != 0 {
					model[m] = act
				}
			},
			"rank": func(*rapid.T) { c.rank() },
			"find": func(t *rapid.T) {
				n := rapid.IntRange(1, Burst).Draw(t, "packets")
				todo := make([]uint32, n)
				keys := make([]Key, n)
				for i := range todo {
					todo[i] = uint32(i)
					keys[i] = key.Draw(t, "key")
					pool.packets[i].key = keys[i]
				}
				var want uint64
				order := make([]uint32, len(c.subs))
				for i, s := range c.subs {
					order[i] = s.id
				}
				missed, lookups := c.find(pool, todo)
				isMissed := make(map[uint32]bool)
				for _, i := range todo[:missed] {
					isMissed[i] = true
				}
				for i, k := range keys {
					found := false
					for pos, id := range order {
						act, ok := model[masked{k.and(masks[id]), id}]
						if !ok {
							continue
						}
						found = true
						want += uint64(pos + 1)
						if got := c.flows[pool.packets[i].flow].action; got != act {
							t.Fatalf("key %x: action %v, want %v of subtable %d", k, got, act, id)
						}
						break
					}
					if found == isMissed[uint32(i)] || found != (pool.packets[i].flow != 0) {
						t.Fatalf("key %x: flow %d, missed %v, want found %v", k, pool.packets[i].flow, isMissed[uint32(i)], found)
					}
				}
				if lookups != want {
					t.Fatalf("%d subtable lookups, want %d", lookups, want)
				}
			},
			"": func(t *rapid.T) {
				if c.installed() != len(model) {
					t.Fatalf("%d flows, want %d", c.installed(), len(model))
				}
			},
		})
	})
}

// TestFlowTableFull fills a table to its limit: everything is found again and
// nothing else.
func TestFlowTableFull(t *testing.T) {
	for _, limit := range []int{1, 7, 8, 1000, 7 * 1024} {
		ft := newFlowTable(limit)
		for i := range limit {
			k := Key{uint64(i)}
			if !ft.insert(&k, k.hash(1), 3, uint32(i+1)) {
				t.Fatalf("limit %d: no room for flow %d", limit, i)
			}
		}
		k := Key{uint64(limit)}
		if ft.insert(&k, k.hash(1), 3, 1) {
			t.Errorf("limit %d: room for one more", limit)
		}
		for i := range limit {
			k := Key{uint64(i)}
			hash := k.hash(1)
			if got := ft.lookup(&k, hash, 3); got != uint32(i+1) {
				t.Fatalf("limit %d: flow %d found as %d", limit, i+1, got)
			}
			if !maybe(ft.tags[hash&ft.mask], hash) {
				t.Fatalf("limit %d: flow %d is taken for absent", limit, i+1)
			}
			if got := ft.lookup(&k, k.hash(1), 4); got != 0 {
				t.Fatalf("limit %d: flow %d found in another subtable", limit, i+1)
			}
		}
		if got := ft.lookup(&k, k.hash(1), 3); got != 0 {
			t.Errorf("limit %d: found flow %d for a key that is not there", limit, got)
		}
	}
}

func TestRankPutsPopularFirst(t *testing.T) {
	c := newClassifier(3, 10)
	masks := []Key{{0xff}, {0xff00}, {0xff0000}}
	for id, m := range masks {
		c.install(Key{0x010101}, m, uint32(id), action{})
	}
	c.subs[0].hits, c.subs[1].hits, c.subs[2].hits = 5, 9, 7
	c.rank()
	for i, want := range []uint32{1, 2, 0} {
		if c.subs[i].id != want || c.subs[i].hits != 0 {
			t.Errorf("place %d: subtable %d with %d hits, want %d with 0", i, c.subs[i].id, c.subs[i].hits, want)
		}
	}
}

// TestEMC compares the cache with a map: what it says is right, a key just
// inserted is there, and two keys that share a place can both be.
func TestEMC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newEMC(1)
		model := make(map[Key]uint32)
		for range rapid.IntRange(1, 300).Draw(t, "operations") {
			k := Key{rapid.Uint64Range(0, 100).Draw(t, "key")}
			// Few hashes, so that places are contended.
			h := uint32(k[0]%7)<<emcShift | uint32(k[0]%5)
			if rapid.Bool().Draw(t, "insert") {
				f := rapid.Uint32Range(1, 1000).Draw(t, "flow")
				c.offer(&k, h, f)
				model[k] = f
				if got := c.lookup(&k, h); got != f {
					t.Fatalf("key %v: flow %d just inserted, found %d", k, f, got)
				}
			} else if got := c.lookup(&k, h); got != 0 && got != model[k] {
				t.Fatalf("key %v: flow %d, want %d", k, got, model[k])
			}
		}
	})
	c := newEMC(1)
	a, b := Key{1}, Key{2}
	const ha, hb = 5 | 6<<emcShift, 5 | 7<<emcShift
	c.insert(&a, ha, 1)
	c.insert(&b, hb, 2)
	if c.lookup(&a, ha) != 1 || c.lookup(&b, hb) != 2 {
		t.Error("two keys that share one of two places are not both there")
	}
}

func TestEMCInsertsOneInSoMany(t *testing.T) {
	for inverse, want := range map[uint32][2]int{0: {0, 0}, 1: {8000, 8000}, 100: {40, 130}} {
		c := newEMC(inverse)
		n := 0
		for i := range uint32(8000) {
			k := Key{uint64(i)}
			c.offer(&k, i, 1)
			if c.lookup(&k, i) != 0 {
				n++
			}
		}
		if n < want[0] || n > want[1] {
			t.Errorf("1 in %d: %d of 8000 were put in, want %v", inverse, n, want)
		}
	}
}
