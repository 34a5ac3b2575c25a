package cause

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// procFile is a file of /proc or of a cgroup that is read again and again.
type procFile struct{ fd int }

func openProc(name string) (procFile, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return procFile{-1}, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return procFile{fd}, nil
}

// read returns the file's text, in buf as far as it fits there.
func (f procFile) read(buf []byte) []byte {
	if f.fd < 0 {
		return nil
	}
	n := 0
	for n < len(buf) {
		// A file of /proc may come in pieces.
		m, err := unix.Pread(f.fd, buf[n:], int64(n))
		if err == unix.EINTR {
			continue
		}
		if err != nil || m <= 0 {
			break
		}
		n += m
	}
	return buf[:n]
}

// readOnce returns the start of the file's text, enough for files of one line.
func (f procFile) readOnce(buf []byte) []byte {
	if f.fd < 0 {
		return nil
	}
	n, err := unix.Pread(f.fd, buf, 0)
	if err != nil || n <= 0 {
		return nil
	}
	return buf[:n]
}

func (f procFile) close() {
	if f.fd >= 0 {
		_ = unix.Close(f.fd)
	}
}

// taskProbe reads the counters of one thread.
type taskProbe struct {
	dir             string
	clock           int32 // the thread's CPU clock, 0 if it can't be read
	schedstat, stat procFile
	syscall         procFile
	buf             [512]byte
}

// taskReading is what it reads. Times are ns; -1 stands for not known.
type taskReading struct {
	cpu, wait    int64
	minor, major int64
	state        byte
	call         int
	runtime      collections
}

func openTask(pid, tid int) (t *taskProbe, report []Status) {
	t = &taskProbe{dir: fmt.Sprintf("/proc/%d/task/%d/", pid, tid)}
	clock := int32(^uint32(tid)<<3 | 6) // a thread's CPU clock: MAKE_THREAD_CPUCLOCK(tid, CPUCLOCK_SCHED)
	var ts unix.Timespec
	err := unix.ClockGettime(clock, &ts)
	if err == nil {
		t.clock = clock
	} else {
		err = fmt.Errorf("clocks of other processes can't be read: %w", err)
	}
	report = append(report, statusOf("thread CPU time", err))
	for _, f := range []struct {
		name, probe string
		file        *procFile
	}{
		{"schedstat", "time waiting for a core (schedstat)", &t.schedstat},
		{"stat", "state and page faults (stat)", &t.stat},
		{"syscall", "system call slept in (syscall)", &t.syscall},
	} {
		*f.file, err = openProc(t.dir + f.name)
		if err == nil && len(f.file.readOnce(t.buf[:])) == 0 {
			err = fmt.Errorf("nothing can be read from %s", t.dir+f.name)
		}
		report = append(report, statusOf(f.probe, err))
	}
	return t, report
}

func (t *taskProbe) close() {
	t.schedstat.close()
	t.stat.close()
	t.syscall.close()
}

// readCPU returns the ns that the thread has run, or -1, and the time of the reading.
func (t *taskProbe) readCPU() (cpu, at int64) {
	cpu = -1
	// A reader that loses its core between the two clocks tries again.
	for range 3 {
		var ts unix.Timespec
		begun := monotonic()
		if t.clock != 0 && unix.ClockGettime(t.clock, &ts) == nil {
			cpu = ts.Nano()
		}
		at = monotonic()
		if at-begun < 20_000 {
			break
		}
	}
	return cpu, at
}

func (t *taskProbe) read(r *taskReading) {
	r.wait, r.minor, r.major, r.call = -1, -1, -1, unknownCall
	if run, wait, ok := parseSchedstat(t.schedstat.readOnce(t.buf[:])); ok {
		r.wait = wait
		if t.clock == 0 {
			r.cpu = run
		}
	}
	if state, minor, major, ok := parseStat(t.stat.readOnce(t.buf[:])); ok {
		r.state, r.minor, r.major = state, minor, major
	}
	if call, ok := parseSyscall(t.syscall.readOnce(t.buf[:])); ok {
		r.call = call
	}
}

// wchan returns the kernel function that the thread waits in, "" if it runs or the
// name may not be read.
func (t *taskProbe) wchan() string {
	b, err := os.ReadFile(t.dir + "wchan")
	if err != nil || string(b) == "0" {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// processOf returns the process of a thread.
func processOf(tid int) (pid int, err error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/status")
	if err != nil {
		return 0, err
	}
	pid, ok := parseTgid(b)
	if !ok {
		return 0, fmt.Errorf("no Tgid in /proc/%d/status", tid)
	}
	return pid, nil
}

// commOf returns the name of a thread, "" if it is gone.
func commOf(tid int) string {
	if tid <= 0 {
		return ""
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(tid) + "/comm")
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(b), "\n")
}

func monotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // fails for no valid pointer
	return ts.Nano()
}

// faultPrice returns what a page fault takes here, in ns: the least of a few rounds,
// as others may have the core meanwhile.
func faultPrice() int64 {
	const pages = 64
	page := os.Getpagesize()
	best := int64(0)
	for range 8 {
		mem, err := unix.Mmap(-1, 0, pages*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return best
		}
		_ = unix.Madvise(mem, unix.MADV_NOHUGEPAGE)
		begun := monotonic()
		for i := 0; i < len(mem); i += page {
			mem[i] = 1
		}
		if took := (monotonic() - begun) / pages; best == 0 || took < best {
			best = took
		}
		_ = unix.Munmap(mem)
	}
	return best
}
