package observe

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/suspicious/cause"
)

var update = flag.Bool("update", false, "write the golden files again")

// TestRecords compares every record, as text and as JSON, with what it was.
func TestRecords(t *testing.T) {
	const ms = time.Millisecond
	spell := hogged(10*ms, 4*ms)
	slept := &Spell{Thread: "pmd-c02/id:9", TID: 78, Core: -1, Kind: OffCore, Begin: at(20 * ms), Took: 1500 * ms, Lasts: true, Causes: []cause.Cause{
		{Kind: cause.Blocked, Name: "ppoll", Part: 1400 * ms, Share: 14. / 15, How: cause.Exact, Evidence: "it left its core in that call"},
		{Kind: cause.Preempted, Name: "cc1", PID: 99, Part: 100 * ms, Share: 1. / 15, How: cause.Exact, Evidence: "task 99 had the core while the thread was runnable"},
	}}
	records := []Record{
		&Thread{Time: at(0), PID: 70, TID: 77, Name: "pmd-c01/id:8", Core: 1, Watched: true, Probes: []cause.Status{{Probe: "switches", Runs: true}, {Probe: "steal", Why: "no core"}}},
		&Thread{Time: at(0), PID: 70, TID: 78, Name: "pmd-c02/id:9", Core: -1, Watched: true},
		spell, slept,
		&Spell{Thread: "pmd-c01/id:8", TID: 77, Core: 1, Kind: Interrupt, Begin: at(30 * ms), Took: 2 * ms, Causes: []cause.Cause{
			{Kind: cause.Interrupts, Name: "softirq NET_RX", Part: 2 * ms, Share: 1, How: cause.Exact, Evidence: "timed at its entry and exit"}}},
		&Spell{Thread: "pmd-c01/id:8", TID: 77, Core: 1, Kind: Pause, Begin: at(40 * ms), Took: 20 * ms, Causes: []cause.Cause{
			{Kind: cause.Hypervisor, Name: "pause", Part: 20 * ms, Share: 1, How: cause.Sampled, Evidence: "4 timer interrupts of its core didn't come"}}},
		&Iteration{Logged: at(15 * ms), Thread: "pmd-c01/id:8", Iteration: 1234, Reasons: []string{"Excessive total cycles"}, Took: 5 * ms, Begin: at(10 * ms), Estimated: true,
			Watched: true, Spells: []*Spell{spell}, Causes: spell.Causes},
		&Iteration{Logged: at(15 * ms), Thread: "pmd-c05/id:3", Iteration: 7, Reasons: []string{"Vhost RX queue full"}, Took: 5 * ms, Begin: at(10 * ms), Spells: []*Spell{}, Causes: []cause.Cause{}},
		&Thread{Time: at(time.Second), PID: 70, TID: 78, Name: "pmd-c02/id:9", Core: -1},
		&Summary{Begin: at(0), Took: 10 * time.Second, Threshold: ms, Iterations: 2, Explained: 1, Unread: 3, Threads: []ThreadSummary{
			{Name: "pmd-c01/id:8", TID: 77, Core: 1, Watched: 10 * time.Second, Switches: true, Spells: 1234, Off: 45 * ms, Longest: 4 * ms, Over: 12, Wait: 41 * ms, Faults: 3,
				Causes: []CauseSum{{"preempted by sh", 11, 43 * ms}}, Sharers: []CauseSum{{"sh", 900, 44 * ms}, {"kworker/1:1", 10, ms}}},
			{Name: "pmd-c02/id:9", TID: 78, Core: -1, Watched: time.Second, Wait: -1},
		}, Cores: []CoreSummary{{Core: 1, Lines: []cause.Line{{Name: "LOC Local timer interrupts", N: 2503}, {Name: "RCU", N: 4}}, Timed: 12 * ms, Knows: true}, {Core: 2}}},
	}
	var b strings.Builder
	for _, r := range records {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var back map[string]any
		if err := json.Unmarshal(text, &back); err != nil || back["version"] != 1.0 || back["type"] == nil {
			t.Errorf("%s: %v", text, err)
		}
		b.WriteString(r.String() + "\n" + string(text) + "\n\n")
	}
	golden := filepath.Join("testdata", "records.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
