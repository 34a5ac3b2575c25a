package explain

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// How a Go stack is found without stopping anything: the runtime's own means would stop
// the world, which waits for a loop that is stuck and holds up all others.
//
// While the thread runs, the kernel samples its frame pointers for a while. While it
// sleeps, the kernel tells its program counter and stack pointer, and what lies above
// that on its stack, read from /proc/self/mem, does not change.

const (
	sampleFor  = 30 * time.Millisecond
	sampleHz   = 1000
	maxFrames  = 64
	stackBytes = 64 << 10 // looked at from the stack pointer on
	maxFirst   = 512      // words from there to the first frame
)

// goStack returns the Go stack of a thread of this process, innermost first, as
// "main.loop (main.go:12)".
func goStack(tid int) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/syscall", tid))
	if err != nil {
		return nil, err
	}
	var pcs []uintptr
	if sp, pc, ok := parsePointers(string(b)); ok {
		pcs, err = walk(sp, pc)
	} else {
		pcs, err = sampleStack(tid)
	}
	if err != nil {
		return nil, err
	}
	return frames(pcs), nil
}

// parsePointers reads stack pointer and program counter from the file syscall of a thread
// that sleeps.
func parsePointers(s string) (sp, pc uintptr, ok bool) {
	fields := strings.Fields(s)
	if len(fields) != 9 && len(fields) != 3 {
		return 0, 0, false // it runs
	}
	var v [2]uintptr
	for i, f := range fields[len(fields)-2:] {
		n, err := strconv.ParseUint(f, 0, 64)
		if err != nil {
			return 0, 0, false
		}
		v[i] = uintptr(n)
	}
	return v[0], v[1], true
}

// walk returns the program counters of a thread that sleeps: its own, where it returns
// to if that has no frame, and from the first frame on those of all frames, which are
// linked (frame pointer, return address).
func walk(sp, pc uintptr) ([]uintptr, error) {
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		return nil, err
	}
	defer mem.Close()
	b := make([]byte, stackBytes)
	n, _ := mem.ReadAt(b, int64(sp)) // up to where the stack ends
	words := make([]uintptr, n/8)
	for i := range words {
		words[i] = uintptr(binary.NativeEndian.Uint64(b[8*i:]))
	}
	return link(words, sp, pc), nil
}

// link is walk for the words from the stack pointer on. Where the first frame is, is not
// known, and what looks like one may be a remainder of an earlier call: the first is taken
// that leads to the end of the stack, or else the one that leads furthest.
func link(words []uintptr, sp, pc uintptr) []uintptr {
	pcs := []uintptr{pc + 1} // callers' are those that they return to
	if len(words) > 0 && isCode(words[0]) {
		pcs = append(pcs, words[0])
	}
	var furthest []uintptr
	for i := range min(len(words), maxFirst) {
		chain, end := follow(words, sp, i)
		if len(chain) > len(furthest) || end {
			furthest = chain
		}
		if end {
			break
		}
	}
	return append(pcs, furthest...)
}

// follow returns the return addresses from the frame at words[i] on, and whether they
// lead to the end of the stack.
func follow(words []uintptr, sp uintptr, i int) (pcs []uintptr, end bool) {
	for i+1 < len(words) && len(pcs) < maxFrames && isCode(words[i+1]) {
		next := words[i]
		above := next > sp+uintptr(8*i) && next < sp+uintptr(8*len(words)) && next%8 == 0
		if !above && next != 0 {
			break
		}
		pcs = append(pcs, words[i+1])
		if next == 0 {
			return pcs, len(pcs) > 1
		}
		i = int(next-sp) / 8
	}
	return pcs, false
}

func isCode(v uintptr) bool { return runtime.FuncForPC(v) != nil }

// sampleStack samples a thread that runs.
func sampleStack(tid int) ([]uintptr, error) {
	attr := unix.PerfEventAttr{
		Type:        unix.PERF_TYPE_SOFTWARE,
		Config:      unix.PERF_COUNT_SW_CPU_CLOCK,
		Size:        uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample:      sampleHz,
		Sample_type: unix.PERF_SAMPLE_CALLCHAIN,
		Bits:        unix.PerfBitFreq | unix.PerfBitExcludeCallchainKernel | unix.PerfBitExcludeHv,
	}
	fd, err := unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil { // without privileges not while it runs in the kernel
		attr.Bits |= unix.PerfBitExcludeKernel
		if fd, err = unix.PerfEventOpen(&attr, tid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC); err != nil {
			return nil, fmt.Errorf("perf_event_open: %w", err)
		}
	}
	defer unix.Close(fd)
	page := os.Getpagesize()
	const pages = 16 // a thousand bytes each for the samples
	mem, err := unix.Mmap(fd, 0, (1+pages)*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the samples: %w", err)
	}
	defer unix.Munmap(mem)
	time.Sleep(sampleFor)
	head := atomic.LoadUint64(&(*unix.PerfEventMmapPage)(unsafe.Pointer(&mem[0])).Data_head)
	pcs := lastChain(mem[page:][:min(head, uint64(pages*page))])
	if len(pcs) == 0 {
		return nil, errors.New("it did not run while it was sampled")
	}
	return pcs, nil
}

// lastChain returns the user's part of the last call chain among perf's records.
func lastChain(b []byte) (last []uintptr) {
	const header = 8
	for len(b) >= header {
		kind, size := binary.NativeEndian.Uint32(b), int(binary.NativeEndian.Uint16(b[6:]))
		if size < header || size > len(b) {
			break
		}
		if kind == unix.PERF_RECORD_SAMPLE && size >= header+8 {
			body := b[header:size]
			n := min(binary.NativeEndian.Uint64(body), uint64(len(body)/8-1), maxFrames)
			var chain []uintptr
			for i := range n {
				// Values at the upper end say whose part follows.
				if v := binary.NativeEndian.Uint64(body[8+8*i:]); int64(v) > 0 {
					chain = append(chain, uintptr(v))
				}
			}
			if len(chain) > 0 {
				chain[0]++ // as for the callers
				last = chain
			}
		}
		b = b[size:]
	}
	return last
}

// frames names the functions of a stack.
func frames(pcs []uintptr) []string {
	var names []string
	for fs := runtime.CallersFrames(pcs); ; {
		f, more := fs.Next()
		if f.Function != "" && f.Function != "runtime.goexit" {
			names = append(names, fmt.Sprintf("%s (%s:%d)", f.Function, filepath.Base(f.File), f.Line))
		}
		if !more || len(names) == maxFrames {
			return names
		}
	}
}
