package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/pmdperf/pmdperf/internal/need"
)

// patience bounds waits that only a defect makes long.
const patience = 60 * time.Second

// terminal is a program in a terminal that tmux plays.
type terminal struct {
	t             *testing.T
	tmux, socket  string
	ended         string // file with the exit status
	width, height int
}

// inTerminal starts pmdperf in a terminal of that size.
func inTerminal(t *testing.T, width, height int, runDir string, args ...string) *terminal {
	t.Helper()
	dir := t.TempDir()
	term := &terminal{t, need.Tool(t, "tmux"), filepath.Join(dir, "tmux"), filepath.Join(dir, "ended"), width, height}
	// tmux forgets a status now and then. The shell is to outlive an interrupt, and stays
	// so that the screen does.
	const shell = `trap : INT; "$@"; echo $? >"$ENDED"; exec cat`
	cmd := append([]string{"-f", os.DevNull, "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height),
		"-e", "OVS_RUNDIR=" + runDir, "-e", "ENDED=" + term.ended, "sh", "-c", shell, "sh", "pmdperf"}, args...)
	t.Cleanup(func() { _ = exec.Command(term.tmux, "-S", term.socket, "kill-server").Run() })
	term.do(cmd...)
	return term
}

func (term *terminal) do(args ...string) string {
	term.t.Helper()
	out, err := exec.Command(term.tmux, append([]string{"-S", term.socket}, args...)...).CombinedOutput()
	if err != nil {
		term.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// screen returns the lines on the screen, and checks that none is too wide.
func (term *terminal) screen() []string {
	term.t.Helper()
	lines := strings.Split(strings.TrimSuffix(term.do("capture-pane", "-p"), "\n"), "\n")
	for len(lines) < term.height { // tmux leaves out what was never written
		lines = append(lines, "")
	}
	if len(lines) > term.height {
		term.t.Errorf("%d lines on a screen of %d", len(lines), term.height)
	}
	for _, line := range lines {
		if w := ansi.StringWidth(line); w > term.width {
			term.t.Errorf("line is %d wide on a screen of %d: %q", w, term.width, line)
		}
	}
	return lines
}

// await waits until the screen is as wanted, and returns it.
func (term *terminal) await(what string, ok func(lines []string) bool) []string {
	term.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		lines := term.screen()
		if ok(lines) {
			return lines
		}
		if time.Now().After(end) {
			term.t.Fatalf("still waiting for %s; the screen is\n%s", what, strings.Join(lines, "\n"))
		}
	}
}

// awaitText waits until a text is on the screen.
func (term *terminal) awaitText(text string) []string {
	term.t.Helper()
	return term.await(strconv.Quote(text), func(lines []string) bool {
		return strings.Contains(strings.Join(lines, "\n"), text)
	})
}

func (term *terminal) keys(keys ...string) {
	term.t.Helper()
	term.do(append([]string{"send-keys"}, keys...)...)
}

func (term *terminal) resize(width, height int) {
	term.t.Helper()
	term.width, term.height = width, height
	term.do("resize-window", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
}

// status waits until the program has ended and returns its exit status.
func (term *terminal) status() string {
	term.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if status, _ := os.ReadFile(term.ended); len(status) > 0 {
			return strings.TrimSpace(string(status))
		}
		if time.Now().After(end) {
			term.t.Fatalf("the program does not end; the screen is\n%s", strings.Join(term.screen(), "\n"))
		}
	}
}
