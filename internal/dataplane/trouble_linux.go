package dataplane

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/perf/tsc"
)

// trouble holds what the injected stalls of one PMD need.
type trouble struct {
	pages []byte
	pipe  [2]int // nothing is ever written to it
	clock *tsc.Clock
}

// newTrouble returns what the given injections need.
func newTrouble(list []Injection) (*trouble, error) {
	t := &trouble{pipe: [2]int{-1, -1}, clock: tsc.System()}
	for _, in := range list {
		var err error
		switch {
		case in.Kind == InjectFault && t.pages == nil:
			const pages = 1024
			t.pages, err = unix.Mmap(-1, 0, pages*unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		case in.Kind == InjectBlock && t.pipe[0] < 0:
			err = unix.Pipe2(t.pipe[:], unix.O_CLOEXEC)
		}
		if err != nil {
			t.close()
			return nil, fmt.Errorf("prepare injection %s: %w", in, err)
		}
	}
	if t.pages != nil {
		// Huge pages would make a storm of 1024 faults two faults.
		_ = unix.Madvise(t.pages, unix.MADV_NOHUGEPAGE)
	}
	return t, nil
}

// make stalls the caller for about that many ticks.
func (t *trouble) make(kind InjectKind, ticks uint64, now func() uint64) {
	end := now() + ticks
	switch kind {
	case InjectCompute:
		for now() < end {
		}
	case InjectFault:
		step := unix.Getpagesize()
		for at := 0; now() < end; at += step {
			if at >= len(t.pages) {
				_ = unix.Madvise(t.pages, unix.MADV_DONTNEED)
				at = 0
			}
			t.pages[at] = 1
		}
		_ = unix.Madvise(t.pages, unix.MADV_DONTNEED)
	case InjectBlock:
		fds := [1]unix.PollFd{{Fd: int32(t.pipe[0]), Events: unix.POLLIN}}
		for at := now(); at < end; at = now() {
			left := unix.NsecToTimespec(int64(t.clock.Duration(end - at)))
			// Raw, as a C loop would call it: the runtime is not told, so that
			// it does not hand on what the thread holds.
			unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds)), 1, uintptr(unsafe.Pointer(&left)), 0, 0, 0)
		}
	}
}

// close gives back what was opened. It may be called again.
func (t *trouble) close() {
	if t.pages != nil {
		_ = unix.Munmap(t.pages)
		t.pages = nil
	}
	for i, fd := range t.pipe {
		if fd >= 0 {
			_ = unix.Close(fd)
			t.pipe[i] = -1
		}
	}
}

// sleep lets the thread sleep for at least d, with a raw call for the same reason.
// A signal ends it early.
func sleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// sleepExactly makes the kernel wake this thread on time: the default lets a timer
// be 50 us late (prctl(2), PR_SET_TIMERSLACK).
func sleepExactly() error { return unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }
