package confusion

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// quota is a cgroup of the loop's thread, whose CPU quota can be set and lifted.
type quota struct {
	dir, back string
	id        string
	limit     *os.File // open since there were privileges
	on, off   string
}

// hierarchy is where this process is in the cgroups that have CPU quotas.
type hierarchy struct {
	dir   string // of its group
	first bool   // they are of the first version, which takes single threads
}

// findHierarchy prefers the first version of cgroups if the cpu controller is there.
func findHierarchy() (h hierarchy, err error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return h, err
	}
	unified := ""
	for l := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(l), ":", 3)
		if len(f) != 3 {
			continue
		}
		for _, controller := range strings.Split(f[1], ",") {
			switch {
			case f[0] == "0" && controller == "":
				unified = f[2]
			case controller == "cpu":
				for _, top := range []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"} {
					// The group's path may be that outside of a container.
					for _, dir := range []string{filepath.Join(top, f[2]), top} {
						if exists(filepath.Join(dir, "cpu.shares")) {
							return hierarchy{dir: dir, first: true}, nil
						}
					}
				}
			}
		}
	}
	for _, top := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if dir := filepath.Join(top, unified); unified != "" && exists(filepath.Join(dir, "cgroup.controllers")) {
			return hierarchy{dir: dir}, nil
		}
	}
	return h, errors.New("no cgroup with a CPU controller is mounted")
}

// groupOf returns the directory of the group that process pid makes.
func (h hierarchy) groupOf(pid int) string {
	return filepath.Join(h.dir, "pmdperf-quota-"+strconv.Itoa(pid))
}

// openQuota puts a thread into a new group below its own or, where groups don't take
// single threads, the whole process.
func openQuota(tid int) (*quota, error) {
	h, err := findHierarchy()
	if err != nil {
		return nil, err
	}
	q := &quota{dir: h.groupOf(os.Getpid()), id: strconv.Itoa(tid), on: "1000", off: "-1"}
	members, limit := "tasks", "cpu.cfs_quota_us"
	if !h.first {
		members, limit = "cgroup.procs", "cpu.max"
		q.id, q.on, q.off = strconv.Itoa(os.Getpid()), "1000 10000", "max 10000"
		// It is there already, or making the group's file below fails.
		_ = os.WriteFile(filepath.Join(h.dir, "cgroup.subtree_control"), []byte("+cpu"), 0)
	}
	if err := os.Mkdir(q.dir, 0o755); err != nil {
		return nil, fmt.Errorf("no cgroup can be made: %w", err)
	}
	q.back = filepath.Join(h.dir, members)
	if h.first {
		err = os.WriteFile(filepath.Join(q.dir, "cpu.cfs_period_us"), []byte("10000"), 0)
	}
	if err == nil {
		q.limit, err = os.OpenFile(filepath.Join(q.dir, limit), os.O_WRONLY, 0)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(q.dir, members), []byte(q.id), 0)
	}
	if err != nil {
		q.close()
		return nil, err
	}
	return q, nil
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func (q *quota) set(on bool) error {
	value := q.off
	if on {
		value = q.on
	}
	_, err := q.limit.WriteAt([]byte(value), 0)
	return err
}

// throttled returns for how long the group's threads were kept from running.
func (q *quota) throttled() time.Duration {
	text, err := os.ReadFile(filepath.Join(q.dir, "cpu.stat"))
	if err != nil {
		return 0
	}
	for l := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(l), " ")
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil:
		case key == "throttled_time":
			return time.Duration(n)
		case key == "throttled_usec":
			return time.Duration(n) * time.Microsecond
		}
	}
	return 0
}

// close removes the group, as far as the privileges that are left allow.
func (q *quota) close() {
	if q.limit != nil {
		_ = q.set(false)
		_ = q.limit.Close()
	}
	_ = os.WriteFile(q.back, []byte(q.id), 0)
	_ = os.Remove(q.dir)
}

// clean removes the group of a process that is gone.
func clean(pid int) {
	if h, err := findHierarchy(); err == nil {
		_ = os.Remove(h.groupOf(pid))
	}
}
