package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/internal/ovslab"
)

// wantMatches wants every pattern to match the text, line by line.
func wantMatches(t *testing.T, text string, patterns ...string) {
	t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile(`(?m)` + p).MatchString(text) {
			t.Errorf("no line matches %s in\n%s", p, text)
		}
	}
}

func TestShow(t *testing.T) {
	t.Parallel()
	dir := runDir(t)
	startDemo(t, dir, 2)
	show := func(args ...string) (stdout, stderr string, status int) {
		t.Helper()
		return command(t, dir, "pmdperf", append([]string{"show", "-t", "demo"}, args...)...)
	}
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		// Each PMD takes 2 ms for one iteration in 1000.
		text, _, _ := show("--no-histograms")
		if strings.Count(text, "\n  time of an iteration") == 2 && len(regexp.MustCompile(`\n  iterations  \d+,\d`).FindAllString(text, -1)) == 2 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the server has no 1000 iterations:\n%s", text)
		}
	}

	text, stderr, status := show("--slowest", "--iterations", "3", "--millis", "5")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, %s", status, stderr)
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("escape sequences where there is no terminal: %q", text)
	}
	wantMatches(t, text,
		`^core 1, NUMA node 0, pmd-c01/id:9, detailed, running$`,
		`^  \d\d:\d\d:\d\d, \d+\.\d s since the last clear$`,
		`^  time +busy \d+\.\d %, idle \d+\.\d %, asleep \d+\.\d %, between iterations \d+\.\d % of all cycles$`,
		`^  iterations  [\d,]+, \S+/s, [\d,]+ cycles \([\d.]+[unm]s\) each$`,
		`^  received    [\d,]+, \S+/s, [\d,]+ cycles \([\d.]+[unm]s\) each, \d+\.\d a batch$`,
		`^  upcalls     [\d,]+, \S+/s, 0 of them lost, 5,000 cycles \(\S+\) each$`,
		`^  time of an iteration( +\d[\d.]*[unm]s){6}$`,
		`^    in cycles( +[\d,.]+M?){6}$`,
		`^  slowest of the last \d+ iterations$`,
		`^  last milliseconds, each ending so long before the newest$`,
		`^  time of an iteration, cycles: [\d,]+ values$`,
		`^  ≤ +35 +[\d,]+ +\d+\.\d% █+$`,
		`^core 3, `)
	if n := strings.Count(text, "\n  time of an iteration, cycles"); n != 2 {
		t.Errorf("histograms of %d PMDs, want 2", n)
	}
	took := regexp.MustCompile(`(?m)^ +\d+ +\d\d:\d\d:\d\d\.\d{6} +([\d.]+)(us|ms) `).FindAllStringSubmatch(text, -1)
	if len(took) != 6 {
		t.Fatalf("%d slowest iterations, want 3 of each PMD:\n%s", len(took), text)
	}
	last := -1.0
	for i, m := range took {
		var v float64
		fmt.Sscan(m[1], &v)
		if m[2] == "ms" {
			v *= 1000
		}
		if i%3 == 0 && v < 2000 || i%3 > 0 && v > last {
			t.Errorf("iteration %d of the slowest took %v us after %v us", i, v, last)
		}
		last = v
	}

	text, _, _ = show("--core", "3", "--no-histograms")
	if strings.Contains(text, "core 1") || !strings.HasPrefix(text, "core 3") || strings.Contains(text, "█") {
		t.Errorf("--core 3 --no-histograms shows\n%s", text)
	}
	for _, test := range []struct {
		args    string
		message string
		status  int
	}{
		{"--core 9", "demo has no PMD on core 9: choose among 1, 3", 1},
		{"--iterations 5000", "--iterations: 5000 is more than the history has: write 1000 or less", 2},
		{"--iterations 0", `--iterations: "0" is no count: write a whole number from 1 up`, 2},
		{"--watch 1", `--watch: "1" is no duration: write a number with its unit, say 10s or 50us`, 2},
		{"--watch 1ms", "--watch: 1ms is too short: write 100ms or more", 2},
		{"extra", `unexpected argument "extra": see 'pmdperf show --help'`, 2},
		{"-t " + dir + "/nobody.ctl", `cannot connect to "` + dir + `/nobody.ctl": connect: no such file or directory`, 1},
	} {
		_, stderr, status := show(strings.Fields(test.args)...)
		if status != test.status || stderr != "pmdperf: "+test.message+"\n" {
			t.Errorf("%s: status %d, message %q; want %d, %q", test.args, status, stderr, test.status, test.message)
		}
	}
}

// TestShowColours: only on a terminal, and not where nobody wants them.
func TestShowColours(t *testing.T) {
	t.Parallel()
	dir := runDir(t)
	startDemo(t, dir, 1)
	for _, test := range []struct {
		env     string
		colours bool
	}{{"X=", true}, {"NO_COLOR=1", false}, {"TERM=dumb", false}} {
		cmd := exec.Command("pmdperf", "show", "-t", "demo")
		cmd.Env = append(os.Environ(), "OVS_RUNDIR="+dir, "TERM=xterm-256color", test.env)
		f, err := pty.Start(cmd)
		if err != nil {
			need.Skip(t, "no pseudo terminal: "+err.Error())
		}
		var text strings.Builder
		buf := make([]byte, 4096)
		for {
			n, err := f.Read(buf)
			text.Write(buf[:n])
			if err != nil { // EIO at the end
				break
			}
		}
		f.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", test.env, err)
		}
		if !strings.Contains(text.String(), "time of an iteration") {
			t.Errorf("%s: the terminal got %q", test.env, text.String())
		}
		if got := strings.Contains(text.String(), "\x1b["); got != test.colours {
			t.Errorf("%s: colours are %v, want %v", test.env, got, test.colours)
		}
	}
}

// TestShowWatch: rates of the interval, in place on a terminal, until interrupted.
func TestShowWatch(t *testing.T) {
	t.Parallel()
	dir := runDir(t)
	d := startDemo(t, dir, 2)
	term := inTerminal(t, 100, 30, dir, "show", "-t", "demo", "--watch", "300ms")
	lines := term.awaitText("time of an iteration")
	if !regexp.MustCompile(`^  \d\d:\d\d:\d\d, \d+\.\d s$`).MatchString(lines[1]) {
		t.Errorf("the second line is %q, want the length of the interval", lines[1])
	}
	if !strings.HasPrefix(lines[0], "core 1") || !strings.HasPrefix(lines[28], "... and ") {
		t.Errorf("the screen does not begin with core 1 and end with what is left:\n%s", strings.Join(lines, "\n"))
	}
	// The counts are those of the interval: a loop that sleeps for 300 us makes less
	// than 3333 iterations a second.
	numbers := regexp.MustCompile(`(?m)^  [\d:]+, ([\d.]+) s$\n.*\n  iterations  ([\d,]+),`)
	var before string
	for range 5 {
		lines = term.await("other values", func(lines []string) bool {
			text := strings.Join(lines, "\n")
			return numbers.MatchString(text) && text != before
		})
		before = strings.Join(lines, "\n")
		m := numbers.FindStringSubmatch(before)
		var seconds, iterations float64
		fmt.Sscan(m[1], &seconds)
		fmt.Sscan(strings.ReplaceAll(m[2], ",", ""), &iterations)
		if iterations == 0 || iterations > 3400*(seconds+0.05) {
			t.Errorf("%v iterations in an interval of %v s", iterations, seconds)
		}
		time.Sleep(300 * time.Millisecond)
	}
	d.kill(t)
	term.awaitText("trying again")
	startDemo(t, dir, 2)
	term.awaitText("core 1")
	term.keys("C-c")
	if status := term.status(); status != "0" {
		t.Errorf("ended with status %s, want 0", status)
	}
}

// TestShowOVS shows a real Open vSwitch.
func TestShowOVS(t *testing.T) {
	t.Parallel()
	lab := ovslab.Start(t, ovslab.Options{PMDs: 2})
	text, stderr, status := command(t, lab.RunDir, "pmdperf", "show", "--slowest", "--millis", "3")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, %s", status, stderr)
	}
	wantMatches(t, text,
		`^core 0, NUMA node 0$`, `^core 1, NUMA node 0$`,
		`^  time +busy 0\.0 %, idle \d+\.\d %, asleep \d+\.\d %$`,
		`^  iterations  [\d,]+, \S+/s, [\d,]+ cycles \([\d.]+[unm]s\) each$`,
		`^  received    0, 0/s$`,
		`^  time of an iteration( +[~≤>]\d[\d.]*[unm]s){6}$`,
		`^  slowest of the last \d+ iterations$`)
}

const (
	stop = syscall.SIGSTOP
	cont = syscall.SIGCONT
)
