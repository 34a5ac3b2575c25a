package perf

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/suspicious"
)

var (
	_ suspicious.Source = (*Recorder)(nil)
	_ suspicious.Pinger = (*Recorder)(nil)
)

// Which queues an iteration polled can still be told after reloads.
func TestPolled(t *testing.T) {
	queue := func(id int) Queue { return Queue{Port: "p0", ID: id, Size: 8} }
	of := func(from uint64, ids ...int) suspicious.Polled {
		p := suspicious.Polled{From: from, Queues: []suspicious.Queue{}}
		for _, id := range ids {
			p.Queues = append(p.Queues, suspicious.Queue{Port: "p0", ID: id, Size: 8})
		}
		return p
	}
	r, err := New(Config{Polling: Polling{RxQueues: []Queue{queue(9)}}})
	if err != nil {
		t.Fatal(err)
	}
	poll := func(passes int, queues ...Queue) {
		t.Helper()
		if err := r.Resume(&Polling{RxQueues: queues}); err != nil {
			t.Fatal(err)
		}
		for range passes {
			r.End()
		}
		r.Park()
	}
	poll(10, queue(0))          // 0 .. 9
	poll(5, queue(0))           // the same goes on, 10 .. 14
	poll(0, queue(3))           // never polled
	poll(5, queue(0), queue(1)) // 15 .. 19
	poll(100, queue(1))         // 20 .. 119
	for _, tt := range []struct {
		first, last uint64
		want        []suspicious.Polled
	}{
		{0, 0, []suspicious.Polled{of(0, 0)}},
		{3, 14, []suspicious.Polled{of(0, 0)}},
		{14, 15, []suspicious.Polled{of(0, 0), of(15, 0, 1)}},
		{15, 19, []suspicious.Polled{of(15, 0, 1)}},
		{3, 25, []suspicious.Polled{of(0, 0), of(15, 0, 1), of(20, 1)}},
		{90, 1000, []suspicious.Polled{of(20, 1)}},
	} {
		if diff := cmp.Diff(tt.want, r.Polled(tt.first, tt.last)); diff != "" {
			t.Errorf("%d to %d (-want +got):\n%s", tt.first, tt.last, diff)
		}
	}
	for i := range 20 {
		poll(1, queue(i))
	}
	if got := r.Polled(0, 1000); len(got) != pollingKept || got[0].From != 132 {
		t.Errorf("%v", got)
	}
	poll(1)
	if got := r.Polled(140, 140); len(got) != 1 || len(got[0].Queues) != 0 {
		t.Errorf("%v", got)
	}
}

func TestClock(t *testing.T) {
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	a, at := r.Clock()
	b, bt := r.Clock()
	after := time.Now()
	if b <= a || bt.Before(at) || at.Before(before) || bt.After(after) {
		t.Errorf("%d at %v, %d at %v", a, at, b, bt)
	}
}

// A loop that runs or is parked answers a ping, one that is stuck does not, whoever
// asked it first.
func TestPing(t *testing.T) {
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	if err := r.Ping(soon()); err != nil {
		t.Errorf("before its start: %v", err)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, ok := errors.AsType[*StalledError](r.Ping(soon())); !ok {
			t.Error("a loop that is stuck answers")
		}
	}
	for range 100 {
		r.End()
		time.Sleep(100 * time.Microsecond)
	}
	if r.unanswered() != 0 {
		t.Error("the ping is not answered by a loop that goes on")
	}
	// Another reader's request is not answered.
	done := make(chan error)
	go func() { done <- r.Snapshot(t.Context(), Want{}, new(Snapshot)) }()
	for r.unanswered() == 0 {
		time.Sleep(time.Millisecond)
	}
	if _, ok := errors.AsType[*StalledError](r.Ping(soon())); !ok {
		t.Error("a loop that is stuck answers")
	}
	for r.unanswered() != 0 {
		r.End()
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	r.Close()
	if err := r.Ping(soon()); err != nil {
		t.Errorf("after its end: %v", err)
	}
}
