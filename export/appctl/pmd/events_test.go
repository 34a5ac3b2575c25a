package pmd

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
)

// sampleEvent is an event of a PMD of 1 GHz: iteration 1001 and two around it.
func sampleEvent() *suspicious.Report {
	at := time.Date(2026, 1, 31, 23, 59, 59, 250e6, time.UTC)
	detailed := history.Detailed
	r := &suspicious.Report{
		ID: "20260131T235959-c03-1001", Sequence: 7, Name: "pmd-c03/id:11", Core: 3, NUMA: 1, Hz: 1e9,
		AnchorTicks: 5e9, Anchor: at.Add(time.Second), Time: at, HeldBack: 2,
		Polled: []suspicious.Polled{{From: 0, Queues: []suspicious.Queue{{Port: "p0", ID: 0, Size: 1024}, {Port: "vhu-a", ID: 3}}}},
		Event: suspicious.Event{Iteration: 1001, First: 1000, MergedCount: 1, Merged: []suspicious.Mark{{Iteration: 1002, Reasons: 1 << suspicious.Drops}},
			Reasons: 1<<suspicious.Cycles | 1<<suspicious.QueueFill | 1<<suspicious.CyclesPerPacket},
	}
	r.Values = [suspicious.NumReasons]uint64{suspicious.Cycles: 2e6, suspicious.QueueFill: 900, suspicious.CyclesPerPacket: 31250}
	r.Thresholds = [suspicious.NumReasons]uint64{suspicious.Cycles: 250e3, suspicious.QueueFill: 127, suspicious.CyclesPerPacket: 9000}
	r.Causes = []suspicious.Cause{
		{Kind: suspicious.CausePreempted, Name: "sh", PID: 4242, Part: 1900 * time.Microsecond, Share: 0.95, How: suspicious.Exact, Evidence: "task 4242 had the core while the thread was runnable"},
		{Kind: suspicious.CauseUnknown, Part: 100 * time.Microsecond, Share: 0.05, Evidence: "no counter moved"},
	}
	r.MergedCauses = map[uint64][]suspicious.Cause{1002: {{Kind: suspicious.CauseBlocked, Name: "ppoll", Part: 20 * time.Microsecond, Share: 0.666666, How: suspicious.Exact, Evidence: "it left its core in that call"}}}
	r.Records = []history.Record{
		{End: 4e9 - 2.1e6, Cycles: 12400, Rx: 32, Tx: 32, Batches: 1, Fill: 40, Full: 1, Flags: detailed.WithQueue(0).WithGap(history.Accounting)},
		{End: 4e9, Cycles: 2e6, UpcallCycles: 9e3, Sleep: 5e4, Rx: 64, Tx: 60, Batches: 2, Upcalls: 2, Fill: 900, Full: 2, Flags: (detailed | history.Suspicious).WithQueue(1)},
		{End: 4e9 + 3e4, Cycles: 3e4, Rx: 32, Batches: 1, Drops: 32, Flags: detailed | history.Suspicious},
	}
	return r
}

func TestEventGoldens(t *testing.T) {
	older := sampleEvent()
	older.ID, older.MergedCount, older.Merged, older.HeldBack, older.Causes = "20260131T235958-c03-4", 0, nil, 0, nil
	older.Polled = nil
	keep := suspicious.NewReports(8)
	keep.Add(older)
	keep.Add(sampleEvent())
	for name, a := range map[string]*arguments{
		"events":      {},
		"events-one":  {numbers: map[string]uint64{"-n": 1}},
		"event":       {word: sampleEvent().ID, hasWord: true},
		"events-none": {numbers: map[string]uint64{optCore: 5}},
	} {
		got, err := events(context.Background(), &call{service: &service{Options: Options{Events: keep}}, arguments: a})
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.MarshalIndent(got.json(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", textOf(got))
		golden(t, name+".json", string(data)+"\n")
	}
	got, err := events(context.Background(), &call{service: &service{}, arguments: &arguments{}})
	if err != nil || textOf(got) != "no events\nnote: this program keeps no events\n" {
		t.Errorf("a program that keeps no events: %v, %v", got, err)
	}
}

// What pmd-perf-log-set finds suspicious is found by a supervisor and shown.
func TestEvents(t *testing.T) {
	t.Parallel()
	keep := suspicious.NewReports(100)
	l := start(t, Options{Events: keep}, perf.Basic)
	s := suspicious.NewSupervisor(suspicious.Options{
		Sources: func() []suspicious.Source { return []suspicious.Source{l.loops[0].Recorder, l.loops[1].Recorder} },
		Sinks:   []suspicious.Sink{keep.Add},
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	defer func() { stop(); <-done }()

	// Iterations with a queue of 100 packets, of core 3 only.
	if got := l.call(t, logSetCommand, "-pmd", "3", "-us", "off", "-q", "100", "-b", "3", "-a", "2", "on"); !strings.Contains(got, "raised from basic") {
		t.Error(got)
	}
	await(t, "there are events", func() bool { return len(keep.Last()) >= 3 })
	l.call(t, logSetCommand, "off")
	await(t, "all is quiet", func() bool {
		n := len(keep.Last())
		time.Sleep(50 * time.Millisecond)
		return len(keep.Last()) == n
	})
	var list struct{ Events []*suspicious.FlightRecord }
	l.data(t, &list, "pmdperf/events", "-n", "1000")
	if len(list.Events) < 3 {
		t.Fatalf("%d events", len(list.Events))
	}
	for i, e := range list.Events {
		if e.Core != 3 || len(e.Reasons) != 1 || e.Reasons[0] != (suspicious.FlightReason{Reason: "queue_fill", Value: 100, Threshold: 99}) || e.Records != nil {
			t.Errorf("%+v", e)
		}
		if i > 0 && e.Sequence != list.Events[i-1].Sequence-1 {
			t.Errorf("event %d after %d: not newest first", e.Sequence, list.Events[i-1].Sequence)
		}
	}
	newest := list.Events[len(list.Events)-2]
	var one suspicious.FlightRecord
	l.data(t, &one, "pmdperf/events", newest.ID)
	if diff := cmp.Diff(keep.Last()[len(list.Events)-2].Flight(), &one); diff != "" {
		t.Errorf("(-report +got):\n%s", diff)
	}
	if len(one.Polled) != 1 || len(one.Polled[0].Queues) != 2 || one.Polled[0].Queues[0].Port != "p0" {
		t.Errorf("%+v", one.Polled)
	}
	if got := l.call(t, "pmdperf/events", newest.ID); !strings.HasPrefix(got, newest.ID+" on pmd-c03/id:11: iteration ") || !strings.Contains(got, "Vhost RX queue full: 100, threshold 99\n") {
		t.Error(got)
	}
	if got := l.call(t, "pmdperf/events", "-pmd", "1"); got != "no events\n" {
		t.Error(got)
	}
}
