package experiment

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/netlab"
)

// TestOverheadOnRealPorts: a network interface does as well as memory, as long as
// somebody sends.
func TestOverheadOnRealPorts(t *testing.T) {
	lab := netlab.New(t)
	lab.Veth("a0", "a1", 1)
	sender := lab.Sender("a1")
	stop := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		frame := func(i int, buf []byte) int { return copy(buf, make([]byte, 60)) }
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := sender.Send(320, 50_000, frame); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer func() { close(stop); sending.Wait() }()
	c := smallOverhead()
	c.Ports, c.Subtables, c.Slice, c.Rounds = []string{"afpacket:a0"}, []int{1}, 50*time.Millisecond, 3
	r, err := Overhead(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	row := r.Find("level", levelDetailed)
	if row == nil {
		t.Fatalf("no rows: %+v", r)
	}
	// A busy machine may keep the sender off its core for most of a slice. One that
	// nothing came in counts as one packet: 0.00002 Mpps.
	if f, _ := row.Figure("Mpps"); f.N != 3 || f.Value < 0.0001 || f.Value > 0.5 {
		t.Errorf("%+v Mpps of 0.05 sent", f.Estimate)
	}
	for _, n := range r.Notes {
		if strings.Contains(n, "generator") {
			t.Errorf("no generator ran, but: %s", n)
		}
	}
}
