package perf

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Pin ties the calling goroutine to its operating system thread, the thread to a
// processor core, and gives the thread the name that Open vSwitch would give it, as
// "pmd-c01/id:8", by which people and exporters find it. The thread is never given
// back: it ends with the goroutine.
func Pin(core, id int) error {
	runtime.LockOSThread()
	if core < 0 || core >= len(unix.CPUSet{})*64 {
		return fmt.Errorf("core %d: no such core", core)
	}
	var set unix.CPUSet
	set.Set(core)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("core %d: pinning a thread to it: %w (is it in this process's CPU set?)", core, err)
	}
	var name [16]byte
	copy(name[:15], ThreadName(core, id))
	if err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name)), 0, 0, 0); err != nil {
		return fmt.Errorf("naming the thread of core %d: %w", core, err)
	}
	return nil
}

// threadID returns the kernel's number of the calling thread.
func threadID() int { return unix.Gettid() }
