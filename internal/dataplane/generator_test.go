package dataplane

import (
	"testing"

	"pgregory.net/rapid"
)

// TestRing compares with a slice.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRing(1 << rapid.IntRange(0, 6).Draw(t, "log size"))
		if rapid.Bool().Draw(t, "wrap") { // indices are about to overflow
			r.head.Store(1<<32 - 3)
			r.tail.Store(1<<32 - 3)
		}
		var model []uint32
		next := uint32(0)
		for range rapid.IntRange(1, 100).Draw(t, "operations") {
			if rapid.Bool().Draw(t, "push") {
				n := min(r.room(), rapid.IntRange(0, 40).Draw(t, "n"))
				r.push(n, func() uint32 { next++; model = append(model, next); return next })
			} else {
				dst := make([]uint32, rapid.IntRange(0, 40).Draw(t, "n"))
				n := r.pop(dst)
				if n != min(len(dst), len(model)) {
					t.Fatalf("popped %d of %d for %d", n, len(model), len(dst))
				}
				for i, got := range dst[:n] {
					if got != model[i] {
						t.Fatalf("popped %d, want %d", got, model[i])
					}
				}
				model = model[n:]
			}
			if r.len() != len(model) || r.room() != len(r.slots)-len(model) {
				t.Fatalf("length %d and room %d with %d there", r.len(), r.room(), len(model))
			}
		}
	})
}

// TestRingBetweenGoroutines pushes and pops at the same time.
func TestRingBetweenGoroutines(t *testing.T) {
	const n = 100_000
	r := newRing(64)
	go func() {
		for i := uint32(0); i < n; {
			r.push(min(r.room(), int(n-i)), func() uint32 { i++; return i })
			relax()
		}
	}()
	want := uint32(0)
	var dst [Burst]uint32
	for want < n {
		for _, got := range dst[:r.pop(dst[:])] {
			if want++; got != want {
				t.Fatalf("popped %d, want %d", got, want)
			}
		}
		relax()
	}
}

func TestGeneratorOrder(t *testing.T) {
	take := func(profile Profile, q, queues, flows, n int) (list []uint32) {
		g, err := newGenerator(profile, q, queues, flows, 0, 1e9)
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			list = append(list, g.next())
		}
		return list
	}
	for i, got := range take(ProfileBurst, 0, 1, 3, 200) {
		if want := uint32(i / Burst % 3); got != want {
			t.Fatalf("burst: packet %d is of flow %d, want %d", i, got, want)
		}
	}
	for i, got := range take(ProfileScatter, 1, 2, 7, 20) { // flows 1, 3, 5
		if want := uint32(i%3*2 + 1); got != want {
			t.Fatalf("scatter: packet %d of queue 1 is of flow %d, want %d", i, got, want)
		}
	}
}

// TestGeneratorSkip: to skip n packets is to take n and throw them away.
func TestGeneratorSkip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		queues := rapid.IntRange(1, 5).Draw(t, "queues")
		q := rapid.IntRange(0, queues-1).Draw(t, "queue")
		flows := rapid.IntRange(q+1, 20).Draw(t, "flows")
		profile := rapid.SampledFrom([]Profile{ProfileBurst, ProfileScatter}).Draw(t, "profile")
		a, _ := newGenerator(profile, q, queues, flows, 0, 1e9)
		b, _ := newGenerator(profile, q, queues, flows, 0, 1e9)
		for range 5 {
			n := rapid.IntRange(0, 500).Draw(t, "n")
			a.skip(uint64(n))
			for range n {
				b.next()
			}
			if *a != *b {
				t.Fatalf("skipped %d: %+v, want %+v", n, *a, *b)
			}
		}
	})
}

// TestPacedArrivals: whatever the polls' times, what was due either came or was
// missed, nothing else was, and a queue that is polled in time misses nothing.
func TestPacedArrivals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const hz = 1e9
		rate := rapid.Float64Range(1, 5e8).Draw(t, "rate")
		cfg := Config{Rate: rate, RingSize: 1 << rapid.IntRange(5, 10).Draw(t, "ring"), Flows: 100, Profile: ProfileScatter}.withDefaults()
		p, err := newMemPort("mem0", &cfg, true)
		if err != nil {
			t.Fatal(err)
		}
		g, err := newGenerator(cfg.Profile, 0, 1, cfg.Flows, rate, hz)
		if err != nil {
			t.Fatal(err)
		}
		p.queues[0].generator = g
		now := uint64(1)
		p.now = func() uint64 { return now }
		b := NewBatch(NewPool(Burst))
		poll := func() (n, fill int) {
			fill = p.RxBurst(0, b)
			n = b.Len()
			b.Release()
			return n, fill
		}
		received := uint64(0)
		checkDue := func() {
			due := float64(now-1) * rate / hz
			all := received + p.Missed(0) + uint64(p.queues[0].ring.len())
			if d := due - float64(all); d < -0.001 || d > 1.001 {
				t.Fatalf("%f were due, %d came", due, all)
			}
		}
		poll() // the first starts the clock
		for range rapid.IntRange(1, 50).Draw(t, "polls") {
			missed := p.Missed(0)
			before := p.queues[0].ring.len()
			ticks := rapid.Uint64Range(0, 1<<22).Draw(t, "ticks")
			now += ticks
			n, fill := poll()
			received += uint64(n)
			if n > fill || fill > cfg.RingSize || n != min(fill, Burst) {
				t.Fatalf("received %d with %d in a ring of %d", n, fill, cfg.RingSize)
			}
			if p.Missed(0) != missed && fill != cfg.RingSize {
				t.Fatalf("missed %d with only %d in a ring of %d", p.Missed(0)-missed, fill, cfg.RingSize)
			}
			if float64(before)+float64(ticks)*rate/hz+1 < float64(cfg.RingSize) && p.Missed(0) != missed {
				t.Fatalf("missed %d though there was room", p.Missed(0)-missed)
			}
			checkDue()
		}
		now += rapid.Uint64Range(0, 1<<22).Draw(t, "stall before the end")
		p.Quiesce(0)
		checkDue()
		now += 1 << 40 // of which nothing comes
		rest := p.queues[0].ring.len()
		for !p.Drained(0) {
			n, _ := poll()
			if n == 0 {
				t.Fatal("not drained, but nothing comes")
			}
			rest -= n
		}
		if rest != 0 {
			t.Fatalf("%d packets too few or many after the end", rest)
		}
	})
}
