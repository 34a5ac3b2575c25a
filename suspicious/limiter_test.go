package suspicious

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// In any time no more pass than the rate and the burst allow, none is held back
// below the rate, and all are accounted for.
func TestLimiter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perMinute := rapid.IntRange(1, 1000).Draw(t, "rate")
		l := newLimiter(perMinute)
		begun := epoch
		now := begun
		var passed, held uint64
		gaps := rapid.SliceOfN(rapid.IntRange(-100, 5000), 1, 500).Draw(t, "gaps in ms")
		for _, gap := range gaps {
			now = now.Add(time.Duration(gap) * time.Millisecond)
			ok, h := l.pass(now)
			held += h
			if ok {
				passed++
			} else if h != 0 {
				t.Fatal("one that is held back reports some")
			}
		}
		if passed+held+l.held != uint64(len(gaps)) {
			t.Fatalf("%d passed, %d + %d held back of %d", passed, held, l.held, len(gaps))
		}
		// A clock that is set back gains time at most by how far.
		most := float64(perMinute) * (1 + (now.Sub(begun) + time.Duration(len(gaps))*100*time.Millisecond).Minutes())
		if float64(passed) > most+1 {
			t.Fatalf("%d passed, at most %v", passed, most)
		}
		if len(gaps) <= perMinute && passed != uint64(len(gaps)) {
			t.Fatalf("%d of a burst of %d passed", passed, len(gaps))
		}
	})
}
