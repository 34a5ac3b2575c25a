package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/ovslog"
)

// logged reads what was logged.
func logged(t *testing.T, r io.Reader) (events []*ovslog.Event, others []string) {
	t.Helper()
	reader := ovslog.NewReader(r)
	for rec := range reader.Records() {
		if e, ok := rec.(*ovslog.Event); ok {
			events = append(events, e.Clone())
		} else {
			others = append(others, fmt.Sprintf("%T", rec))
		}
	}
	if err := reader.Err(); err != nil {
		t.Fatal(err)
	}
	return events, others
}

// TestSupervise: iterations that stall are in both files and among the events, each
// once, with the same numbers.
func TestSupervise(t *testing.T) {
	dir := t.TempDir()
	f := superviseFlags{
		settings: suspicious.Settings{On: true, Before: 2, After: 2, Limits: suspicious.Limits{PollGap: 50 * time.Millisecond}},
		logFile:  filepath.Join(dir, "log"), flightRecord: filepath.Join(dir, "flight"),
	}
	g := new(perf.Registry)
	r, err := g.New(perf.Config{Core: 5, ID: 9, Level: perf.Detailed, Polling: perf.Polling{RxQueues: []perf.Queue{{Port: "p0", ID: 2}}}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.supervise(g, func(string) {}, func(what string) { t.Error(what) })
	if err != nil {
		t.Fatal(err)
	}
	for set := false; !set; time.Sleep(time.Millisecond) {
		var snap perf.Snapshot
		set = r.Snapshot(t.Context(), perf.Want{}, &snap) == nil && snap.Suspicion == f.settings
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	for n := range 60 {
		r.Poll(0)
		r.Batch(n%30, 40)
		if n%20 == 10 {
			r.SleepBegin()
			time.Sleep(60 * time.Millisecond)
			r.SleepEnd()
		}
		r.End()
	}
	r.Close()
	if err := s.finish(); err != nil {
		t.Fatal(err)
	}

	reports := s.events.Last()
	if len(reports) < 3 {
		t.Fatalf("%d events", len(reports))
	}
	seen := make(map[uint64]bool)
	file, err := os.Open(f.logFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	events, others := logged(t, file)
	flight, err := os.ReadFile(f.flightRecord)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(flight), "\n"), "\n")
	if len(events) != len(reports) || len(lines) != len(reports) || len(others) != 0 {
		t.Fatalf("%d events, %d in the log, %d in the flight record; and %v", len(reports), len(events), len(lines), others)
	}
	for i, e := range events {
		rep := reports[len(reports)-1-i]
		var fl suspicious.FlightRecord
		if err := json.Unmarshal([]byte(lines[i]), &fl); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rep.Flight(), &fl); diff != "" {
			t.Errorf("flight record (-report +read):\n%s", diff)
		}
		if e.Iteration != rep.Iteration || e.Core != 5 || e.Thread != "pmd-c05/id:9" || len(e.Table) != len(rep.Records) ||
			e.Table[e.Culprit].Iteration != rep.Iteration || e.Reasons[0] != suspicious.PollGap.Text() {
			t.Errorf("%+v\nis not %+v", e, rep)
		}
		if d := e.Began.Sub(rep.At(rep.Records[rep.Iteration-rep.First].Start())); d > time.Microsecond || d < -time.Microsecond {
			t.Errorf("began %v too late", d)
		}
		seen[rep.Iteration] = true
		for _, m := range rep.Merged {
			seen[m.Iteration] = true
		}
	}
	for _, n := range []uint64{10, 30, 50} {
		if !seen[n] {
			t.Errorf("iteration %d is missing", n)
		}
	}
}
