//go:build linux

package dataplane

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/netlab"
)

// TestAFXDPQueues wants a clear error where frames would pass by unseen or a PMD would
// have no queue to send on.
func TestAFXDPQueues(t *testing.T) {
	lab := netlab.New(t)
	lab.Veth("a0", "a1", 2)
	for _, c := range []struct {
		rx, tx int
		want   string
	}{
		{1, 1, "it has 2 receive queues and 1 would be polled: choose 2 queues"},
		{2, 3, "it has 2 queues and 3 PMDs would send on it"},
		{2, 2, ""},
	} {
		p, err := openAFXDP("a0", c.rx, c.tx)
		if err == nil {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
		if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%d and %d queues: error %v, want %q", c.rx, c.tx, err, c.want)
		}
	}
}

// TestAFXDPAgain takes an interface that a port has just left, and wants one that
// another has to be refused.
func TestAFXDPAgain(t *testing.T) {
	lab := netlab.New(t)
	lab.Veth("a0", "a1", 1)
	for range 3 {
		p, err := openAFXDP("a0", 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	first, err := openAFXDP("a0", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if p, err := openAFXDP("a0", 1, 1); err == nil {
		t.Errorf("opened twice: %v", p.Close())
	} else if !strings.Contains(err.Error(), "another AF_XDP socket has it") {
		t.Errorf("error %v", err)
	}
}

// TestAFXDPRefused sends to an interface whose peer takes shorter packets only: the
// others are to be counted as dropped.
func TestAFXDPRefused(t *testing.T) {
	lab := netlab.New(t)
	lab.Veth("a0", "a1", 1)
	p, err := openAFXDP("a0", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	batch := func() *Batch {
		b := NewBatch(NewPool(Burst))
		for i := range Burst {
			newTemplate(60+i, 1, false).render(b.Add(), 0)
		}
		return b
	}
	if sent := p.TxBurst(0, batch()); sent != Burst {
		t.Errorf("sent %d, want %d", sent, Burst)
	}
	lab.MTU("a1", 68) // the peer takes no longer packets: 60 to 86 bytes fit, header and a VLAN tag included
	if sent := p.TxBurst(0, batch()); sent != 27 {
		t.Errorf("sent %d of 32 packets of 60 to 91 bytes, want 27", sent)
	}
	if s := lab.Stats("a1"); s.RxPackets != Burst+27 {
		t.Errorf("%d arrived, want %d", s.RxPackets, Burst+27)
	}
	if !p.queues[0].tx.taken() || p.queues[0].owed != 0 {
		t.Errorf("packets left behind, %d not accounted for", p.queues[0].owed)
	}
}

// TestAFXDPFull sends more than a queue holds that nobody polls: the surplus is missed,
// and nothing arrives any more once the queue was shut.
func TestAFXDPFull(t *testing.T) {
	lab := netlab.New(t)
	lab.Veth("gen0", "dut0", 1)
	p, err := openAFXDP("dut0", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	sender, frame := lab.Sender("gen0"), frames(60, 1, 100)
	send := func(n int) {
		t.Helper()
		if sent, err := sender.Send(n, 100_000, frame); err != nil || sent != n {
			t.Fatalf("sent %d, %v", sent, err)
		}
	}
	const surplus = 952
	send(xskRingSize + surplus)
	b := NewBatch(NewPool(Burst))
	receive := func() (n int) {
		for begun := time.Now(); time.Since(begun) < 50*time.Millisecond; {
			p.RxBurst(0, b)
			n += b.Len()
			b.Release()
		}
		return n
	}
	time.Sleep(20 * time.Millisecond) // for the softirq to end
	if fill := p.RxBurst(0, b); fill != xskRingSize || b.Len() != Burst {
		t.Errorf("%d packets of a queue with %d, want %d of %d", b.Len(), fill, Burst, xskRingSize)
	}
	b.Release()
	if n := receive() + Burst; n != xskRingSize {
		t.Errorf("received %d, want %d", n, xskRingSize)
	}
	if missed := p.Missed(0); missed != surplus {
		t.Errorf("missed %d, want %d", missed, surplus)
	}
	send(100)
	if n := receive(); n != 100 {
		t.Errorf("received %d afterwards, want 100", n)
	}
	p.Quiesce(0)
	send(100)
	if n := receive(); n != 0 || !p.Drained(0) {
		t.Errorf("received %d from a queue that was shut, drained %v", n, p.Drained(0))
	}
}

// TestAFXDPSendsMuch sends more packets than there are chunks to send from.
func TestAFXDPSendsMuch(t *testing.T) {
	lab := netlab.New(t)
	lab.Veth("a0", "a1", 1)
	p, err := openAFXDP("a0", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	b := NewBatch(NewPool(Burst))
	for i := range Burst {
		newTemplate(60, 1, false).render(b.Add(), uint32(i))
	}
	sent, want := 0, 3*xskRingSize
	for begun := time.Now(); sent < want && time.Since(begun) < 10*time.Second; {
		sent += p.TxBurst(0, b)
	}
	if s := lab.Stats("a1"); sent != want || s.RxPackets != uint64(want) {
		t.Errorf("sent %d, %d arrived, want %d", sent, s.RxPackets, want)
	}
}
