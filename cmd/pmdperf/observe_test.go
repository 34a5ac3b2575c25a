package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/internal/ovslab"
)

// TestObserveVswitchd finds a real ovs-vswitchd by its pidfile, has a busy shell on the
// core of its poll-mode thread, and wants that named, in the output and in the file, until
// an interrupt ends it.
func TestObserveVswitchd(t *testing.T) {
	need.Root(t)
	lab := ovslab.Start(t, ovslab.Options{Spin: true})
	t.Setenv("OVS_RUNDIR", lab.RunDir)
	hogPMD(t)

	file := filepath.Join(t.TempDir(), "spells.jsonl")
	cmd := exec.Command("pmdperf", "observe", "--output", file, "--log", filepath.Join(lab.RunDir, "ovs-vswitchd.log"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	stdout := bufio.NewReader(pipe)
	waitFor(t, stdout, "off its core: preempted by sh")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	waitFor(t, stdout, "observed for ")
	waitFor(t, stdout, "preempted by sh: ")
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if !strings.Contains(stderr.String(), "who ran instead") {
		t.Errorf("it doesn't say what it sees: %s", &stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	named := false
	for line := range strings.Lines(string(text)) {
		var r struct {
			Version int
			Type    string
			Causes  []struct{ Kind, Name, How string }
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Version != 1 {
			t.Fatalf("%q: %v", line, err)
		}
		if len(r.Causes) > 0 && r.Causes[0].Kind == "preempted" && r.Causes[0].Name == "sh" && r.Causes[0].How == "exact" {
			named = true
		}
	}
	if !named {
		t.Errorf("nobody is named in the file:\n%s", text)
	}
}

// hogPMD has the first poll-mode thread of the target to have share one core with a busy
// shell.
func hogPMD(t *testing.T) {
	t.Helper()
	pid, err := processOf(defaultTarget)
	if err != nil {
		t.Fatal(err)
	}
	var tid int
	for range 3000 {
		files, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/comm")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if name, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(name), "pmd-c") {
				tid, _ = strconv.Atoi(strings.Split(f, "/")[4])
			}
		}
		if tid != 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if tid == 0 {
		t.Fatal("no poll-mode thread came")
	}
	sh := exec.Command("sh", "-c", "ulimit -t 60; while :; do :; done")
	sh.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sh.Process.Kill()
		_ = sh.Wait()
	})
	var may, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		t.Fatal(err)
	}
	core := 0
	for !may.IsSet(core) {
		core++
	}
	one.Set(core)
	for _, id := range []int{tid, sh.Process.Pid} {
		if err := unix.SchedSetaffinity(id, &one); err != nil {
			t.Fatal(err)
		}
	}
}
