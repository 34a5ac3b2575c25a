package main

import (
	"bytes"
	"io"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// TestBenchCausesInterrupt: an interrupt prints what there is by then.
func TestBenchCausesInterrupt(t *testing.T) {
	cmd := exec.Command("pmdperf", "bench", "causes", "--rounds", "1000000", "--only", "reload")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr := start(t, cmd)
	waitFor(t, stderr, "reload: ")
	time.Sleep(time.Second)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, stderr); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("ended with %v, want status 0", err)
	}
	if !regexp.MustCompile(`(?m)^reload +[1-9][0-9]* +100.0 % `).Match(stdout.Bytes()) {
		t.Errorf("the output has no row of what was made:\n%s", &stdout)
	}
}
