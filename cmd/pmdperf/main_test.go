package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pmdperf/pmdperf/export/ovs"
)

var update = flag.Bool("update", false, "write the goldens in testdata/script anew")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"pmdperf": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			// A program with the race detector sleeps for a second before it ends.
			env.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"fails":      scriptFails,
			"waitfile":   scriptWaitFile,
			"forwarded":  scriptForwarded,
			"forwardedj": scriptForwardedJSON,
		},
	})
}

// scriptFails is the command
//
//	fails STATUS MESSAGE ARG...
//
// which runs pmdperf ARG..., and wants that exit status, exactly that message as the
// only line on standard error (or, between slashes, one that the regular expression
// matches as a whole), and nothing on standard output.
func scriptFails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: fails STATUS MESSAGE ARG...")
	}
	err := ts.Exec("pmdperf", args[2:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		ts.Fatalf("ended with %v, want exit status %s", err, args[0])
	}
	if got := strconv.Itoa(exit.ExitCode()); got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("standard output has %q, want nothing", out)
	}
	want := args[1]
	if n := len(want); n > 2 && want[0] == '/' && want[n-1] == '/' {
		want = want[1 : n-1]
	} else {
		want = regexp.QuoteMeta(want)
	}
	if got := ts.ReadFile("stderr"); !regexp.MustCompile(`^pmdperf: ` + want + `\n$`).MatchString(got) {
		ts.Fatalf("message is\n%swant\npmdperf: %s", got, args[1])
	}
}

// scriptWaitFile is the command
//
//	waitfile FILE
//
// which waits until the file has something in it.
func scriptWaitFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitfile FILE")
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if b, err := os.ReadFile(ts.MkAbs(args[0])); err == nil && len(b) > 0 {
			return
		}
	}
	ts.Fatalf("%s does not appear", args[0])
}

// numbers returns those that the groups of the pattern match, for every match.
func numbers(ts *testscript.TestScript, pattern, text string) (all [][]uint64) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		var row []uint64
		for _, s := range m[1:] {
			n, err := strconv.ParseUint(s, 10, 64)
			ts.Check(err)
			row = append(row, n)
		}
		all = append(all, row)
	}
	return all
}

// scriptForwarded is the command
//
//	forwarded PMDS PORTS
//
// which wants standard output to be the text of a run with so many PMDs and ports:
// numbers that add up, idle and busy iterations, filled histograms, and an iteration
// of 2 ms or more in the end.
func scriptForwarded(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: forwarded PMDS PORTS")
	}
	out := ts.ReadFile("stdout")
	show, rest, _ := strings.Cut(out, ", beyond pmd-perf-show:\n")
	show = show[:strings.LastIndexByte(show, '\n')+1]
	report, err := ovs.ParsePerf(show)
	ts.Check(err)
	if len(report.Unread) > 0 {
		ts.Fatalf("pmd-perf-show has lines that can't be read: %v", report.Unread)
	}
	if got := strconv.Itoa(len(report.Blocks)); got != args[0] {
		ts.Fatalf("%s PMDs are shown, want %s", got, args[0])
	}
	var received, sent uint64
	for i := range report.Blocks {
		b := &report.Blocks[i]
		value := func(label string) uint64 {
			v, ok := b.Value(label)
			if !ok {
				ts.Fatalf("no row %q", label)
			}
			return v
		}
		all, idle, busy := value("Iterations"), value("idle iterations"), value("busy iterations")
		if idle == 0 || busy == 0 || idle+busy != all {
			ts.Fatalf("%d iterations, %d of them idle and %d busy: want some of both", all, idle, busy)
		}
		received += value("Rx packets")
		sent += value("Tx packets")
		for _, h := range b.Histograms {
			var sum uint64
			for _, n := range h.Counts {
				sum += n
			}
			if sum == 0 {
				ts.Fatalf("histogram %q is empty", h.Title)
			}
		}
	}

	ports := numbers(ts, `(?m)^port \S+: rx (\d+) = tx (\d+) \+ drops (\d+), missed \d+$`, rest)
	if got := strconv.Itoa(len(ports)); got != args[1] {
		ts.Fatalf("%s ports are shown, want %s", got, args[1])
	}
	for _, p := range ports {
		if p[0] == 0 || p[0] != p[1]+p[2] {
			ts.Fatalf("port with rx %d, tx %d, drops %d: want some, and a sum", p[0], p[1], p[2])
		}
		received -= p[0]
		sent -= p[1]
	}
	if received != 0 || sent != 0 {
		ts.Fatalf("PMDs and ports differ by %d packets received and %d sent", int64(received), int64(sent))
	}

	slowest := numbers(ts, `(?m)^  Slowest iteration: \d+, (\d+)\.\d us, ended \d\d:\d\d:\d\d\.\d{6}, `, rest)
	if got := strconv.Itoa(len(slowest)); got != args[0] {
		ts.Fatalf("%s slowest iterations are shown, want %s", got, args[0])
	}
	for _, s := range slowest {
		if s[0] < 2000 {
			ts.Fatalf("slowest iteration took %d us, want the stall of 2 ms", s[0])
		}
	}
}

// scriptForwardedJSON is the command forwardedj, which wants of a run's JSON what
// forwarded wants of its text.
func scriptForwardedJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: forwardedj PMDS PORTS")
	}
	var d runDocument
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	dec.DisallowUnknownFields()
	ts.Check(dec.Decode(&d))
	if dec.More() {
		ts.Fatalf("there is more than one document")
	}
	if p, q := strconv.Itoa(len(d.Threads)), strconv.Itoa(len(d.Ports)); p != args[0] || q != args[1] {
		ts.Fatalf("%s PMDs and %s ports, want %s and %s", p, q, args[0], args[1])
	}
	var received, sent, drops uint64
	for _, t := range d.Threads {
		it, cy := t.Iterations, t.Cycles
		if it.Idle == 0 || it.Busy == 0 || it.Idle+it.Busy != it.Total {
			ts.Fatalf("iterations are %+v: want idle and busy ones", *it)
		}
		if cy.Wall != cy.Used+cy.Sleep+cy.Gaps {
			ts.Fatalf("cycles are %+v: want a sum", *cy)
		}
		if stall := uint64(2e-3 * t.Hz); t.Slowest == nil || t.Slowest.Cycles < stall {
			ts.Fatalf("slowest iteration is %+v: want the stall of %d cycles", t.Slowest, stall)
		}
		received += t.Packets.Rx
		sent += t.Packets.Tx
		drops += t.Packets.Drops
	}
	for _, p := range d.Ports {
		if p.Rx == 0 || p.Rx != p.Tx+p.Drops {
			ts.Fatalf("port is %+v: want some packets, and a sum", p)
		}
		received -= p.Rx
		sent -= p.Out
		drops -= p.Drops
	}
	if received != 0 || sent != 0 || drops != 0 {
		ts.Fatalf("PMDs and ports differ by %d packets received, %d sent, %d dropped", int64(received), int64(sent), int64(drops))
	}
	for _, in := range d.Injected {
		if in.Count == 0 {
			ts.Fatalf("injection %s: never made", in.Injection)
		}
	}
}

// TestRunHere runs the command in this process, which must not begin anew.
func TestRunHere(t *testing.T) {
	const here = "PMDPERF_TEST_RUN_HERE"
	if os.Getenv(here) != "" {
		t.Fatal("the process began anew")
	}
	t.Setenv(here, "1")
	t.Setenv("GODEBUG", "")
	var stdout, stderr bytes.Buffer
	status := run([]string{"run", "--duration", "50ms", "--level", "off"}, nil, &stdout, &stderr)
	if status != 0 {
		t.Fatalf("exit status %d, want 0: %s", status, stderr.String())
	}
	if want := "may interrupt the PMDs"; !strings.Contains(stderr.String(), want) {
		t.Errorf("no warning that the Go runtime %s: %q", want, stderr.String())
	}
	if want := "No iteration was recorded at level off."; !strings.Contains(stdout.String(), want) {
		t.Errorf("output lacks %q:\n%s", want, stdout.String())
	}
}

// TestProcs: a run has a processor of the Go scheduler more than PMDs, also after the
// second at which the runtime looks how many cores the threads beside them have left.
func TestProcs(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	runtime.SetDefaultGOMAXPROCS() // from here on the runtime adapts it
	ended := make(chan int)
	var stderr bytes.Buffer
	go func() {
		ended <- run([]string{"run", "--duration", "2500ms", "--rate", "10k"}, nil, new(bytes.Buffer), &stderr)
	}()
	time.Sleep(100 * time.Millisecond)
	for lowest := runtime.GOMAXPROCS(0); ; lowest = min(lowest, runtime.GOMAXPROCS(0)) {
		select {
		case status := <-ended:
			if status != 0 {
				t.Fatalf("exit status %d, want 0: %s", status, stderr.String())
			}
			if lowest < 2 {
				t.Errorf("GOMAXPROCS went down to %d, want 2 or more", lowest)
			}
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

// TestNoOutput: who can't print the result must not end with status 0.
func TestNoOutput(t *testing.T) {
	for _, args := range [][]string{
		{"version"},
		{"completion", "bash"},
		{"run", "--duration", "1ms"},
		{"run", "--duration", "1ms", "--format", "json"},
	} {
		var stderr bytes.Buffer
		if status := run(args, nil, brokenWriter{}, &stderr); status != statusFailed {
			t.Errorf("%q ended with status %d, want %d", args, status, statusFailed)
		}
		if !strings.Contains(stderr.String(), "pmdperf: ") || !strings.Contains(stderr.String(), os.ErrClosed.Error()) {
			t.Errorf("%q says %q, want why it could not print", args, stderr.String())
		}
	}
}
