package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/cause"
	"github.com/pmdperf/pmdperf/suspicious/explain"
)

// TestCauseCounts: by PMD, the most frequent first; work is one whatever the queue.
func TestCauseCounts(t *testing.T) {
	var c causeCounts
	for _, r := range []struct {
		pmd   string
		times int
		cause suspicious.Cause
	}{
		{"b", 1, suspicious.Cause{Kind: suspicious.CausePreempted, Name: "sh"}},
		{"a", 2, suspicious.Cause{Kind: suspicious.CausePreempted, Name: "sh"}},
		{"a", 3, suspicious.Cause{Kind: suspicious.CauseWork, Name: "queue p0:1, 3 packets"}},
		{"a", 4, suspicious.Cause{Kind: suspicious.CauseWork, Name: "queue p0:2, 32 packets"}},
		{"a", 1, suspicious.Cause{Kind: suspicious.CausePreempted, Name: "go"}},
	} {
		for range r.times {
			c.add(&suspicious.Report{Name: r.pmd, Causes: []suspicious.Cause{r.cause, {Kind: suspicious.CauseUnknown}}})
		}
	}
	c.add(&suspicious.Report{Name: "a"}) // nothing looked for its causes
	var b bytes.Buffer
	showCauses(&b, c.list())
	want := "a: events by cause: the loop's own work 7; preempted by sh 2; preempted by go 1\nb: events by cause: preempted by sh 1\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnnounce(t *testing.T) {
	probes := []cause.Status{
		{Probe: "switches by X (who)", Runs: true}, {Probe: "switches by Y", Why: "not needed: a better one runs"},
		{Probe: "CPU time", Runs: true}, {Probe: "steal (/proc/stat)", Why: "no core"},
	}
	var got []string
	announce([]explain.Status{
		{Name: "a", Probes: probes}, {Name: "b", Probes: probes}, {Name: "c", Probes: probes[1:3]}, {Name: "d", Err: errors.New("no thread 7")},
	}, func(s string) { got = append(got, s) })
	want := []string{
		"probes of a and b: switches by X, CPU time", "no probe of steal (/proc/stat): off, no core",
		"probes of c: CPU time",
		"probes of d: none", "no probe of no thread 7",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRunCauses: the trouble that a run makes for itself is in the flight record and in
// the log with its cause, and counted at the end.
func TestRunCauses(t *testing.T) {
	if runtime.GOOS != "linux" {
		need.Skip(t, "probes are for Linux")
	}
	// On a machine that others keep busy the probes take long to open, and of a storm's
	// time not much may be left.
	for _, duration := range []string{"2s", "5s", "15s"} {
		if told := runCauses(t, duration); told >= 2 {
			return
		}
	}
	t.Error("storms of page faults are not told")
}

// runCauses returns how many storms of page faults were told as such.
func runCauses(t *testing.T, duration string) (faults int) {
	dir := t.TempDir()
	flight, log := filepath.Join(dir, "flight"), filepath.Join(dir, "log")
	var stdout, stderr bytes.Buffer
	args := []string{"run", "--duration", duration, "--inject", "fault=20ms@250ms", "--slow-iteration", "10ms", "--slow-poll", "0", "--slow-gap", "0", "--full-queue", "0", "--flight-record", flight, "--log-file", log}
	if status := run(args, nil, &stdout, &stderr); status != 0 {
		t.Fatalf("exit status %d: %s", status, stderr.String())
	}
	if !strings.Contains(stderr.String(), "pmdperf: probes of pmd-c") || !strings.Contains(stderr.String(), "thread CPU time") {
		t.Errorf("nothing on probes: %s", stderr.String())
	}
	b, err := os.ReadFile(flight)
	if err != nil {
		t.Fatal(err)
	}
	explained := make(map[uint64]string)
	told := func(c suspicious.Cause) {
		if c.Kind == suspicious.CauseFaults && c.Part > 200*time.Microsecond {
			faults++
		}
	}
	for line := range strings.Lines(string(b)) {
		var f suspicious.FlightRecord
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, c := range f.Causes {
			sum += c.Share
			told(c)
		}
		for _, m := range f.Merged {
			for _, c := range m.Causes {
				told(c)
			}
		}
		if len(f.Causes) == 0 || sum > 1.001 {
			t.Errorf("iteration %d: causes %+v", f.Iteration, f.Causes)
		}
		r := suspicious.Report{Causes: f.Causes}
		explained[f.Iteration] = r.Explanation()
	}
	if !strings.Contains(stdout.String(), "events by cause: ") {
		t.Errorf("causes are not counted:\n%s", stdout.String())
	}
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	events, _ := logged(t, file)
	if len(events) != len(explained) {
		t.Errorf("%d events in the log, %d in the flight record", len(events), len(explained))
	}
	for _, e := range events {
		if e.Causes == "" || e.Culprit < 0 {
			t.Errorf("iteration %d in the log: %q, row %d", e.Iteration, e.Causes, e.Culprit)
		}
	}
	return faults
}
