package cause

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// perfProbe reads the kernel's context switch records of one thread, or of the core
// that the thread has to itself, from a mapped ring (perf_event_open(2)).
type perfProbe struct {
	fd   int
	mem  []byte
	tid  int
	wide bool
	buf  []byte
}

// openPerf opens the records of a thread: when it left its core, preempted or not, and
// when it came back. An ordinary user may have them of his own threads where
// kernel.perf_event_paranoid is 2 or less.
func openPerf(tid int) (*perfProbe, error) {
	return openRing(&perfProbe{tid: tid, fd: -1}, tid, -1, 16)
}

// openPerfWide opens the records of a core, which tell who ran instead. They need
// CAP_PERFMON or kernel.perf_event_paranoid at 0 or less.
func openPerfWide(tid, core int) (*perfProbe, error) {
	return openRing(&perfProbe{tid: tid, fd: -1, wide: true}, -1, core, 64)
}

func openRing(p *perfProbe, tid, core, pages int) (*perfProbe, error) {
	attr := unix.PerfEventAttr{
		Type:        unix.PERF_TYPE_SOFTWARE,
		Config:      unix.PERF_COUNT_SW_DUMMY,
		Size:        uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample_type: unix.PERF_SAMPLE_TID | unix.PERF_SAMPLE_TIME,
		Clockid:     unix.CLOCK_MONOTONIC,
		Bits:        unix.PerfBitUseClockID | unix.PerfBitSampleIDAll | unix.PerfBitContextSwitch | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}
	var err error
	p.fd, err = unix.PerfEventOpen(&attr, tid, core, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, perfError(err)
	}
	size := os.Getpagesize() * (pages + 1)
	p.mem, err = unix.Mmap(p.fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		_ = unix.Close(p.fd)
		return nil, fmt.Errorf("map the records: %w", err)
	}
	p.buf = make([]byte, 0, size)
	return p, nil
}

func perfError(err error) error {
	level, readErr := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	if readErr != nil {
		return err
	}
	return fmt.Errorf("%w (kernel.perf_event_paranoid is %s)", err, strings.TrimSpace(string(level)))
}

func (p *perfProbe) close() {
	_ = unix.Munmap(p.mem)
	_ = unix.Close(p.fd)
}

func (p *perfProbe) page() *unix.PerfEventMmapPage {
	return (*unix.PerfEventMmapPage)(unsafe.Pointer(&p.mem[0]))
}

// drain hands on the events since the last call, all that there are.
func (p *perfProbe) drain(add func(event)) bool {
	page, data := p.page(), p.mem[os.Getpagesize():]
	head, tail := atomic.LoadUint64(&page.Data_head), page.Data_tail
	n, size := head-tail, uint64(len(data))
	if n > size { // cannot be: the kernel drops records rather than overwrite
		n = 0
		add(event{kind: evLost})
	}
	p.buf = p.buf[:0]
	at := tail % size
	first := min(n, size-at)
	p.buf = append(p.buf, data[at:at+first]...)
	p.buf = append(p.buf, data[:n-first]...)
	atomic.StoreUint64(&page.Data_tail, head)
	if !parsePerf(p.buf, p.tid, p.wide, add) {
		add(event{kind: evLost})
	}
	return true
}
