package experiment

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/netlab"
)

// sendTo has a lab's new interface receive 50,000 packets a second until the test ends.
func sendTo(t *testing.T, name string) {
	lab := netlab.New(t)
	lab.Veth(name, "peer", 1)
	sender := lab.Sender("peer")
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
	t.Cleanup(func() { close(stop); sending.Wait() })
}

// TestOverheadOnRealPorts: a network interface does as well as memory, as long as
// somebody sends.
func TestOverheadOnRealPorts(t *testing.T) {
	sendTo(t, "a0")
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

// TestReloadOnRealPorts: a reload keeps a network interface from being polled as it does
// memory, and what its ring can't hold meanwhile is counted.
func TestReloadOnRealPorts(t *testing.T) {
	sendTo(t, "a0")
	c := smallReload()
	c.Ports, c.Queues, c.Rate = []string{"afpacket:a0"}, 1, 0
	r, err := Reload(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range schemes[:3] {
		var gaps, windows float64
		for i := range r.Rows {
			row := &r.Rows[i]
			if row.Label("scheme") == string(scheme) && row.Label("gap of the") == "queue" {
				f, _ := row.Figure("gaps")
				gaps += f.Value
			}
			if row.Label("reload") == string(scheme) {
				f, _ := row.Figure("windows")
				windows += f.Value
			}
		}
		if gaps != float64(c.Reloads) || windows != float64(c.Reloads) {
			t.Errorf("%s: %v gaps of the queue and %v windows in %d reloads", scheme, gaps, windows, c.Reloads)
		}
	}
	if got := r.Parameters[slices.IndexFunc(r.Parameters, func(p Parameter) bool { return p.Name == "rate" })].Value; got != "as they come" {
		t.Errorf("the rate is %s", got)
	}
}
