package exporter

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/pmdperf/pmdperf/export/prom"
)

// target is one of the programs to be asked. Any goroutine may read it. One attempt is
// under way at a time, which all readers share.
type target struct {
	name    string
	timeout time.Duration // how long a reader waits
	log     *slog.Logger  // may be nil
	ctx     context.Context

	mu      sync.Mutex
	attempt *attempt // under way, or nil
	slow    bool     // the last attempt took longer than the timeout
	failure string   // why the target is down, empty if it is up, for the log

	// These belong to the attempt.
	peer      peer
	documents documents
	texts     texts
}

func newTarget(ctx context.Context, name string, o Options) *target {
	return &target{
		name: name, timeout: o.Timeout, log: o.Log, ctx: ctx,
		peer: peer{target: name}, texts: texts{hz: ticksPerSecond()},
	}
}

// attempt is one errand to the target. What follows done is there when that is closed.
type attempt struct {
	began   time.Time
	done    chan struct{}
	threads []*prom.Thread
	err     error
}

const (
	// patience is how many timeouts an attempt lasts at most. It outlives the readers that
	// gave up on it: a target that hangs is not asked again as long as it may answer, and
	// nobody waits for it meanwhile.
	patience = 20
	// probation is the part of the timeout that is waited for a target whose last attempt
	// took longer than the timeout.
	probation = 20
)

// read returns the target's threads as of an attempt that began when read was called, or
// was under way then. An error says why there are none.
func (t *target) read(ctx context.Context) ([]*prom.Thread, error) {
	a, wait := t.join()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-a.done:
	case <-timer.C:
		t.late(a)
		return nil, context.DeadlineExceeded
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.late(a)
		}
		return nil, ctx.Err()
	}
	return a.threads, a.err
}

// join returns the attempt under way, or a new one, and how long to wait for it.
func (t *target) join() (a *attempt, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	wait = t.timeout
	if t.slow {
		wait /= probation
	}
	if a := t.attempt; a != nil {
		return a, max(0, wait-time.Since(a.began))
	}
	a = &attempt{began: time.Now(), done: make(chan struct{})}
	t.attempt = a
	go t.carryOut(a)
	return a, wait
}

// late takes note that somebody waited for an attempt in vain.
func (t *target) late(a *attempt) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.attempt == a {
		t.slow = true
		t.note(context.DeadlineExceeded)
	}
}

func (t *target) carryOut(a *attempt) {
	ctx, cancel := context.WithTimeout(t.ctx, patience*t.timeout)
	defer cancel()
	r, err := t.peer.ask(ctx)
	if err == nil {
		err = r.check()
	}
	switch {
	case err != nil:
		a.err = err
	case r.document != nil:
		a.threads = t.documents.threads(r.document)
	default:
		a.threads = t.texts.threads(r)
	}
	if t.peer.pid != 0 {
		addSwitches(a.threads, switchesOf("/proc", t.peer.pid))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attempt = nil
	t.slow = time.Since(a.began) > t.timeout
	if t.ctx.Err() == nil {
		t.note(err)
	}
	close(a.done)
}

// note logs a change of whether the target answers, or of why it doesn't. The caller
// holds mu.
func (t *target) note(err error) {
	failure := ""
	if err != nil {
		failure = reason(err)
	}
	if failure == t.failure {
		return
	}
	t.failure = failure
	switch {
	case t.log == nil:
	case err == nil:
		t.log.Info("target answers again", "target", t.name)
	default:
		t.log.Warn("target is down", "target", t.name, "reason", failure)
	}
}

// reason returns why a target is down, in the same words as long as it is the same.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer"
	}
	return err.Error()
}

// close waits for the attempt under way, which t.ctx has ended, and closes the
// connection.
func (t *target) close() {
	for {
		t.mu.Lock()
		a := t.attempt
		if a == nil {
			defer t.mu.Unlock()
			t.peer.close()
			return
		}
		t.mu.Unlock()
		<-a.done
	}
}
