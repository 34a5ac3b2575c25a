package confusion

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/suspicious/cause"
)

// slow is the shortest pass that is of interest.
const slow = 100 * time.Microsecond

// loop is a busy thread on its core that notes its slow passes.
type loop struct {
	core int
	tid  int
	base int64 // CLOCK_MONOTONIC at zero
	zero time.Time

	was   unix.Rusage // the loop's
	order atomic.Pointer[order]
	quit  atomic.Bool
	gone  chan error

	passes [1024]pass
	count  atomic.Uint64 // passes noted; the loop writes
}

// order is work for one pass.
type order struct {
	do   func()
	mark func(it *cause.Iteration) // what a recorder would have recorded of it
	done atomic.Bool
}

// pass is a slow one.
type pass struct {
	cause.Iteration
	order *order

	// Switches that the thread itself counted: since the order began, or since the last
	// slow pass.
	preempted, slept int64
}

func startLoop(core int) (*loop, error) {
	l := &loop{core: core, gone: make(chan error, 1)}
	ready := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		var set unix.CPUSet
		set.Set(core)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			ready <- fmt.Errorf("pin to core %d: %w", core, err)
			return
		}
		l.tid = unix.Gettid()
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			ready <- err
			return
		}
		l.base, l.zero = ts.Nano(), time.Now()
		ready <- nil
		l.run()
		l.gone <- nil
	}()
	if err := <-ready; err != nil {
		return nil, err
	}
	return l, nil
}

func (l *loop) stop() {
	l.quit.Store(true)
	<-l.gone
}

// now returns CLOCK_MONOTONIC in ns.
func (l *loop) now() int64 { return l.base + int64(time.Since(l.zero)) }

func (l *loop) run() {
	last := l.now()
	l.was = counted()
	for !l.quit.Load() {
		o := l.pass()
		now := l.now()
		if now-last > int64(slow) {
			p := &l.passes[l.count.Load()%uint64(len(l.passes))]
			n := counted()
			*p = pass{
				Iteration: cause.Iteration{Start: last, End: now, Hz: 1e9}, order: o,
				preempted: n.Nivcsw - l.was.Nivcsw, slept: n.Nvcsw - l.was.Nvcsw,
			}
			l.was = n
			p.Record = history.Record{End: uint64(now), Cycles: uint64(now - last)}
			if o != nil && o.mark != nil {
				o.mark(&p.Iteration)
			}
			l.count.Add(1)
			now = l.now()
		}
		if o != nil {
			o.done.Store(true)
		}
		last = now
	}
}

// pass does what is ordered. It is no leaf and not inlined, so that the runtime can
// stop the loop at its entry, as it can stop a packet loop's.
//
//go:noinline
func (l *loop) pass() *order {
	o := l.order.Load()
	if o == nil {
		return nil
	}
	l.order.Store(nil)
	l.was = counted()
	o.do()
	return o
}

// counted returns what the kernel counted of this thread.
func counted() (u unix.Rusage) {
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &u) // fails for no valid pointer
	return u
}

// between returns the slow passes of those noted since that touch the time.
func (l *loop) between(since uint64, from, to int64) (list []pass) {
	for n := since; n < l.count.Load(); n++ {
		p := l.passes[n%uint64(len(l.passes))]
		if p.End > from && p.Start < to {
			list = append(list, p)
		}
	}
	return list
}
