package dataplane

import (
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/perf/tsc"
)

// startTest starts a forwarder that ends with the test.
func startTest(t *testing.T, cfg Config) *Forwarder {
	t.Helper()
	f, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Stop() })
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	return f
}

// marksSum returns the marks of all PMDs as one, with the tick of the first.
func marksSum(t *testing.T, f *Forwarder) (sum Mark) {
	t.Helper()
	marks, err := f.Marks()
	if err != nil {
		t.Fatal(err)
	}
	sum.Tick = marks[0].Tick
	for _, m := range marks {
		sum.Rx += m.Rx
		sum.Tx += m.Tx
		sum.Drops += m.Drops
		sum.Missed += m.Missed
		sum.Batches += m.Batches
	}
	return sum
}

// TestMarks: between two passes every packet received was sent or dropped, and the
// marks go on to what Stop returns.
func TestMarks(t *testing.T) {
	t.Run("sent", func(t *testing.T) { testMarks(t, Config{Flows: 100, Sinks: 3, Profile: ProfileScatter}) })
	t.Run("dropped", func(t *testing.T) { testMarks(t, Config{Flows: 100, Drop: true}) })
}

func testMarks(t *testing.T, cfg Config) {
	f := startTest(t, cfg)
	last := marksSum(t, f)
	for range 5 {
		time.Sleep(5 * time.Millisecond)
		m := marksSum(t, f)
		d := m.Sub(last)
		if d.Rx == 0 || d.Tick == 0 || m.Rx != m.Tx+m.Drops || m.Batches*Burst < m.Tx {
			t.Fatalf("from %+v to %+v", last, m)
		}
		last = m
	}
	if tids := f.Threads(); tids[0] == 0 {
		t.Errorf("threads %v", tids)
	}
	end := f.Stop()
	if rx := end.Ports[0].Rx; rx < last.Rx {
		t.Errorf("received %d in the end, %d before", rx, last.Rx)
	}
	if _, err := f.Marks(); err == nil {
		t.Error("a stopped forwarder returns marks")
	}
}

// TestPace: what arrives follows the rate from the moment on at which it is set.
func TestPace(t *testing.T) {
	_, p := newTestPMD(t, Config{Flows: 10, Queues: 2, Rate: 1000, RingSize: 1 << 15})
	hz := tsc.System().Hz()
	var now uint64 = 1
	port := p.ports[0].(*memPort)
	port.now = func() uint64 { return now }
	for _, rate := range []float64{1e6, 1e5, 3e6} {
		p.pace(rate / 2)
		p.pass() // time begins
		before := p.tally[0].rx
		now += uint64(hz / 100)
		for range 1000 {
			p.pass()
		}
		if got, want := float64(p.tally[0].rx-before), rate/100; got < want-2 || got > want {
			t.Errorf("rate %.0f: %.0f packets, want %.0f", rate, got, want)
		}
	}
	p.pace(0)
	before := p.tally[0].rx
	p.pass()
	if got := p.tally[0].rx - before; got != 2*Burst {
		t.Errorf("%d packets in a pass at any rate, want %d", got, 2*Burst)
	}
}

func TestSetRate(t *testing.T) {
	f := startTest(t, Config{Profile: ProfileIdle})
	for _, rate := range []float64{-1, 1e12} {
		if f.SetRate(rate) == nil {
			t.Errorf("rate %v is accepted", rate)
		}
	}
	if err := f.SetRate(1e6); err != nil {
		t.Error(err)
	}
}

// TestReloaded: a reload tells of every PMD and queue, and no PMD polls again before it
// was to.
func TestReloaded(t *testing.T) {
	cores := usableCores()
	cores = cores[:min(2, len(cores))]
	for _, scheme := range []ReloadScheme{ReloadHandover, ReloadBusy, ReloadBlocking} {
		f := startTest(t, Config{Ports: []string{"mem", "mem"}, Queues: 2, Rate: 1e5, Cores: cores})
		if err := f.SetReload(scheme); err != nil {
			t.Fatal(err)
		}
		const hold = time.Millisecond
		for i := range 4 {
			r, err := f.Reload(hold)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Threads) != len(cores) || len(r.Queues) != 4 || len(r.Away) != len(cores) {
				t.Fatalf("reload %d: %+v", i, r)
			}
			for _, gap := range r.Threads {
				if d := tsc.System().Duration(gap); d < hold || d > 10*time.Second {
					t.Errorf("reload %d: a thread's gap of %v, want at least %v", i, d, hold)
				}
			}
			// A queue's is shorter where the PMD that had it was the last to leave.
			for _, gap := range r.Queues {
				if d := tsc.System().Duration(gap); d <= 0 || d > 10*time.Second {
					t.Errorf("reload %d: a queue's gap of %v", i, d)
				}
			}
			for i, n := range r.Away {
				if n < 0 || n > 1000 {
					t.Errorf("PMD %d: its thread was off its core %d times", i, n)
				}
			}
		}
		if r := f.Stop(); r.Unbalanced() != nil || r.Gaps.Count != 16 {
			t.Errorf("%s: %v, gaps %+v, want 16 of 4 queues in 4 reloads", scheme, r.Unbalanced(), r.Gaps)
		}
		if f.SetReload("some") == nil {
			t.Error("an unknown scheme is accepted")
		}
	}
}

func TestGenerate(t *testing.T) {
	if pps, err := Generate(Config{Flows: 1000, Profile: ProfileScatter, Rate: 5}, 5*time.Millisecond); err != nil || pps < 1e5 {
		t.Errorf("%.0f packets a second, %v", pps, err)
	}
	if _, err := Generate(Config{Flows: -1}, time.Millisecond); err == nil {
		t.Error("wrong parameters are accepted")
	}
}
