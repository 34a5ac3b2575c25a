package main

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/export/appctl/pmd"
	"github.com/pmdperf/pmdperf/perf"
)

// demoVariable has the test binary be a server called "demo" in the directory that it
// names, until its standard input ends.
const demoVariable = "PMDPERF_TEST_DEMO"

// demoPMDs is the number of PMDs of that server, on cores 1, 3, 5 ...
const demoPMDs = "PMDPERF_TEST_DEMO_PMDS"

// TestDemo is no test but that server.
func TestDemo(t *testing.T) {
	dir := os.Getenv(demoVariable)
	if dir == "" {
		t.Skip("a server for other tests")
	}
	n, _ := strconv.Atoi(os.Getenv(demoPMDs))
	registry := new(perf.Registry)
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for i := range max(n, 2) {
		core := 2*i + 1
		r, err := registry.New(perf.Config{Core: core, ID: 8 + core, Level: perf.Detailed, Polling: perf.Polling{
			RxQueues: []perf.Queue{{Port: "p0", ID: i}, {Port: "vhu0", ID: i, Size: 1024}},
			TxQueues: []perf.Queue{{Port: "p0", ID: i}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() { demoLoop(ctx, t, r, i) })
	}
	s, err := appctl.Listen(appctl.Config{RunDir: dir, Name: "demo"}, pmd.Commands(registry, pmd.Options{})...)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(os.Stdout, "serving\n")
	io.Copy(io.Discard, os.Stdin)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	cancel()
	running.Wait()
}

// demoLoop polls at an easy pace, and takes 2 ms once in a while. PMD 0 has twice the
// packets of the others.
func demoLoop(ctx context.Context, t *testing.T, r *perf.Recorder, i int) {
	defer r.Close()
	if err := r.Start(); err != nil {
		t.Error(err)
		return
	}
	for n := 0; ctx.Err() == nil; n++ {
		r.Poll(0)
		if n%4 != 0 {
			packets := 32 - 16*min(i, 1)
			r.Batch(packets, 0)
			r.Count(perf.EMCHit, uint64(packets-1))
			r.Upcall(5000, true)
			for end := time.Now().Add(time.Duration(20+rand.IntN(60)) * time.Microsecond); time.Now().Before(end); {
			}
		}
		if n%1000 == 999 {
			for end := time.Now().Add(2 * time.Millisecond); time.Now().Before(end); {
			}
		}
		r.Poll(1)
		r.Batch(n%3, rand.IntN(40))
		r.Tx(20, 1)
		r.End()
		r.SleepBegin()
		time.Sleep(300 * time.Microsecond)
		r.SleepEnd()
	}
}

// demo is a server that runs as a process of its own.
type demo struct {
	cmd *exec.Cmd
	dir string
}

// runDir makes a directory for sockets; t.TempDir is too long for the path of one when
// test names are.
func runDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pmdperf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// startDemo starts a server, which ends with the test.
func startDemo(t testing.TB, dir string, pmds int) *demo {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestDemo$")
	cmd.Env = append(os.Environ(), demoVariable+"="+dir, demoPMDs+"="+strconv.Itoa(pmds))
	stdin, err := cmd.StdinPipe() // closed when this process dies
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Process.Signal(syscall.SIGCONT) // a test may have failed while it was stopped
		_ = cmd.Wait()                          // a killed one ends with an error
	})
	out := bufio.NewReader(stdout)
	for {
		line, err := out.ReadString('\n')
		if err != nil {
			t.Fatalf("the server did not start: %v %s", err, line)
		}
		if strings.Contains(line, "serving") {
			break
		}
	}
	go io.Copy(io.Discard, out)
	return &demo{cmd, dir}
}

// kill ends the server as by kill -9: its files stay.
func (d *demo) kill(t testing.TB) {
	t.Helper()
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = d.cmd.Wait()
}

func (d *demo) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// socket returns the path of the server's socket.
func (d *demo) socket() string {
	return filepath.Join(d.dir, "demo."+strconv.Itoa(d.cmd.Process.Pid)+".ctl")
}
