package ovslog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/suspicious"
)

// 19: rows had no wall-clock time and no mark on the culprit, and a rate limit lost events
// or half of one. Here the log's rows are those of the records, newest first, and what is
// missing is said in a line of its own and missing in the numbers.
func TestDefect19OneMessageWithTimeAndMark(t *testing.T) {
	report := func() *suspicious.Report {
		r := &suspicious.Report{Name: "pmd-c03/id:7", Core: 3, Hz: 1e9, AnchorTicks: 1e9, Anchor: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
		r.Event = suspicious.Event{Iteration: 8, First: 7, Reasons: 1<<suspicious.Cycles | 1<<suspicious.Drops}
		r.Causes = []suspicious.Cause{
			{Kind: suspicious.CausePreempted, Name: "sh|(a)\n", Share: 0.926},
			{Kind: suspicious.CauseFaults, Share: 0.05},
		}
		r.Records = []history.Record{
			{End: 5e8, Cycles: 900, Rx: 0},
			{End: 6e8, Cycles: 2500999, Rx: 7, Batches: 2, Fill: 99, Upcalls: 2, UpcallCycles: 25, Drops: 1},
			{End: 7e8, Cycles: 800, Rx: 4, Batches: 1},
		}
		return r
	}
	dir := filepath.Join(t.TempDir(), "later")
	file := suspicious.NewFile(suspicious.FileConfig{Path: filepath.Join(dir, "log")})
	sink := To(file)
	sink(report())
	sink(report())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	held := report()
	held.HeldBack = 5
	sink(held)
	b, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(b)) {
		if _, after, ok := strings.Cut(line, "Z|"); ok {
			line = after
		}
		got = append(got, strings.TrimRight(line, " \n"))
	}
	want := []string{
		"00004|pmd_perf(pmd-c03/id:7)|WARN|5 suspicious iterations before this one were held back by the rate limit",
		"00005|pmd_perf(pmd-c03/id:7)|WARN|2 suspicious iterations before this one could not be written",
		"00006|pmd_perf(pmd-c03/id:7)|WARN|Suspicious iteration (Excessive total cycles, Packets dropped): iter=8 duration=2500 us at 2026-01-02T03:04:04.597499Z; preempted by sh  a   93 %, page faults 5 %",
		"Neighborhood of suspicious iteration:",
		"   iter                cycles       packets      cycles/pkt   pkts/batch   vhost qlen   upcalls      cycles/upcall",
		"   9                   800          4            200          4            0            0            0",
		"   8                   2500999      7            357285       3            99           2            12          *",
		"   7                   900          0            0            0            0            0            0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if events, _, _ := read(t, string(b)); len(events) != 1 || len(events[0].Table) != 3 || events[0].Culprit != 1 || events[0].Causes != "preempted by sh  a   93 %, page faults 5 %" {
		t.Errorf("read back: %+v", events)
	}
	if n, _ := file.Lost(); n != 2 {
		t.Errorf("%d lost", n)
	}
}
