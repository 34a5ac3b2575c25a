package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/investigate"
	"github.com/pmdperf/pmdperf/suspicious/ovslog"
)

// resultOf investigates a log.
func resultOf(t *testing.T, name string) *investigate.Result {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := investigate.NewCase()
	src := c.AddSource(name)
	for rec := range ovslog.NewReader(f).Records() {
		c.AddRecord(src, rec)
	}
	return c.Result()
}

// testLogs opens the pages of real logs: of a usual one, and of one whose clock is wrong
// and whose tables are in part lost.
func testLogs(t *testing.T, browser context.Context) {
	for _, name := range []string{"idle-sigstop", "g01"} {
		x := open(t, browser, FromResult(resultOf(t, "../../suspicious/ovslog/testdata/logs/"+name+".log")), setup{})
		x.settled()
		if got, want := x.text("h1"), "Drop investigation: "+name+".log"; got != want {
			t.Errorf("the page is called %q, want %q", got, want)
		}
		for _, key := range []string{"Home", "ArrowRight", "+", "End"} {
			x.focus("chart")
			x.keys(key)
		}
		if !x.visible("#detail-h") {
			t.Errorf("%s: no stall is chosen", name)
		}
		x.shot(name)
		x.quiet()
	}
}

// TestFromLogs: whatever a log has is in its page, to the last row.
func TestFromLogs(t *testing.T) {
	files, err := filepath.Glob("../../suspicious/ovslog/testdata/logs/*.log")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d logs: %v", len(files), err)
	}
	for _, name := range files {
		r := resultOf(t, name)
		var b bytes.Buffer
		if err := FromResult(r).Write(&b); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var d data
		if err := json.Unmarshal([]byte(dataOf(t, b.String())), &d); err != nil {
			t.Fatal(err)
		}
		type stall struct {
			thread    string
			iteration uint64
			micros    float64
			rows      string
		}
		count := func(all []stall) map[stall]int {
			m := make(map[stall]int)
			for _, s := range all {
				m[s]++
			}
			return m
		}
		var got, want []stall
		for i := range d.Stalls.Micros {
			detail := &d.Stalls.Detail[i]
			if detail.Culprit >= 0 && detail.Rows[detail.Culprit][0] != d.Stalls.Iteration[i] {
				t.Errorf("%s: iteration %d has row %v", name, d.Stalls.Iteration[i], detail.Rows[detail.Culprit])
			}
			got = append(got, stall{d.Threads[d.Stalls.Thread[i]].Name, uint64(d.Stalls.Iteration[i]), d.Stalls.Micros[i], fmt.Sprint(detail.Rows)})
		}
		for i := range r.Stalls {
			s := &r.Stalls[i]
			var rows [][]uint64
			for _, n := range s.Neighborhood {
				rows = append(rows, []uint64{n.Iteration, n.Cycles, n.Packets, n.CyclesPerPacket, n.PacketsPerBatch, n.Fill, n.Upcalls, n.CyclesPerUpcall})
			}
			want = append(want, stall{threadName(s.Thread, s.Core), s.Iteration, thousandths(s.Micros), fmt.Sprint(rows)})
		}
		if len(want) == 0 {
			t.Errorf("%s has no stalls", name)
		}
		if diff := cmp.Diff(count(want), count(got), cmp.AllowUnexported(stall{})); diff != "" {
			t.Errorf("%s (-result +page):\n%s", name, diff)
		}
		if n := strings.Count(b.String(), `<li id="finding-`); n != len(r.Findings) {
			t.Errorf("%s: %d findings in the page, want %d", name, n, len(r.Findings))
		}
	}
}

// TestFromResult takes what logs don't have.
func TestFromResult(t *testing.T) {
	at := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
	r := &investigate.Result{
		Sources: []investigate.Source{
			{Name: "a.log", Kinds: []string{"log", "pmd-perf-show"}, Lines: 1200, Unread: 2, Lost: []investigate.Lost{{Line: 17}, {Line: 19}}},
			{Name: "b.gz", Error: "unexpected EOF"},
		},
		PMDs: []investigate.PMD{{
			Thread: "pmd-c03/id:7", Core: 3, Hz: 2e9, Reported: 5, Unreported: 2, Stalled: 12e3, Longest: 5e3, Share: .25, Dropped: 4, Missing: 3, Usual: 500,
			Lengths: &investigate.Histogram{Walls: []uint64{100, 1000}, Counts: []uint64{1, 5, 1}, Percentiles: []investigate.Percentile{{Percent: 100, Value: 1000, Beyond: true}}},
		}},
		Measured: []investigate.Measured{{
			Core: 3, Seconds: 2, Hz: 2e9, Time: at, Iterations: new(uint64(3000)), UsedPercent: new(80.0), IdlePercent: new(25.0), BusyPercent: new(75.0),
			Histograms:   []investigate.Histogram{{Title: "cycles/it", Walls: []uint64{2000}, Counts: []uint64{1, 2}}},
			Milliseconds: []investigate.Milli{{Packets: 7}, {Packets: 9, Micros: 2500}},
		}, {Core: 5, Name: "", RxPackets: new(uint64(1))}, {Main: true, Core: -1}},
		Stalls: []investigate.Stall{{
			Thread: "pmd-c03/id:7", Core: 3, Place: investigate.Place{Source: "a.log", Line: 4}, Iteration: 9, Time: at, Micros: 5000, Culprit: 0,
			Causes:       []suspicious.Cause{{Kind: suspicious.CausePreempted, Name: "sh", Part: 4 * time.Millisecond, Share: .8, How: suspicious.Exact, Evidence: "seen"}},
			Neighborhood: []investigate.Row{{Iteration: 9, Cycles: 1e7, Sleep: 12.4, Drops: 3, Queue: "dpdk0 0", After: []string{"reload"}}},
			Loss:         &investigate.Loss{Packets: 41},
		}},
		LeftOut: 6,
		Findings: []investigate.Finding{{
			Title: "upcalls took long", Confidence: investigate.Medium, Because: "so it is", Text: []string{"One.", "Two."}, Lost: 12e3, Share: .25, Count: 7, Stalls: []int{0},
			Evidence: []investigate.Evidence{{Place: investigate.Place{Source: "a.log", Line: 4}, Text: "this", Stall: new(0)}, {Text: "that"}},
			Loss:     &investigate.Loss{Packets: 41, Capacity: 2048, Assumed: true},
			Next:     []investigate.Step{{Command: "ls", Why: "to see"}},
		}},
		Counters: []investigate.Series{
			{Name: "rx_missed", Points: []investigate.Point{{Time: at, Value: 5}, {Time: at.Add(time.Second), Value: 9}, {Time: at.Add(2 * time.Second), Value: 1}}},
			{Name: "flat", Points: []investigate.Point{{Time: at, Value: 5}, {Time: at.Add(time.Second), Value: 5}}},
		},
		Rises: []investigate.Rise{{Counter: "rx_missed", To: at, Text: "rx_missed rose", Stall: new(0)}},
		Notes: []investigate.Note{{Time: at, Thread: "revalidator1", Text: "poll interval of 2s"}},
	}
	want := &Page{
		Title: "Drop investigation: a.log and 1 more", Lead: "7 stalls on 3 threads.",
		Facts: []Fact{{"Stalls", "7"}, {"Longest", "5.00\u00a0ms"}, {"In stalls, all together", "12.0\u00a0ms"}, {"Of the time, at most", "25.0 %"}, {"Packets lost, at most", "41"}},
		Warnings: []string{
			"b.gz: unexpected EOF",
			"4 messages fell to the rate limit of the log: there were more stalls than these.",
			"3 messages missing from the text, by the numbers of those around.",
			"The shortest 6 stalls of all are counted here, but neither listed nor drawn.",
		},
		Findings: []Finding{{
			Title: "Upcalls took long", Confidence: "medium confidence", Text: []string{"One. Two.", "Confidence is medium: so it is."}, Stalls: []int{0},
			Facts:    []Fact{{"Time lost", "12.0\u00a0ms"}, {"Of the time", "25.0 %"}, {"Iterations", "7"}, {"Packets lost, at most", "41"}, {"Queues hold", "2,048, assumed"}},
			Evidence: []Line{{"a.log", 4, "this", 0}, {"", 0, "that", -1}},
			Steps:    []Step{{"to see", "ls"}},
		}},
		Threads: []Thread{
			{
				Name: "pmd-c03/id:7", Core: 3, Hz: 2e9,
				Facts: []Fact{
					{"Stalls", "7"}, {"of them found in neighborhoods only", "2"}, {"Longest", "5.00\u00a0ms"}, {"In stalls", "12.0\u00a0ms"}, {"Of the time", "25.0 %"},
					{"Usual iteration", "500 cycles, 250\u00a0ns"}, {"Clock", "2.00GHz"}, {"Iterations", "3,000, 1.50k/s"},
				},
				Shares: []Share{{"busy", 60}, {"idle", 20}, {"asleep or not measured", 20}},
				Histograms: []Histogram{
					{Title: "length of a stall", Micros: true, Bins: []Bin{{0, 100, 1}, {100, 1000, 5}, {1000, inf, 1}}, Percentiles: []Percentile{{100, 1000, ">"}}},
					{Title: "time of an iteration", Micros: true, Bins: []Bin{{0, 1, 1}, {1, inf, 2}}},
				},
			},
			{Name: "PMD on core 5", Core: 5, Facts: []Fact{{"Received", "1"}}},
			{Name: "main thread", Core: -1},
		},
		Stalls: []Stall{{
			End: at, Micros: 5000, Iteration: 9, Reasons: []string{"in another's neighborhood"}, Source: "a.log:4",
			Causes: []Cause{{"preempted by sh", 4000, 80, "exact", "seen"}},
			Rows:   []Row{{Iteration: 9, Cycles: 1e7, SleepMicros: 12.4, Drops: 3, Note: "dpdk0 0, after reload"}},
		}},
		Series: []Series{
			{Name: "packets received in a millisecond", Unit: "packets", Points: []Point{{at.Add(-3500 * time.Microsecond), at.Add(-2500 * time.Microsecond), 7}, {at.Add(-2500 * time.Microsecond), at, 9}}},
			{Name: "rx_missed", Unit: "between two readings", Thread: -1, Alarm: true, Points: []Point{{at, at.Add(time.Second), 4}, {at.Add(time.Second), at.Add(2 * time.Second), 0}}},
		},
		Events:  []Line{{"", 0, "2026-02-01 12:00:00.000000 rx_missed rose", 0}, {"", 0, "2026-02-01 12:00:00.000000 revalidator1: poll interval of 2s", -1}},
		Sources: []Source{{"a.log", "log, pmd-perf-show", "1,200 lines, 2 of them could not be read: 17, 19"}, {"b.gz", "", "unexpected EOF"}},
	}
	got := FromResult(r)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := got.Write(new(bytes.Buffer)); err != nil {
		t.Error(err)
	}
}
