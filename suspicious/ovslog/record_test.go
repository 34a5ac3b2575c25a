package ovslog

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pmdperf/pmdperf/internal/mangle"
)

func TestOthers(t *testing.T) {
	prefix := func(module, level string) string {
		return "2026-11-30T14:49:54.194Z|00007|" + module + "|" + level + "|"
	}
	ms := time.Millisecond
	for _, c := range []struct {
		line string
		want Record
	}{
		{prefix("pmd_perf", "INFO") + "pmd-perf-log-set: on, before=5, after=3, extend=true, us_thr=250, q_thr=128",
			&Settings{On: true, Before: 5, After: 3, Extend: true, MaxDuration: 250, QueueFill: 128}},
		{prefix("pmd_perf", "INFO") + "pmd-perf-log-set: off, before=5, after=5, extend=false, us_thr=1, q_thr=0",
			&Settings{Before: 5, After: 5, MaxDuration: 1}},
		{prefix("pmd_perf(pmd-c00/id:6)", "WARN") + "Dropped 3792 log messages in last 17 seconds (most recently, 2 seconds ago) due to excessive rate",
			&Dropped{Module: "pmd_perf", Messages: 3792, Seconds: 17, Ago: 2}},
		{prefix("timeval", "WARN") + "Unreasonably long 1234ms poll interval (5ms user, 7ms system)",
			&LongPoll{Interval: 1234 * ms, User: 5 * ms, System: 7 * ms}},
		{prefix("timeval", "WARN") + "faults: 12 minor, 3 major", &Faults{Minor: 12, Major: 3}},
		{prefix("timeval", "WARN") + "context switches: 4 voluntary, 555 involuntary", &Switches{Voluntary: 4, Involuntary: 555}},
		{prefix("ovs_rcu(urcu2)", "WARN") + "blocked 1000 ms waiting for pmd-c01/id:8 to quiesce", &Blocked{For: 1000 * ms, Waited: "pmd-c01/id:8"}},
		{prefix("pmd_perf", "INFO") + "Estimated TSC frequency: 2300000 KHz", &Frequency{KHz: 2300000, Estimated: true}},
		{prefix("pmd_perf", "INFO") + "DPDK provided TSC frequency: 2300001 KHz", &Frequency{KHz: 2300001}},
		{prefix("dpif_netdev", "INFO") + "There are 2 pmd threads on numa node 0", &Threads{Count: 2}},
		{prefix("dpif_netdev", "INFO") + "Core  1 on numa node 0 assigned port 'vh0' rx queue 3 (measured processing cycles 123).",
			&Assignment{Core: 1, Port: "vh0", Queue: 3}},
		{prefix("dpif_netdev", "INFO") + "PMD auto load balance is disabled.", &Notice{Topic: LoadBalance, Text: "PMD auto load balance is disabled."}},
		{prefix("dpif_netdev", "INFO") + "Default PMD thread max sleep: 500 us.", &Notice{Topic: MaxSleep, Text: "Default PMD thread max sleep: 500 us."}},
		{prefix("dpif_netdev", "WARN") + "There is no available (non-isolated) pmd thread for port 'a' queue 0. This queue will not be polled.",
			&Notice{Topic: NoThread, Text: "There is no available (non-isolated) pmd thread for port 'a' queue 0. This queue will not be polled."}},
		{prefix("dpif_netdev", "INFO") + "bridge br0: using datapath ID 0", nil},
		{prefix("timeval", "WARN") + "Unreasonably long 99999999999999999ms poll interval (5ms user, 7ms system)", nil},
	} {
		lines := []string{c.line, "> " + c.line}
		if len(c.line) > 85 {
			lines = append(lines, c.line[:80]+"\n"+c.line[80:])
		}
		for _, line := range lines {
			_, got, stats := read(t, line+"\n")
			if c.want == nil {
				if len(got) > 0 {
					t.Errorf("%q: got %+v", line, got[0])
				}
				continue
			}
			if len(got) != 1 {
				t.Errorf("%q: %d records, %+v", line, len(got), stats)
				continue
			}
			if diff := cmp.Diff(c.want, got[0], cmpopts.IgnoreTypes(Origin{})); diff != "" {
				t.Errorf("%q (-want +got):\n%s", line, diff)
			}
			if o := got[0].Where(); o.Seq != 7 || o.Line == 0 || o.Time.Year() != 2026 {
				t.Errorf("%q: from %+v", line, o)
			}
		}
	}
}

func header2(thread, stamp string, seq, iteration, duration int) string {
	return fmt.Sprintf("2026-11-30T%sZ|%05d|pmd_perf(%s)|WARN|Suspicious iteration (Excessive total cycles): iter=%d duration=%d us\n", stamp, seq, thread, iteration, duration)
}

func TestEpochs(t *testing.T) {
	log := header2("pmd-c00/id:6", "10:00:00.000", 1, 5000, 300) +
		header2("pmd-c00/id:6", "10:00:01.000", 3, 9000, 300) +
		header2("pmd-c01/id:7", "10:00:01.500", 1, 10, 300) +
		header2("pmd-c00/id:6", "10:00:02.000", 1, 700, 300) + // the thread started anew
		header2("pmd-c00/id:6", "10:00:03.000", 3, 800, 300)
	want := map[uint64]int{5000: 0, 9000: 0, 10: 0, 700: 1, 800: 1}
	events, _, _ := read(t, log)
	got := make(map[uint64]int)
	for _, ev := range events {
		got[ev.Iteration] = ev.Epoch
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The same from the newest to the oldest: there the old epoch comes second.
	want = map[uint64]int{5000: 1, 9000: 1, 10: 0, 700: 0, 800: 0}
	events, _, _ = read(t, mangle.Reverse(log))
	clear(got)
	for _, ev := range events {
		got[ev.Iteration] = ev.Epoch
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("newest first (-want +got):\n%s", diff)
	}
}

func TestGaps(t *testing.T) {
	log := header2("pmd-c00/id:6", "10:00:00.000", 1, 5000, 300) +
		header2("pmd-c00/id:6", "10:00:01.000", 2, 9000, 300) +
		header2("pmd-c00/id:6", "10:00:02.000", 6, 19000, 300) +
		header2("pmd-c00/id:6", "10:00:03.000", 1, 100, 300)
	for _, text := range []string{log, mangle.Reverse(log)} {
		_, others, _ := read(t, text)
		if len(others) != 1 {
			t.Fatalf("got %d records besides events, want 1", len(others))
		}
		if g, ok := others[0].(*Gap); !ok || g.Missing != 3 {
			t.Errorf("got %+v, want a gap of 3 messages", others[0])
		}
	}
}

// TestFrequency derives the clock's from the logs of machines whose is known.
func TestFrequency(t *testing.T) {
	logs := samples(t)
	for name, want := range map[string]float64{"idle-hog": 2.3e9, "busy-hog": 2.3e9, "idle-sigstop": 2.3e9, "g01": 1} {
		events, _, _ := read(t, logs[name])
		low, high := 0.0, math.Inf(1)
		for _, ev := range events {
			if l, h, ok := ev.Frequency(); ok {
				low, high = max(low, l), min(high, h)
			}
		}
		if !(low <= want*1.0000001 && want <= high*1.0000001 && high-low < want/100) {
			t.Errorf("%s: between %g and %g Hz, want %g", name, low, high, want)
		}
	}
	if _, _, ok := new(Event).Frequency(); ok {
		t.Error("nothing has a frequency")
	}
}

// TestSharedTable has two headers before one table, as with -e.
func TestSharedTable(t *testing.T) {
	ev := example()
	second := ev.Clone()
	second.Iteration, second.Seq, second.Culprit = ev.Iteration+1, ev.Seq+1, 0
	headerOnly := ev.Clone()
	headerOnly.Table = nil
	text := string(second.Append(headerOnly.Append(nil, TwoMessages), TwoMessages))
	events, _, _ := read(t, text)
	if len(events) != 2 {
		t.Fatalf("%d events, want 2", len(events))
	}
	for i, want := range []int{1, 0} {
		if e := events[i]; e.Culprit != want || len(e.Table) != 3 || e.TableLine != 3 {
			t.Errorf("event %d: culprit %d of %d rows in line %d", i, e.Culprit, len(e.Table), e.TableLine)
		}
	}
}

// TestInterleaved has the rows of two threads on one console.
func TestInterleaved(t *testing.T) {
	a, b := example(), example()
	a.Table[2] = Row{Iteration: 420424204, Cycles: 5}
	b.Thread, b.Iteration, b.Seq = "pmd-c02/id:9", 7001, 17
	b.Table = []Row{{Iteration: 7002, Cycles: 8}, {Iteration: 7001, Cycles: 9_000_000}, {Iteration: 6999, Cycles: 7}} // a reload skipped 7000
	al, bl := strings.SplitAfter(string(a.Append(nil, TwoMessages)), "\n"), strings.SplitAfter(string(b.Append(nil, TwoMessages)), "\n")
	var text strings.Builder
	for i := range al {
		text.WriteString(al[i])
		text.WriteString(bl[i])
	}
	for _, s := range []string{text.String(), mangle.Reverse(text.String())} {
		events, _, stats := read(t, s)
		if len(events) != 2 {
			t.Fatalf("%d events, want 2; %+v", len(events), stats)
		}
		for _, ev := range events {
			want := a.Table
			if ev.Thread == b.Thread {
				want = b.Table
			}
			if diff := cmp.Diff(want, ev.Table); diff != "" || ev.Culprit != 1 {
				t.Errorf("%s: culprit %d (-want +got):\n%s", ev.Thread, ev.Culprit, diff)
			}
		}
	}
}

// TestCut has tables that end in the middle, or begin there.
func TestCut(t *testing.T) {
	lines := strings.SplitAfter(string(example().Append(nil, TwoMessages)), "\n")
	events, _, stats := read(t, strings.Join(lines[:4], "")+lines[4][:30])
	// Without the culprit's row nothing says that they belong together.
	if len(events) != 2 || !events[0].HasHeader && !events[1].HasHeader || len(events[0].Table)+len(events[1].Table) != 1 {
		t.Errorf("the end is missing: %+v", events)
	}
	if stats.Unread != 1 || len(stats.Lost) != 1 || stats.Lost[0].Line != 5 {
		t.Errorf("half a row is not counted: %+v", stats)
	}
	events, _, stats = read(t, strings.Join(lines[4:], ""))
	if len(events) != 1 || len(events[0].Table) != 2 || events[0].HasHeader || events[0].Thread != "" || events[0].Core != -1 || events[0].TableLine != 1 {
		t.Errorf("the beginning is missing: %+v %+v", events, stats)
	}
}

func TestCore(t *testing.T) {
	for name, want := range map[string]int{"pmd-c01/id:8": 1, "pmd-c127/id:300": 127, "pmd12": -1, "": -1, "pmd-c": -1, "pmd-cx": -1, "pmd-c99999999999999999999": -1, "revalidator7": -1} {
		if got := Core(name); got != want {
			t.Errorf("Core(%q) = %d, want %d", name, got, want)
		}
	}
}
