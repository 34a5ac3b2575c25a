package ovslab

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestLab(t *testing.T) {
	l := Start(t, Options{PMDs: 2, Ports: 3, Queues: 2})
	show := l.Appctl(t, "dpif-netdev/pmd-perf-show")
	for _, want := range []string{"core_id 0:", "core_id 1:", "Histograms"} {
		if !strings.Contains(show, want) {
			t.Errorf("pmd-perf-show has no %q:\n%s", want, show)
		}
	}
	if rxq := l.Appctl(t, "dpif-netdev/pmd-rxq-show"); strings.Count(rxq, "queue-id:") != 6 {
		t.Errorf("pmd-rxq-show doesn't show 3 ports of 2 queues:\n%s", rxq)
	}

	pids, err := filepath.Glob(filepath.Join(l.RunDir, "*.pid"))
	if err != nil || len(pids) != 2 {
		t.Fatalf("pidfiles: %q, %v", pids, err)
	}
	var running []int
	for _, name := range []string{"ovs-vswitchd", "ovsdb-server"} {
		sockets, err := filepath.Glob(filepath.Join(l.RunDir, name+".*.ctl"))
		if err != nil || len(sockets) != 1 {
			t.Fatalf("sockets of %s: %q, %v", name, sockets, err)
		}
		pid, err := strconv.Atoi(strings.Split(filepath.Base(sockets[0]), ".")[1])
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, pid)
	}
	l.Stop()
	l.Stop()
	for _, pid := range running {
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			t.Errorf("process %d after Stop: %v", pid, err)
		}
	}
	if _, err := os.Stat(l.RunDir); !os.IsNotExist(err) {
		t.Errorf("directory after Stop: %v", err)
	}
}
