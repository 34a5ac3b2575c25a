package observe

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// aside keeps this process off the cores of the threads that it watches, which it would
// disturb otherwise.
type aside struct {
	was  unix.CPUSet // where it might run; empty until it was moved
	from unix.CPUSet // where it doesn't now
}

// keepOff moves the process off some cores, unless there are no others for it.
func (a *aside) keepOff(cores unix.CPUSet) {
	if cores == a.from {
		return
	}
	if a.was.Count() == 0 && unix.SchedGetaffinity(os.Getpid(), &a.was) != nil {
		return
	}
	left := a.was
	for i := range left {
		left[i] &^= cores[i]
	}
	if left.Count() > 0 {
		moveTo(left)
		a.from = cores
	}
}

// back lets the process run where it might before.
func (a *aside) back() {
	if a.was.Count() > 0 {
		moveTo(a.was)
	}
}

// moveTo moves all threads of the process. Those that are started later are where the
// threads that start them are.
func moveTo(cores unix.CPUSet) {
	// A thread that one not yet moved has just started is met in the second round.
	for range 2 {
		entries, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return
		}
		for _, e := range entries {
			if tid, err := strconv.Atoi(e.Name()); err == nil {
				_ = unix.SchedSetaffinity(tid, &cores) // it may have ended
			}
		}
	}
}
