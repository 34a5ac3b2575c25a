//go:build linux

package netlab

import (
	"bytes"
	"testing"
	"time"
)

// testFrame is a broadcast of an experimental Ethernet type with its number in it.
func testFrame(i int, buf []byte) int {
	copy(buf, "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01\x88\xb5")
	buf[14], buf[15] = byte(i>>8), byte(i)
	return 60 + i%3
}

// TestOnlyOurFrames sends in one direction and wants every counter to say exactly
// that, also after a while: nobody else sends here.
func TestOnlyOurFrames(t *testing.T) {
	l := New(t)
	l.Veth("a0", "a1", 2)
	r := l.Receiver("a1")
	s := l.Sender("a0")
	const n = 1000
	begun := time.Now()
	sent, err := s.Send(n, 20_000, testFrame)
	if err != nil || sent != n {
		t.Fatalf("sent %d, %v, want %d", sent, err, n)
	}
	if d := time.Since(begun); d < 45*time.Millisecond {
		t.Errorf("1000 frames at 20,000 a second took %v, want 50 ms", d)
	}
	time.Sleep(50 * time.Millisecond)
	if got, err := r.Count(); err != nil || got != n {
		t.Errorf("received %d, %v, want %d", got, err, n)
	}
	a0, a1 := l.Stats("a0"), l.Stats("a1")
	if a0.TxPackets != n || a1.RxPackets != n || a0.TxBytes != a1.RxBytes {
		t.Errorf("kernel counters %+v, %+v, want %d packets", a0, a1, n)
	}
	if a1.TxPackets != 0 || a0.RxPackets != 0 {
		t.Errorf("kernel counters %+v, %+v, want nothing the other way", a0, a1)
	}
	var got, want [maxFrame]byte
	for i := range 20 {
		size := testFrame(i, want[:])
		if k := r.Next(got[:]); k != size || !bytes.Equal(got[:k], want[:size]) {
			t.Fatalf("frame %d: % x, want % x", i, got[:k], want[:size])
		}
	}
}
