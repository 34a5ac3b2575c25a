package cause

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
)

// systemProbe reads counters of the thread's core and cgroup.
type systemProbe struct {
	core   int
	cgroup procFile // which one the thread is in; it may be moved
	groups string   // what cgroup said last
	quotas []procFile
	stat   procFile
	buf    []byte
}

// systemReading is what it reads.
type systemReading struct {
	throttled, count int64 // ns; of all groups from the thread's to the root
	steal, irq       int64 // ticks of 10 ms
}

func openSystem(pid, tid, core int) (s *systemProbe, report []Status) {
	s = &systemProbe{core: core, stat: procFile{-1}, buf: make([]byte, 64<<10)}
	var err error
	s.cgroup, err = openProc(fmt.Sprintf("/proc/%d/task/%d/cgroup", pid, tid))
	if err == nil {
		s.groups = string(s.cgroup.read(s.buf))
		s.quotas, err = openQuotas(s.groups)
	}
	report = append(report, statusOf("cgroup CPU quota (cpu.stat)", err))
	if core < 0 {
		return s, append(report, statusOf("hypervisor steal and interrupt time (/proc/stat)", errNoCore))
	}
	s.stat, err = openProc("/proc/stat")
	if err == nil {
		if _, _, ok := parseCoreTimes(s.stat.read(s.buf), core); !ok {
			err = fmt.Errorf("/proc/stat has no core %d", core)
			s.stat.close()
			s.stat = procFile{-1}
		}
	}
	return s, append(report, statusOf("hypervisor steal and interrupt time (/proc/stat)", err))
}

var errNoCore = errors.New("the thread is on no core of its own")

func (s *systemProbe) close() {
	s.cgroup.close()
	s.stat.close()
	for _, q := range s.quotas {
		q.close()
	}
}

// openQuotas opens cpu.stat of the groups that the text of a cgroup file names, and of
// all above them.
func openQuotas(groups string) ([]procFile, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	v1, v2 := parseCgroups([]byte(groups))
	m1, m2 := parseMounts(mounts)
	var files []procFile
	var buf [4096]byte
	for _, h := range []struct {
		mount cgroupMount
		group string
	}{{m1, v1}, {m2, v2}} {
		if h.mount.dir == "" || h.group == "" {
			continue
		}
		for _, dir := range groupDirs(h.mount, h.group) {
			f, err := openProc(path.Join(dir, "cpu.stat"))
			if err != nil {
				continue
			}
			if _, _, ok := parseCPUStat(f.read(buf[:])); !ok {
				f.close() // without the controller
				continue
			}
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return nil, errors.New("no cgroup with a CPU controller is mounted")
	}
	return files, nil
}

// groupDirs returns the directories of a group and of those above it, as far as they
// are mounted.
func groupDirs(m cgroupMount, group string) []string {
	// In a container the mount's root may be the group itself.
	if m.root != "/" {
		rest, ok := strings.CutPrefix(group, m.root)
		if ok {
			group = rest
		} else {
			group = "/"
		}
	}
	var dirs []string
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		dirs = append(dirs, path.Join(m.dir, group))
		if group == "/" {
			return dirs
		}
	}
}

// follow opens the files of another group if the thread was moved there.
func (s *systemProbe) follow() {
	groups := s.cgroup.read(s.buf)
	if len(groups) == 0 || string(groups) == s.groups {
		return
	}
	s.groups = string(groups)
	for _, q := range s.quotas {
		q.close()
	}
	s.quotas, _ = openQuotas(s.groups)
}

func (s *systemProbe) read() (r systemReading) {
	for _, q := range s.quotas {
		if throttled, count, ok := parseCPUStat(q.read(s.buf)); ok {
			r.throttled += throttled
			r.count += count
		}
	}
	if steal, irq, ok := parseCoreTimes(s.stat.read(s.buf), s.core); ok {
		r.steal, r.irq = steal, irq
	}
	return r
}

// CoreInterrupts returns how many interrupts of every sort a core has had so far, nil where
// that can't be read.
func CoreInterrupts(core int) []Line {
	l, _ := openLines(core)
	if l == nil {
		return nil
	}
	defer l.close()
	return l.read()
}

// lineProbe counts the interrupts of one core by line.
type lineProbe struct {
	core  int
	files []procFile
	buf   []byte
}

func openLines(core int) (*lineProbe, []Status) {
	const what = "interrupts by line (/proc/interrupts, /proc/softirqs)"
	if core < 0 {
		return nil, []Status{statusOf(what, errNoCore)}
	}
	l := &lineProbe{core: core, buf: make([]byte, 256<<10)}
	for _, name := range []string{"/proc/interrupts", "/proc/softirqs"} {
		f, err := openProc(name)
		if err != nil {
			l.close()
			return nil, []Status{statusOf(what, err)}
		}
		l.files = append(l.files, f)
	}
	return l, []Status{statusOf(what, nil)}
}

func (l *lineProbe) close() {
	for _, f := range l.files {
		f.close()
	}
}

func (l *lineProbe) read() []Line {
	var lines []Line
	for _, f := range l.files {
		parseLines(f.read(l.buf), l.core, func(name string, n int64) { lines = append(lines, Line{name, n}) })
	}
	return lines
}
