package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/pmdperf/pmdperf/internal/need"
)

// TestSignals: an interrupt or a request to end ends a run as its duration does.
func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("pmdperf", "run", "--duration", "0", "--rate", "100k")
			var stdout bytes.Buffer
			cmd.Stdout = &stdout
			stderr := start(t, cmd)
			waitFor(t, stderr, "Mpps")
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, stderr); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Fatalf("ended with %v, want status 0", err)
			}
			for _, want := range []string{"- busy iterations:", "Slowest iteration:", "port mem0: rx "} {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("output lacks %q:\n%s", want, stdout.String())
				}
			}
		})
	}
}

// TestSecondSignal: a PMD that is stalled keeps a run from ending at the first
// interrupt, but not from being killed by the next.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("pmdperf", "run", "--duration", "0")
	for range 10 { // all in one pass: a stall of 9 s that begins after less than one
		cmd.Args = append(cmd.Args, "--inject", "block=900ms@901ms")
	}
	stderr := start(t, cmd)
	waitFor(t, stderr, "1 PMD silent")
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
				t.Fatalf("ended with %v, want to be killed by the interrupt", err)
			}
			return
		case <-time.After(20 * time.Millisecond):
			_ = cmd.Process.Signal(syscall.SIGINT) // it may have ended
		}
	}
}

// start starts cmd and returns its standard error. It is killed at the end of the test.
func start(t *testing.T, cmd *exec.Cmd) *bufio.Reader {
	t.Helper()
	pipe, err := cmd.StderrPipe()
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
	return bufio.NewReader(pipe)
}

// waitFor reads lines until one contains want.
func waitFor(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	var read strings.Builder
	for {
		line, err := r.ReadString('\n')
		read.WriteString(line)
		if strings.Contains(line, want) {
			return
		}
		if err != nil {
			t.Fatalf("%q never came: %v, after\n%s", want, err, read.String())
		}
	}
}

// TestTerminal: on a terminal the progress is rewritten in place and gone at the end.
func TestTerminal(t *testing.T) {
	t.Parallel()
	master, slave, err := pty.Open()
	if err != nil {
		need.Skip(t, "no pseudo terminal: "+err.Error())
	}
	defer master.Close()
	cmd := exec.Command("pmdperf", "run", "--duration", "1500ms", "--rate", "100k")
	cmd.Stderr = slave
	err = cmd.Run()
	slave.Close()
	if err != nil {
		t.Fatal(err)
	}
	shown, err := io.ReadAll(master)
	if err != nil && !errors.Is(err, syscall.EIO) { // which is the end where the other side is closed
		t.Fatal(err)
	}
	// What is said of the probes stays, wherever it comes.
	text := regexp.MustCompile(`(^|\r)pmdperf: [^\r\n]*\r\n`).ReplaceAllString(string(shown), "$1")
	if !strings.HasPrefix(text, "\r1 s of 1.5 s: ") && !strings.Contains(text, "\r2 s of 1.5 s: ") {
		t.Errorf("terminal got %q, want a line of progress", text)
	}
	if !strings.HasSuffix(text, " \r") || strings.Contains(text, "\n") {
		t.Errorf("terminal got %q, want a line rewritten in place and blank in the end", text)
	}
}

// TestNoPrivilege: whoever may not open packet sockets is told so.
func TestNoPrivilege(t *testing.T) {
	cmd := exec.Command("pmdperf", "run", "--port", "afpacket:lo")
	if syscall.Geteuid() == 0 {
		cmd.Args = append([]string{need.Tool(t, "setpriv"), "--bounding-set=-net_raw", "--inh-caps=-net_raw"}, cmd.Args...)
		cmd.Path = cmd.Args[0]
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != statusFailed {
		t.Errorf("ended with %v, want exit status %d", err, statusFailed)
	}
	if got, want := stderr.String(), "pmdperf: port afpacket:lo: no privilege for packet sockets: run as root or with CAP_NET_RAW\n"; got != want {
		t.Errorf("message is\n%swant\n%s", got, want)
	}
	if stdout.Len() > 0 {
		t.Errorf("standard output has %q, want nothing", stdout.String())
	}
}
