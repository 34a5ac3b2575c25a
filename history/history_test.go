package history

import (
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

func TestSizes(t *testing.T) {
	if s := unsafe.Sizeof(Record{}); s != 64 {
		t.Errorf("a record has %d bytes, not one cache line", s)
	}
	if s := unsafe.Sizeof(Milli{}); s > 96 {
		t.Errorf("a millisecond row has %d bytes", s)
	}
}

func TestFlags(t *testing.T) {
	var f Flags
	if _, ok := f.Queue(); ok {
		t.Error("the zero value names a queue")
	}
	for _, q := range []int{0, 1, MaxQueues} {
		f = f.WithQueue(q)
		if got, ok := f.Queue(); !ok || got != q {
			t.Errorf("queue %d, %v; want %d", got, ok, q)
		}
	}
	for g := range NumGaps {
		if f.After(g) {
			t.Errorf("%v is set", g)
		}
		f = f.WithGap(g)
		if !f.After(g) {
			t.Errorf("%v is not set", g)
		}
	}
	if f&(Detailed|ClockBack) != 0 {
		t.Error("gap bits run into others")
	}
	if got, _ := f.Queue(); got != MaxQueues {
		t.Error("gap bits run into the queue")
	}
}

// Append gives just the iterations asked for, also around the end of the ring.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Ring
		end := rapid.Uint64Range(1, 3*RingSize).Draw(t, "end")
		for n := range end {
			r.At(n).End = n
		}
		count := rapid.Uint64Range(0, min(end, RingSize)).Draw(t, "count")
		got := r.Append(nil, end-count, end)
		if uint64(len(got)) != count {
			t.Fatalf("%d records, want %d", len(got), count)
		}
		for i := range got {
			if got[i].End != end-count+uint64(i) {
				t.Fatalf("record %d is iteration %d", i, got[i].End)
			}
		}
	})
}

func TestMillis(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Millis
		var want []uint64
		for i, op := range rapid.SliceOfN(rapid.IntRange(0, 99), 0, 3000).Draw(t, "ops") {
			if op == 0 {
				m.Reset()
				want = want[:0]
				continue
			}
			m.Open().End = uint64(i)
			m.Cut()
			want = append(want, uint64(i))
		}
		want = want[max(0, len(want)-(millisSize-1)):]
		n := rapid.IntRange(-1, 2000).Draw(t, "n")
		want = want[len(want)-max(0, min(n, len(want))):]
		var got []uint64
		for _, row := range m.Append(nil, n) {
			got = append(got, row.End)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v want %v", got, want)
		}
		if *m.Open() != (Milli{}) {
			t.Fatal("the open row is not empty")
		}
	})
}
