package perf

import (
	"context"
	"strings"
	"testing"

	"github.com/pmdperf/pmdperf/history"
)

func TestConfigErrors(t *testing.T) {
	for _, tt := range []struct {
		cfg  Config
		want string
	}{
		{Config{Core: -1}, "core -1"},
		{Config{Level: 7}, "unknown level(7)"},
		{Config{BatchSize: -3}, "batch size -3"},
		{Config{BatchSize: 1 << 20}, "batch size 1048576"},
		{Config{Counters: []string{"a", "a"}}, `counter "a" is there twice`},
		{Config{Counters: []string{"emc_hits"}}, `counter "emc_hits" is there twice`},
		{Config{Counters: make([]string, 300)}, "300 counters are more than 244"},
		{Config{Timers: []string{""}}, "a timer needs a name"},
		{Config{Polling: Polling{RxQueues: []Queue{{}}}}, "needs a port name"},
		{Config{Polling: Polling{TxQueues: []Queue{{Port: "a"}, {Port: "a"}}}}, `tx queue 0 of port "a" is there twice`},
		{Config{Polling: Polling{RxQueues: make([]Queue, history.MaxQueues+1)}}, "more than 4094"},
	} {
		_, err := New(tt.cfg)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.cfg, err, tt.want)
		}
	}
}

func TestRegistry(t *testing.T) {
	var g Registry
	b, err := g.New(Config{Core: 3, ID: 1})
	if err != nil {
		t.Fatal(err)
	}
	a, err := g.New(Config{Core: 1, ID: 2})
	if err != nil {
		t.Fatal(err)
	}
	if a.Name() != "pmd-c01/id:2" || b.Core() != 3 {
		t.Errorf("%q on core %d", a.Name(), b.Core())
	}
	if _, err := g.New(Config{Core: 1, Name: "other"}); err == nil || !strings.Contains(err.Error(), "core 1 has recorder") {
		t.Errorf("a second recorder on a core: %v", err)
	}
	if _, err := g.New(Config{Core: 5, Name: b.Name()}); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a second recorder of a name: %v", err)
	}
	if rs := g.Recorders(); len(rs) != 2 || rs[0] != a || rs[1] != b {
		t.Errorf("recorders %v", rs)
	}
	g.Remove(b)
	if rs := g.Recorders(); len(rs) != 1 || rs[0] != a {
		t.Errorf("after removal %v", rs)
	}
	if _, err := g.New(Config{Core: 3}); err != nil {
		t.Errorf("a core that is free again: %v", err)
	}
	if g.HasShared() {
		t.Error("a shared recorder nobody asked for")
	}
	if first := g.Shared(); g.Shared() != first || !g.HasShared() {
		t.Error("the shared recorder is not one")
	}
	// Recorders that never started answer too, and at once.
	s := new(Snapshot)
	if err := Each(t.Context(), g.Recorders(), func(ctx context.Context, r *Recorder) error {
		return r.Snapshot(ctx, Want{}, new(Snapshot))
	}); err != nil {
		t.Error(err)
	}
	if err := a.Snapshot(t.Context(), Want{}, s); err != nil || s.State != Parked || s.Totals.Iterations != 0 {
		t.Errorf("%v %v %d", err, s.State, s.Totals.Iterations)
	}
}

func TestShared(t *testing.T) {
	var g Registry
	s := g.Shared()
	done := make(chan bool)
	for range 4 {
		go func() {
			for range 1000 {
				s.Batch(32)
				s.Count(EMCHit, 31)
				s.Upcall(true)
				s.Tx(30, 2)
				s.Drop(2)
			}
			done <- true
		}()
	}
	for range 4 {
		<-done
	}
	s.Count(Counter(200), 5)
	s.Batch(-1)
	got := &Snapshot{Name: "used before", Iterations: make([]history.Record, 3)}
	s.Snapshot(got)
	if len(got.Iterations) != 0 || got.Name != "main" {
		t.Errorf("%q with %d iterations", got.Name, len(got.Iterations))
	}
	if got.Kind != Main || got.Totals.RxPackets != 128_000 || got.Totals.RxBatches != 4000 || got.Counts[EMCHit] != 124_000 ||
		got.Counts[UpcallsOK] != 4000 || got.Totals.TxPackets != 120_000 || got.Counts[TxBatches] != 8000 || got.Totals.Drops != 8000 {
		t.Errorf("%+v %v", got.Totals, got.Counts)
	}
	s.Clear()
	if s.Snapshot(got); got.Totals != (Totals{}) || got.Counts != [NumBuiltin]uint64{} {
		t.Errorf("after a clear %+v %v", got.Totals, got.Counts)
	}
}

func TestLevels(t *testing.T) {
	for l := Basic; l <= Off; l++ {
		if got, err := ParseLevel(l.String()); got != l || err != nil {
			t.Errorf("%v: %v %v", l, got, err)
		}
	}
	if _, err := ParseLevel("loud"); err == nil || !strings.Contains(err.Error(), "off, basic or detailed") {
		t.Errorf("%v", err)
	}
}

// A recorder refuses to be resumed when it runs or is closed, and a wrong polling
// configuration leaves the old one.
func TestResume(t *testing.T) {
	d := drive(t, 1e6, Config{Polling: twoQueues})
	if err := d.Resume(nil); err == nil {
		t.Error("resumed while running")
	}
	d.Park()
	err := d.Resume(&Polling{RxQueues: []Queue{{Port: "x"}, {Port: "x"}}})
	if err == nil || !strings.Contains(err.Error(), "twice") || d.State() != Running {
		t.Errorf("%v, %v", err, d.State())
	}
	if s := d.snapshot(); len(s.RxQueues) != 2 || s.RxQueues[1].Port != "b" {
		t.Errorf("queues %v", s.RxQueues)
	}
	d.Park()
	d.Close()
	d.Close()
	if err := d.Resume(nil); err == nil || d.State() != Closed {
		t.Errorf("resumed after the end: %v", err)
	}
}
