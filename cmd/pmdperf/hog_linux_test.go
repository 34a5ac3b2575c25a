package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/suspicious"
)

// TestRunHog: a busy task on the PMD's core is named.
func TestRunHog(t *testing.T) {
	need.Root(t)
	if need.Race {
		t.Skip("with the race detector the rate limit has run out of reports when the probes are open")
	}
	hog := exec.Command("sh", "-c", "ulimit -t 60; while :; do :; done")
	hog.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := hog.Start(); err != nil {
		t.Fatal(err)
	}
	defer hog.Wait()
	defer hog.Process.Kill()
	// The PMD is on the last core that there is.
	var set, last unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			last.Zero()
			last.Set(i)
		}
	}
	if err := unix.SchedSetaffinity(hog.Process.Pid, &last); err != nil {
		t.Fatal(err)
	}

	for _, duration := range []string{"2s", "5s", "15s"} {
		path := filepath.Join(t.TempDir(), "flight")
		var stdout, stderr bytes.Buffer
		if status := run([]string{"run", "--duration", duration, "--inject", "none", "--flight-record", path}, nil, &stdout, &stderr); status != 0 {
			t.Fatalf("exit status %d: %s", status, stderr.String())
		}
		if strings.Contains(stderr.String(), "no probe of context switches by BPF") {
			need.Skip(t, "no BPF: "+stderr.String())
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			var f suspicious.FlightRecord
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				t.Fatal(err)
			}
			for _, c := range f.Causes {
				if c.PID == hog.Process.Pid {
					if c.Kind != suspicious.CausePreempted || c.Title() != "preempted by sh" || c.How != suspicious.Exact {
						t.Errorf("the hog is %v", c)
					}
					return
				}
			}
		}
	}
	t.Error("the hog is in no cause")
}
