package confusion

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// quota is a cgroup of the loop's thread, whose CPU quota can be set and lifted.
type quota struct {
	dir, back string
	id        string
	limit     *os.File // open since there were privileges
	on, off   string
}

// openQuota puts a thread into a new group below its own, of the first version of
// cgroups if the cpu controller is there, else the whole process into one of the second.
func openQuota(tid int) (*quota, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	own := func(controller string) (string, bool) {
		for l := range strings.Lines(string(text)) {
			f := strings.SplitN(strings.TrimSpace(l), ":", 3)
			if len(f) == 3 && strings.Contains(","+f[1]+",", ","+controller+",") {
				return f[2], true
			}
		}
		return "", false
	}
	q := &quota{}
	name := "pmdperf-quota-" + strconv.Itoa(os.Getpid())
	var members, limit string
	if group, ok := own("cpu"); ok {
		for _, top := range []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"} {
			if _, err := os.Stat(filepath.Join(top, "cpu.cfs_quota_us")); err == nil || exists(filepath.Join(top, group, "cpu.cfs_quota_us")) {
				q.dir = filepath.Join(top, group, name)
				break
			}
		}
		members, limit, q.id, q.on, q.off = "tasks", "cpu.cfs_quota_us", strconv.Itoa(tid), "1000", "-1"
	} else if group, ok := own(""); ok {
		q.dir = filepath.Join("/sys/fs/cgroup", group, name)
		_ = os.WriteFile(filepath.Join(filepath.Dir(q.dir), "cgroup.subtree_control"), []byte("+cpu"), 0)
		members, limit, q.id, q.on, q.off = "cgroup.procs", "cpu.max", strconv.Itoa(os.Getpid()), "1000 10000", "max 10000"
	}
	if q.dir == "" {
		return nil, fmt.Errorf("no cgroup with a CPU controller is mounted")
	}
	if err := os.Mkdir(q.dir, 0o755); err != nil {
		return nil, fmt.Errorf("no cgroup can be made: %w", err)
	}
	q.back = filepath.Join(filepath.Dir(q.dir), members)
	if members == "tasks" {
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

// close removes the group, as far as the privileges that are left allow.
func (q *quota) close() {
	if q.limit != nil {
		_ = q.set(false)
		_ = q.limit.Close()
	}
	_ = os.WriteFile(q.back, []byte(q.id), 0)
	_ = os.Remove(q.dir)
}
