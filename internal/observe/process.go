package observe

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// task is a thread as /proc shows it.
type task struct {
	tid   int
	name  string
	begun uint64 // when it was started; tells it from a later one with the same id
	core  int    // the only one that it may run on, or -1
}

// tasks returns the threads of a process whose names match a pattern, in
// order of their ids. The error says that there is no such process.
func tasks(pid int, pattern string) ([]task, error) {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("no process %d: %w", pid, err)
	}
	var list []task
	for _, e := range entries {
		tid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(path.Join(dir, e.Name(), "stat"))
		if err != nil {
			continue // it has ended
		}
		name, begun, ok := parseStat(stat)
		if ok && Match(pattern, name) {
			list = append(list, task{tid, name, begun, pinnedTo(tid)})
		}
	}
	return list, nil
}

// parseStat reads /proc/PID/task/TID/stat (proc(5)): the thread's name and its start.
func parseStat(b []byte) (name string, begun uint64, ok bool) {
	// The name is in parentheses and may hold some itself.
	from, to := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if from < 0 || to < from {
		return "", 0, false
	}
	const start = 22 - 3 // field 22; the first after the name is 3
	fields := strings.Fields(string(b[to+1:]))
	if len(fields) <= start {
		return "", 0, false
	}
	begun, err := strconv.ParseUint(fields[start], 10, 64)
	return string(b[from+1 : to]), begun, err == nil
}

// pinnedTo returns the only core that a thread may run on, or -1.
func pinnedTo(tid int) int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(tid, &set) != nil || set.Count() != 1 {
		return -1
	}
	for core := range len(set) * 64 {
		if set.IsSet(core) {
			return core
		}
	}
	return -1
}

func monotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // fails for no valid pointer
	return ts.Nano()
}
