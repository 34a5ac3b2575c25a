package pmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/internal/need"
)

// These tests have Open vSwitch's own client ask the program itself, pmdperf run.

// program is pmdperf, built once for a test and what it starts.
type program struct {
	path string
	dir  string // the run directory
}

func buildProgram(t *testing.T) *program {
	t.Helper()
	need.Tool(t, "ovs-appctl")
	dir, err := os.MkdirTemp("", "pmd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &program{filepath.Join(dir, "pmdperf"), filepath.Join(dir, "run")}
	if out, err := exec.Command("go", "build", "-o", p.path, "../../../cmd/pmdperf").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return p
}

// running is a process of the program.
type running struct {
	*program
	cmd    *exec.Cmd
	name   string
	core   string
	stderr bytes.Buffer
	ended  chan struct{} // closed when it has, with err
	err    error
}

// start runs the program under a name until the test ends. It forwards few packets and
// sleeps in between: the machine has other work.
func (p *program) start(t *testing.T, name string) *running {
	t.Helper()
	r := &running{program: p, name: name, ended: make(chan struct{})}
	r.cmd = exec.Command(p.path, "run", "--duration", "0", "--rundir", p.dir, "--name", name,
		"--rate", "20k", "--pmd-maxsleep", "500us", "--inject", "none", "--format", "json")
	r.cmd.Stderr = &r.stderr
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		r.err = r.cmd.Wait()
		close(r.ended)
	}()
	t.Cleanup(r.kill)
	var got string
	await(t, name+" answers", func() bool {
		select {
		case <-r.ended:
			t.Fatalf("it ended: %v, %s", r.err, r.stderr.String())
		default:
		}
		stdout, _, status := r.ask(t, name, "pmdperf/level")
		got = stdout
		return status == 0 && strings.Contains(got, "running")
	})
	r.core = regexp.MustCompile(`(?m)^ *(\d+)  detailed`).FindStringSubmatch(got)[1]
	return r
}

// ask has ovs-appctl ask a target and returns its status as a shell sees it.
func (p *program) ask(t *testing.T, target string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	args = append([]string{"-c", `"$@"; exit $?`, "sh", need.Tool(t, "ovs-appctl"), "-t", target}, args...)
	cmd := exec.CommandContext(soon(t), "sh", args...)
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+p.dir)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() < 0 {
		t.Fatalf("ovs-appctl %q: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (r *running) socket() string {
	return fmt.Sprintf("%s/%s.%d.ctl", r.dir, r.name, r.cmd.Process.Pid)
}

func (r *running) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// kill kills the process, if it lives, and waits for its end.
func (r *running) kill() {
	_ = r.cmd.Process.Kill() // an error says that it has ended
	<-r.ended
}

func (p *program) files(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(p.dir + "/*")
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestRun asks for everything, by the name and by the path of the socket.
func TestRun(t *testing.T) {
	t.Parallel()
	r := buildProgram(t).start(t, "demo")
	for _, test := range []struct {
		command string // CORE stands for the core
		pattern string // of the output, or of the message if the status isn't 0
		status  int
	}{
		{"version", `^demo \(pmdperf\) \S+\n$`, 0},
		{"list-commands", `(?s)^The available commands are:\n  dpif-netdev/pmd-perf-log-set on\|off.*\n  exit  .*\n  version  `, 0},
		{"dpif-netdev/pmd-perf-show", `(?s)^\nTime: .*\npmd thread numa_id \d+ core_id CORE:\n.*\n  Iterations: .*\nHistograms\n`, 0},
		{"dpif-netdev/pmd-perf-show -it 5 -ms 5", `(?s)Histograms.*\n   iter [^\n]*(\n   \d+ [^\n]*){5}\n\n   ms [^\n]*(\n  +\d+ [^\n]*){5}`, 0},
		{"dpif-netdev/pmd-perf-show -ms 3 -pmd CORE -nh -it 2 ovs-netdev", `(?s)core_id CORE:\n`, 0},
		{"dpif-netdev/pmd-perf-show -it 5000", `\nnote: the history is of the last 1000 iterations, which is all that -it 5000 can show\n$`, 0},
		{"dpif-netdev/pmd-perf-show -pmd 9999", `^there is no PMD on core 9999; the only PMD is on core CORE\n`, 2},
		{"dpif-netdev/pmd-perf-show -pmd CORE -pmd CORE", `^-pmd is given twice; the only PMD is on core CORE\nUsage: ovs-appctl dpif-netdev/pmd-perf-show \[-nh\]`, 2},
		{"dpif-netdev/pmd-perf-show nosuch", `^there is no datapath "nosuch"`, 2},
		{"dpif-netdev/pmd-stats-show", `(?m)^pmd thread numa_id \d+ core_id CORE:\n  packets received: \d+\n`, 0},
		{"dpif-netdev/pmd-rxq-show -secs 5", `^Displaying last 5 seconds pmd usage %\npmd thread numa_id \d+ core_id CORE:\n  isolated : (true|false)\n  port: \S+ +queue-id: +0 \(enabled\)`, 0},
		{"dpif-netdev/pmd-sleep-show", `^Default max sleep:  500 us\npmd thread numa_id \d+ core_id CORE:\n  max sleep:  500 us\n$`, 0},
		{"dpif-netdev/pmd-perf-log-set -us 1000 -q 64", `(?m)^core CORE: (on|off), .*us_thr=1000, q_thr=64`, 0},
		{"dpif-netdev/pmd-perf-log-set sideways", `^"sideways" is neither on nor off\nUsage: `, 2},
		{"dpif-netdev/pmd-stats-clear", `^$`, 0},
		{"pmdperf/percentiles", `(?m)^ *CORE  cycles_per_iteration +cycles `, 0},
		{"pmdperf/percentiles -hdr cycles_per_iteration", `^ Value\tPercentile\tTotalCount\t1/\(1-Percentile\)\n\n(.*\n)+#\[Mean    = `, 0},
		{"pmdperf/percentiles nosuch", `^there is no histogram "nosuch"; there are cycles_per_iteration, `, 2},
		{"pmdperf/reloads", `(?m)^ *CORE +\d+ `, 0},
		{"pmdperf/packet-sizes", `(?m)^ *CORE +\S+ +rx 0 `, 0},
		{"pmdperf/level", `(?m)^ *CORE  detailed  running$`, 0},
		{"pmdperf/level basic", `(?m)^ *CORE  basic  `, 0},
		{"pmdperf/level detailed -pmd CORE", `(?m)^ *CORE  detailed  `, 0},
		{"pmdperf/overhead", `(?m)^ *CORE  answering +\d+ `, 0},
		{"pmdperf/clock", `^source: `, 0},
		{"nosuch", `^"nosuch" is not a valid command \(use "list-commands" to see a list of valid commands\)\n`, 2},
		{"version x", `^"version" command takes at most 0 arguments\n`, 2},
		{"dpif-netdev/pmd-stats-show grüße", `^there is no datapath "grüße"`, 2},
		{"dpif-netdev/pmd-stats-show \xff", `^there is no datapath `, 2},
		{"-T 60 pmdperf/level", `running`, 0},
	} {
		command := strings.Fields(strings.ReplaceAll(test.command, "CORE", r.core))
		pattern := regexp.MustCompile(strings.ReplaceAll(test.pattern, "CORE", r.core))
		for _, target := range []string{"demo", r.socket()} {
			got, stderr, status := r.ask(t, target, command...)
			if test.status != 0 {
				got = stderr
			}
			if status != test.status || !pattern.MatchString(got) {
				t.Errorf("-t %s %q: status %d, want %d; got\n%.2000s\nwant /%s/", target, command, status, test.status, got, pattern)
			}
		}
	}

	// The thread is found as exporters look for it.
	statuses, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", r.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?s)^Name:\tpmd-c\d+/id:\d+\n.*\nCpus_allowed_list:\t` + r.core + `\n.*\nnonvoluntary_ctxt_switches:\t\d+\n`)
	found := 0
	for _, path := range statuses {
		if status, err := os.ReadFile(path); err == nil && want.Match(status) {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d threads are PMDs by their names, on core %s alone", found, r.core)
	}

	// -T gives up on a process that is stopped.
	r.signal(t, syscall.SIGSTOP)
	if stdout, _, status := r.ask(t, r.socket(), "-T", "1", "version"); status != 142 || stdout != "" {
		t.Errorf("stopped: status %d, %q", status, stdout)
	}
	r.signal(t, syscall.SIGCONT)

	// exit ends it as an interrupt does.
	if _, stderr, status := r.ask(t, "demo", "exit"); status != 0 {
		t.Errorf("exit: status %d, %q", status, stderr)
	}
	if <-r.ended; r.err != nil {
		t.Errorf("after exit: %v, %s", r.err, r.stderr.String())
	}
	if files := r.files(t); len(files) != 0 {
		t.Errorf("it leaves %q", files)
	}
	if _, stderr, status := r.ask(t, "demo", "version"); status != 1 || stderr == "" {
		t.Errorf("after exit: status %d, %q", status, stderr)
	}
}

// TestRunKilled kills the program under the name that exporters look for, and starts
// it anew in the same directory.
func TestRunKilled(t *testing.T) {
	t.Parallel()
	p := buildProgram(t)
	var before []string
	for range 2 {
		r := p.start(t, "ovs-vswitchd")
		files := r.files(t)
		if want := []string{r.socket(), p.dir + "/ovs-vswitchd.pid"}; strings.Join(files, " ") != strings.Join(want, " ") {
			t.Errorf("there are %q, want %q; before there were %q", files, want, before)
		}
		pid, err := os.ReadFile(p.dir + "/ovs-vswitchd.pid")
		if got, want := string(pid), fmt.Sprintf("%d\n", r.cmd.Process.Pid); err != nil || got != want {
			t.Errorf("the pidfile has %q, %v, want %q", got, err, want)
		}
		// Without -t it is whom ovs-appctl asks.
		cmd := exec.CommandContext(soon(t), need.Tool(t, "ovs-appctl"), "version")
		cmd.Env = append(os.Environ(), "OVS_RUNDIR="+p.dir)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "ovs-vswitchd (pmdperf) ") {
			t.Errorf("version: %v, %q", err, out)
		}
		// Another of that name is refused while it lives.
		second, err := exec.CommandContext(soon(t), p.path, "run", "--duration", "1s", "--rundir", p.dir, "--name", "ovs-vswitchd").CombinedOutput()
		if err == nil || !strings.Contains(string(second), fmt.Sprintf("in use by process %d, which is running", r.cmd.Process.Pid)) {
			t.Errorf("a second one: %v, %s", err, second)
		}
		r.kill()
		if before = p.files(t); len(before) != 2 {
			t.Errorf("the dead one left %q", before)
		}
		if _, _, status := p.ask(t, "ovs-vswitchd", "version"); status != 1 {
			t.Errorf("asked for the dead one ovs-appctl ends with %d", status)
		}
	}
}

// TestRunJSON asks the program for every command's JSON.
func TestRunJSON(t *testing.T) {
	t.Parallel()
	r := buildProgram(t).start(t, "demo")
	c, err := appctl.Dial(soon(t), r.socket())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetJSON(soon(t)); err != nil {
		t.Fatal(err)
	}
	for _, command := range Commands(nil, Options{}) {
		got, err := c.Call(soon(t), command.Name)
		if err != nil || !json.Valid([]byte(got)) || strings.Contains(got, "reply-format") {
			t.Errorf("%s: %v, %.300s", command.Name, err, got)
		}
	}
}
