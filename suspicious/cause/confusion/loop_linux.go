package confusion

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/suspicious/cause"
)

// slow is the shortest pass that is of interest.
const slow = 100 * time.Microsecond

// loop is a busy thread on its core that notes its slow passes, and what the kernel
// counted of the thread meanwhile.
type loop struct {
	core int
	tid  int
	base int64 // CLOCK_MONOTONIC at zero
	zero time.Time

	schedstat int      // open file
	was       counters // the loop's: last read
	spins     int64    // that take a millisecond
	sum       uint64   // of what they come to
	order     atomic.Pointer[order]
	quit      atomic.Bool
	gone      chan struct{}

	passes [1024]pass
	other  atomic.Int32  // schedstat of another task, an open file; 0 for none
	count  atomic.Uint64 // passes noted; the loop writes
	end    atomic.Int64  // of the last pass
}

// order is work for one pass.
type order struct {
	do   func()
	mark func(it *cause.Iteration, took time.Duration) // what a recorder would have recorded of it
	done atomic.Bool
}

// pass is a slow one.
type pass struct {
	cause.Iteration
	order *order
	truth truth
}

func startLoop(core int) (*loop, error) {
	l := &loop{core: core, gone: make(chan struct{}), schedstat: -1}
	ready := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		defer close(l.gone)
		err := l.open()
		ready <- err
		if err == nil {
			l.deep(512)
		}
		if l.schedstat >= 0 {
			_ = unix.Close(l.schedstat)
		}
	}()
	if err := <-ready; err != nil {
		return nil, err
	}
	return l, nil
}

// open makes the loop's thread ready.
func (l *loop) open() (err error) {
	var set unix.CPUSet
	set.Set(l.core)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin to core %d: %w", l.core, err)
	}
	l.tid = unix.Gettid()
	l.schedstat, err = unix.Open("/proc/thread-self/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("what the kernel counts of a thread: %w", err)
	}
	// Both clocks at once: others may have the core in between.
	for took := time.Hour; took > 10*time.Microsecond; took = time.Since(l.zero) {
		var ts unix.Timespec
		l.zero = time.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			return err
		}
		l.base = ts.Nano()
	}
	if l.read(0); l.was.wait < 0 {
		return errors.New("the kernel doesn't count how long threads wait for a core (/proc/thread-self/schedstat)")
	}
	// The quickest of a few, as others may have the core meanwhile.
	for range 8 {
		const try = 100_000
		begun := l.now()
		l.sum ^= spin(try)
		l.spins = max(l.spins, try*int64(time.Millisecond)/max(l.now()-begun, 1))
	}
	return nil
}

func (l *loop) stop() {
	l.quit.Store(true)
	<-l.gone
}

// now returns CLOCK_MONOTONIC in ns.
func (l *loop) now() int64 { return l.base + int64(time.Since(l.zero)) }

// compute works for d of CPU time, however long it takes.
func (l *loop) compute(d time.Duration) { l.sum ^= spin(l.spins * int64(d) / int64(time.Millisecond)) }

// spin goes round n times.
//
//go:noinline
func spin(n int64) (x uint64) {
	x = 1
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// deep runs the loop under so many frames of 8 KiB, which the garbage collector stops it
// to look through: it would not be slow for long otherwise.
//
//go:noinline
func (l *loop) deep(n int) (last *byte) {
	if n == 0 {
		l.run()
		return nil
	}
	var frame [1024]*byte
	frame[n%len(frame)] = l.deep(n - 1)
	return frame[len(frame)-n%len(frame)-1]
}

// run is the loop. Its counters are read so often that a slow pass has its own. What that
// takes is the next pass's: threads are throttled as they leave the kernel.
func (l *loop) run() {
	const often = int64(20 * time.Microsecond)
	last := l.now()
	l.read(last)
	for !l.quit.Load() {
		o := l.pass()
		now := l.now()
		if now-last > int64(slow) {
			was := l.was
			l.read(now)
			p := &l.passes[l.count.Load()%uint64(len(l.passes))]
			*p = pass{Iteration: cause.Iteration{Start: last, End: now, Hz: 1e9}, order: o, truth: l.was.since(&was)}
			p.Record = history.Record{End: uint64(now), Cycles: uint64(now - last)}
			if o != nil && o.mark != nil {
				o.mark(&p.Iteration, p.Duration())
			}
			l.count.Add(1)
		} else if now-l.was.at > often {
			l.read(now)
		}
		if o != nil {
			o.done.Store(true)
		}
		last = now
		l.end.Store(last)
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
	o.do()
	return o
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

// counters are what the kernel had counted of the loop's thread at a time.
type counters struct {
	at        int64
	cpu, wait int64 // ns; wait is -1 if not known
	torn      int64 // ns that reading took more than it does
	other     int64 // the other task ran
}

// read reads the counters at a time that it is given, past the runtime, which would take
// note of system calls.
func (l *loop) read(at int64) {
	var ts unix.Timespec
	_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_THREAD_CPUTIME_ID, uintptr(unsafe.Pointer(&ts)), 0)
	c := counters{at: at, cpu: ts.Nano(), wait: number(l.schedstat, 1)}
	if other := l.other.Load(); other != 0 {
		c.other = number(int(other), 0)
	}
	c.torn = max(0, l.now()-at-int64(slow)/2)
	l.was = c
}

// number reads a number of an open schedstat file.
func number(fd, i int) int64 {
	var text [64]byte
	n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)), 0, 0, 0)
	if errno != 0 {
		n = 0
	}
	return field(text[:n], i)
}

// field returns a number of a schedstat file, -1 if it is not there: 0 is for how many ns
// the thread had a core, 1 for how many it waited for one.
func field(text []byte, i int) int64 {
	n, digits := int64(0), 0
	for _, c := range text {
		switch {
		case c == ' ' || c == '\n':
			if i == 0 && digits > 0 {
				return n
			}
			i, n, digits = i-1, 0, 0
		case c >= '0' && c <= '9' && digits < 18:
			n, digits = 10*n+int64(c-'0'), digits+1
		default:
			return -1
		}
	}
	return -1
}

// since returns what was counted since another reading.
func (c *counters) since(was *counters) truth {
	t := truth{Over: time.Duration(c.at - was.at), CPU: time.Duration(c.cpu - was.cpu), Wait: time.Duration(c.wait - was.wait)}
	t.Torn = time.Duration(was.torn + c.torn)
	if was.other > 0 {
		t.Other = time.Duration(c.other - was.other)
	}
	t.Sleep = max(0, t.Over-t.CPU-t.Wait)
	return t
}
