package exporter

import (
	"context"
	"net"
	"testing"
	"time"
)

// TestJoin says how long readers wait for what.
func TestJoin(t *testing.T) {
	const timeout = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // attempts end at once
	pending := func(age time.Duration) *attempt { return &attempt{began: time.Now().Add(-age)} }
	for name, test := range map[string]struct {
		attempt  *attempt
		slow     bool
		from, to time.Duration
	}{
		"a new attempt":            {nil, false, timeout, timeout},
		"a new one after a slow":   {nil, true, timeout / probation, timeout / probation},
		"one that has begun":       {pending(timeout / 2), false, timeout/2 - time.Minute, timeout / 2},
		"one that took too long":   {pending(2 * timeout), false, 0, 0},
		"one that still does":      {pending(2 * timeout), true, 0, 0},
		"one on probation":         {pending(timeout / 2 / probation), true, timeout/2/probation - time.Minute, timeout / 2 / probation},
		"one that lost its chance": {pending(2 * timeout / probation), true, 0, 0},
	} {
		target := newTarget(ctx, "/nowhere", Options{Timeout: timeout})
		target.attempt, target.slow = test.attempt, test.slow
		a, wait := target.join()
		if wait < test.from || wait > test.to {
			t.Errorf("%s: a reader waits %v, want %v to %v", name, wait, test.from, test.to)
		}
		if test.attempt != nil && a != test.attempt {
			t.Errorf("%s: another attempt was begun", name)
		}
		if test.attempt == nil {
			<-a.done
		}
	}
}

// TestSlow has a target answer after the timeout, which it is remembered for.
func TestSlow(t *testing.T) {
	answer := make(chan struct{})
	path := misbehave(t, func(c net.Conn) {
		<-answer
		textServer(t, "")(c)
	})
	target := newTarget(t.Context(), path, Options{Timeout: 50 * time.Millisecond})
	defer target.close()
	a, _ := target.join()
	if _, err := target.read(t.Context()); err == nil {
		t.Error("there is an answer before it was given")
	}
	close(answer)
	<-a.done
	if a.err != nil {
		t.Fatal(a.err)
	}
	target.mu.Lock()
	defer target.mu.Unlock()
	if !target.slow {
		t.Error("the target is not known to be slow")
	}
}
