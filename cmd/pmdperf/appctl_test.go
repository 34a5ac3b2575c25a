package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/internal/ovslab"
)

// command runs a program with $OVS_RUNDIR and returns its output and its status as a
// shell sees it.
func command(t *testing.T, runDir, program string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", `"$@"; exit $?`, "sh", program}, args...)...)
	cmd.Env = append(cmd.Environ(), "OVS_RUNDIR="+runDir)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

const unknownCommand = "\"nope\" is not a valid command (use \"list-commands\" to see a list of valid commands)\n"

// TestAppctl compares the verb with ovs-appctl: the same output and status against our
// server and a real ovs-vswitchd, by both ways to name the target.
func TestAppctl(t *testing.T) {
	t.Parallel()
	ovsAppctl := need.Tool(t, "ovs-appctl")
	dir := runDir(t)
	d := startDemo(t, dir, 2)
	lab := ovslab.Start(t, ovslab.Options{})
	for _, test := range []struct {
		dir, target string
		args        []string
		status      int
	}{
		{dir, "demo", []string{"list-commands"}, 0},
		{dir, "demo", []string{"version"}, 0},
		{dir, "nobody", []string{"version"}, 1},
		{dir, dir + "/nobody.ctl", []string{"version"}, 1},
		{dir, "demo", []string{"nope"}, 2},
		{dir, "demo", []string{"version", "too", "many"}, 2},
		{dir, "demo", []string{"version", "--", "-x"}, 2},
		{dir, "demo", []string{"dpif-netdev/pmd-perf-show", "-pmd", "9"}, 2},
		{dir, "demo", []string{"dpif-netdev/pmd-stats-clear", "-pmd", "3"}, 0},
		{dir, d.socket(), []string{"dpif-netdev/pmd-sleep-show"}, 0},
		{lab.RunDir, lab.Name, []string{"list-commands"}, 0},
		{lab.RunDir, lab.Name, []string{"version"}, 0},
		{lab.RunDir, lab.Name, []string{"dpif/dump-dps"}, 0},
		{lab.RunDir, lab.Name, []string{"dpif/dump-flows", "grüße"}, 2},
		{lab.RunDir, lab.Name, []string{"dpif/dump-flows", "latin1 \xfc"}, 2},
		{lab.RunDir, lab.Name, []string{"nope"}, 2},
	} {
		args := append([]string{"-t", test.target}, test.args...)
		wantOut, wantErr, wantStatus := command(t, test.dir, ovsAppctl, args...)
		stdout, stderr, status := command(t, test.dir, "pmdperf", append([]string{"appctl"}, args...)...)
		if wantStatus != test.status {
			t.Errorf("ovs-appctl %q ends with %d, want %d: %s", args, wantStatus, test.status, wantErr)
		}
		if stdout != wantOut || status != wantStatus {
			t.Errorf("%q: status %d and output %q, ovs-appctl has %d and %q", args, status, stdout, wantStatus, wantOut)
		}
		if status == 2 {
			// What the server said comes first, then who it was.
			said, _, _ := strings.Cut(wantErr, "ovs-appctl: "+test.target)
			if want := said + "pmdperf: " + test.target + ": server returned an error\n"; stderr != want {
				t.Errorf("%q: message\n%swant\n%s", args, stderr, want)
			}
		}
		if status != 0 && stderr == "" {
			t.Errorf("%q ends with %d and says nothing", args, status)
		}
	}
}

// TestAppctlFlags: what only concerns the command line.
func TestAppctlFlags(t *testing.T) {
	t.Parallel()
	dir := runDir(t)
	d := startDemo(t, dir, 2)
	for _, test := range []struct {
		args   []string
		stdout string // a part
		stderr string
		status int
	}{
		{nil, "", "pmdperf: appctl needs a command: 'pmdperf appctl -t ovs-vswitchd list-commands' lists them\n", 1},
		{[]string{"--bogus", "version"}, "", "pmdperf: unknown flag --bogus: see 'pmdperf appctl --help'\n", 1},
		{[]string{"-T", "0", "version"}, "", "pmdperf: --timeout: \"0\" is no number of seconds: write a whole one from 1 up\n", 1},
		{[]string{"--format", "xml", "version"}, "", "pmdperf: --format: unknown \"xml\": choose text or json\n", 1},
		{[]string{"-t", "", "version"}, "", "pmdperf: --target: it is empty: write the name of a program or the path of a socket\n", 1},
		// What follows the command goes to the program.
		{[]string{"-t", "demo", "nope", "-t", "other", "--help"}, "", unknownCommand + "pmdperf: demo: server returned an error\n", 2},
		{[]string{"-t", "demo", "-T", "30", "version"}, "demo", "", 0},
		{[]string{"-t", "demo", "--format", "json", "pmdperf/clock"}, `"tsc_hz":`, "", 0},
		{[]string{"-t", "demo", "--format=json", "version"}, `{"reply-format":"plain","reply":"demo `, "", 0},
		{[]string{"-t", "demo", "--format=json", "nope"}, "", unknownCommand + "pmdperf: demo: server returned an error\n", 2},
		{[]string{"--help"}, "Usage:\n  pmdperf appctl [flags] COMMAND [ARG...]\n", "", 0},
	} {
		stdout, stderr, status := command(t, dir, "pmdperf", append([]string{"appctl"}, test.args...)...)
		if status != test.status || stderr != test.stderr || !strings.Contains(stdout, test.stdout) || (test.stdout == "") != (stdout == "") {
			t.Errorf("%q: status %d, output %q, message %q; want %d, %q, %q", test.args, status, stdout, stderr, test.status, test.stdout, test.stderr)
		}
	}
	if stdout, _, _ := command(t, dir, "pmdperf", "__complete", "appctl", "-t", "demo", ""); !strings.Contains(stdout, "\npmdperf/clock\n") {
		t.Errorf("completion of commands: %q", stdout)
	}
	if stdout, _, _ := command(t, dir, "pmdperf", "__complete", "appctl", "-t", ""); !strings.HasPrefix(stdout, "demo\n") {
		t.Errorf("completion of targets: %q", stdout)
	}

	d.signal(t, stop)
	began := time.Now()
	_, stderr, status := command(t, dir, "pmdperf", "appctl", "-t", "demo", "-T", "1", "version")
	if want := "pmdperf: demo did not answer within 1s\n"; status != 142 || stderr != want {
		t.Errorf("stopped server: status %d, message %q; want 142, %q", status, stderr, want)
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("gave up after %v, want 1 s", took)
	}
	d.signal(t, cont)
}
