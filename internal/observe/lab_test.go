package observe

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/internal/ovslab"
	"github.com/pmdperf/pmdperf/suspicious/cause"
)

// vswitchd returns the process of a lab's ovs-vswitchd.
func vswitchd(t *testing.T, l *ovslab.Lab) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.RunDir, l.Name+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// await returns the first poll-mode thread of a process as soon as there is one.
func await(t *testing.T, pid int) task {
	t.Helper()
	for range 3000 {
		list, err := tasks(pid, DefaultThreads)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			return list[0]
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no poll-mode thread came")
	return task{}
}

// pin puts a thread on one core and returns that: the last that this process may use.
func pin(t *testing.T, tid int) (core int) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			core = i
		}
	}
	set.Zero()
	set.Set(core)
	if err := unix.SchedSetaffinity(tid, &set); err != nil {
		t.Fatal(err)
	}
	return core
}

// hog starts a busy shell on a core.
func hog(t *testing.T, core int) {
	t.Helper()
	sh := exec.Command("sh", "-c", "ulimit -t 60; while :; do :; done")
	sh.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sh.Process.Kill()
		_ = sh.Wait()
	})
	var set unix.CPUSet
	set.Set(core)
	if err := unix.SchedSetaffinity(sh.Process.Pid, &set); err != nil {
		t.Fatal(err)
	}
}

// observeUntil observes until a record is what the test waits for, and returns all.
func observeUntil(t *testing.T, cfg Config, enough func(Record) bool) (records []Record, sum *Summary) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := Run(ctx, cfg, func(r Record) {
		records = append(records, r)
		if enough(r) {
			cancel()
		}
		if s, ok := r.(*Summary); ok {
			sum = s
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		t.Log(r)
		if text, err := json.Marshal(r); err != nil || !json.Valid(text) {
			t.Errorf("as JSON: %s: %v", text, err)
		}
	}
	if sum == nil {
		t.Fatal("no summary")
	}
	return records, sum
}

// preemptedBy reports whether a record is a spell for which a task of some name is to
// blame.
func preemptedBy(r Record, name string) bool {
	s, ok := r.(*Spell)
	return ok && s.Causes[0].Kind == cause.Preempted && s.Causes[0].Name == name
}

// TestVswitchd puts a busy shell on the core of a poll-mode thread of a real
// ovs-vswitchd, and wants it named, also for iterations that Open vSwitch itself finds
// suspicious and logs.
func TestVswitchd(t *testing.T) {
	need.Root(t)
	lab := ovslab.Start(t, ovslab.Options{Spin: true})
	pid := vswitchd(t, lab)
	pmd := await(t, pid)
	core := pin(t, pmd.tid)
	lab.Appctl(t, "dpif-netdev/pmd-perf-log-set", "on", "-us", "1500")
	hog(t, core)
	spells, iterations := 0, 0
	_, sum := observeUntil(t, Config{Find: func() (int, error) { return pid, nil }, Log: filepath.Join(lab.RunDir, "ovs-vswitchd.log")}, func(r Record) bool {
		if preemptedBy(r, "sh") {
			spells++
		}
		if it, ok := r.(*Iteration); ok && it.Thread == pmd.name && len(it.Spells) > 0 && slices.ContainsFunc(it.Causes, func(c cause.Cause) bool { return c.Kind == cause.Preempted && c.Name == "sh" }) {
			iterations++
		}
		return spells >= 3 && iterations >= 1
	})
	if spells < 3 || iterations < 1 {
		t.Fatalf("%d spells were for sh, %d suspicious iterations were explained", spells, iterations)
	}
	if len(sum.Threads) != 1 {
		t.Fatalf("threads: %+v", sum.Threads)
	}
	th := sum.Threads[0]
	if th.Name != pmd.name || th.Core != core || th.Spells < 3 || th.Over < 3 || th.Off <= 0 || th.Wait <= 0 || len(th.Sharers) == 0 {
		t.Errorf("thread: %+v", th)
	}
	if len(sum.Cores) != 1 || sum.Cores[0].Core != core || len(sum.Cores[0].Lines) == 0 {
		t.Errorf("cores: %+v", sum.Cores)
	}
}
