package main

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestBenchInterrupted: an interrupted experiment prints what it has.
func TestBenchInterrupted(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("pmdperf", "bench", "reload", "--pmds", "1", "--reloads", "1000000", "--window", "200us")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr := start(t, cmd)
	waitFor(t, stderr, "1 PMDs: ") // two of these lines are some seconds apart
	waitFor(t, stderr, "1 PMDs: ")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, stderr); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("ended with %v, want status 0", err)
	}
	for _, want := range []string{", interrupted\n", "min cycles", "lost packets"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, stdout.String())
		}
	}
}
