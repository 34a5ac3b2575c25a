package dataplane

import (
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// startSet is the set of cores that the process may run on, taken the first time
// that anybody asks, which is before any PMD pins the thread it finds itself on.
var startSet = sync.OnceValues(func() (set unix.CPUSet, err error) {
	err = unix.SchedGetaffinity(os.Getpid(), &set)
	return set, err
})

// usableCores returns the cores that this process may run on, in ascending order.
func usableCores() []int {
	set, err := startSet()
	if err != nil {
		return nil
	}
	return coresOf(&set)
}

func coresOf(set *unix.CPUSet) []int {
	var cores []int
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			cores = append(cores, i)
		}
	}
	return cores
}

// keepOff moves all threads of the process away from the given cores, threads
// started later by them too, and returns a function that lets them back. It
// reports false where no core would be left, and changes nothing then.
func keepOff(cores []int) (undo func(), ok bool) {
	all, err := startSet()
	if err != nil {
		return func() {}, false
	}
	rest := all
	for _, c := range cores {
		rest.Clear(c)
	}
	if rest.Count() == 0 {
		return func() {}, false
	}
	moved := setThreads(&rest)
	return func() { setThreads(&all) }, moved
}

// setThreads sets the affinity of every thread of the process. A thread started
// meanwhile by one not yet moved is met in a second round.
func setThreads(set *unix.CPUSet) bool {
	for range 2 {
		entries, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return false
		}
		for _, e := range entries {
			if tid, err := strconv.Atoi(e.Name()); err == nil {
				_ = unix.SchedSetaffinity(tid, set) // it may have ended
			}
		}
	}
	return true
}

// switches returns how often the calling thread left its core since it began: to sleep,
// and because it was taken off. It reports false where that is not known. getrusage(2)
// takes some 370 ns.
func switches() (slept, taken int64, ok bool) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return 0, 0, false
	}
	return int64(u.Nvcsw), int64(u.Nivcsw), true
}

// nap sleeps for about d. time.Sleep would take a millisecond more, since the
// runtime's poller counts in those.
func nap(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil) // a signal ends it early: callers look again
}

// threadID returns the number of the calling thread.
func threadID() int { return unix.Gettid() }
