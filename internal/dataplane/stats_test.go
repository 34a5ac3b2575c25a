package dataplane

import (
	"testing"
	"time"
)

func TestSizeClass(t *testing.T) {
	for size, want := range map[int]int{0: 0, 63: 0, 64: 1, 65: 2, 127: 2, 128: 3, 255: 3, 256: 4, 511: 4, 512: 5, 1023: 5, 1024: 6, 1518: 6, 1519: 7, 9000: 7} {
		if got := sizeClass(size); got != want {
			t.Errorf("size %d: class %d, want %d", size, got, want)
		}
	}
}

// TestStatsCountEveryPacket has two PMDs receive from and send to the same ports. No
// packet is counted twice or not at all, also behind the lock and while the mode
// changes.
func TestStatsCountEveryPacket(t *testing.T) {
	cores := usableCores()
	cores = cores[:min(2, len(cores))]
	for _, mode := range []StatsMode{StatsOwn, StatsShared} {
		f := startTest(t, Config{Ports: []string{"mem", "mem"}, Queues: 2, Flows: 10, Cores: cores, Stats: mode, PacketSize: 300})
		time.Sleep(30 * time.Millisecond)
		if _, err := f.Reload(0); err != nil { // each PMD receives from the other's port then
			t.Fatal(err)
		}
		time.Sleep(30 * time.Millisecond)
		r := f.Stop()
		for i, port := range r.Ports {
			var s portStats
			for _, p := range f.pmds {
				s.rx.merge(&p.stats.own[i].rx)
				s.tx.merge(&p.stats.own[i].tx)
			}
			if mode == StatsShared {
				s = f.shared[i].portStats
			}
			for _, d := range []struct {
				name string
				got  sizeStats
				want uint64
			}{{"rx", s.rx, port.Rx}, {"tx", s.tx, port.Out}} {
				if d.want == 0 || d.got.packets != d.want || d.got.classes[4] != d.want || d.got.bytes != 304*d.want {
					t.Errorf("%s, port %d: %s %+v, want %d packets of 304 bytes", mode, i, d.name, d.got, d.want)
				}
			}
		}
	}
}

func TestSetStats(t *testing.T) {
	f := startTest(t, Config{Flows: 10, Drop: true})
	for _, mode := range []StatsMode{StatsOwn, StatsOff} {
		if err := f.SetStats(mode); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	before := f.pmds[0].stats.own[0].rx.packets // the PMD no longer counts
	time.Sleep(5 * time.Millisecond)
	r := f.Stop()
	if after := f.pmds[0].stats.own[0].rx.packets; before == 0 || after != before || r.Ports[0].Rx <= after {
		t.Errorf("%d counted, later %d, of %d packets", before, after, r.Ports[0].Rx)
	}
}

// TestSetPath: one path sends a flow at a time, the other waits for full batches.
func TestSetPath(t *testing.T) {
	_, p := newTestPMD(t, Config{Flows: 64, Sinks: 2, Profile: ProfileScatter})
	batches := func() float64 {
		b, rx := p.flushed, p.tally[0].rx
		for range 100 {
			p.pass()
		}
		return float64(p.tally[0].rx-rx) / float64(p.flushed-b)
	}
	for range 10 {
		p.pass()
	}
	serve := func(r *request) {
		p.request.Store(r)
		p.pass()
	}
	if got := batches(); got != 16 {
		t.Errorf("at the end of each pass: %v packets a batch, want 16", got)
	}
	serve(&request{kind: wantPath, atOnce: true})
	if got := batches(); got != 1 {
		t.Errorf("at once: %v packets a batch, want 1", got)
	}
	serve(&request{kind: wantPath, flush: 1 << 40})
	if got := batches(); got < 31 {
		t.Errorf("when full: %v packets a batch, want 32", got)
	}
}
