package pmd

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/perf/tsc"
)

var update = flag.Bool("update", false, "write the goldens anew")

// snapshots are of two PMDs: one that has everything, and one that has nothing.
func snapshots() []*perf.Snapshot {
	const hz = 2e9
	s := &perf.Snapshot{
		Name: "pmd-c01/id:9", Core: 1, NUMA: 0, Level: perf.Detailed, State: perf.Running, Hz: hz,
		Anchor: tsc.Anchor{Ticks: 100 * hz, Wall: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)},
		Since:  90 * hz, Until: 100 * hz, Now: 100 * hz,
	}
	b := histogram.NewBinner(histogram.CyclesPerIteration.Walls())
	for i := range uint64(1000) {
		s.Cycles.Add(b, 2000+10*i)
		s.Packets.Add(i % 33)
		s.CyclesPerPacket.Add(b, 100+i%50)
		s.BatchPackets.Add(i % 33)
		s.QueueFill.Add(i % 200)
		s.Upcalls.Add(i / 990)
		s.CyclesPerUpcall.Add(b, 50_000+i)
		s.Totals.Cycles += 2000 + 10*i
	}
	s.Totals.Iterations, s.Totals.DetailIterations = 1000, 1000
	for _, l := range []uint64{200_000, 300_000, 4_000_000} {
		s.Reloads.Add(l)
	}
	s.Gaps = [history.NumGaps]perf.GapStats{
		history.Accounting: {Count: 16, Ticks: 32_000, Min: 1000, Max: 5000, MaxAt: 95 * hz},
		history.Answering:  {Count: 4, Ticks: 50_000, Min: 9000, Max: 20_000, MaxAt: 96 * hz},
		history.Reload:     {Count: 3, Ticks: 4_500_000, Min: 200_000, Max: 4_000_000, MaxAt: 97 * hz},
	}
	sizes := perf.Sizes{Classes: [8]uint64{0, 10, 20, 0, 0, 0, 30, 1}, Multicast: 3, Broadcast: 2}
	s.RxQueues = []perf.QueueStats{
		{Queue: perf.Queue{Port: "eth0", ID: 0, Size: 1024}, Packets: 61, Sizes: sizes},
		{Queue: perf.Queue{Port: "vhost-user-0", ID: 12}, Packets: 5},
	}
	s.Gone = perf.QueueStats{Packets: 7, Sizes: perf.Sizes{Classes: [8]uint64{7}}}
	s.TxQueues = []perf.QueueStats{{Queue: perf.Queue{Port: "eth0", ID: 1}, Packets: 61, Sizes: sizes}}
	return []*perf.Snapshot{s, {Name: "pmd-c17/id:10", Core: 17, NUMA: 1, Level: perf.Basic, State: perf.Parked}}
}

// TestGoldens pins the texts and the JSON of our own commands.
func TestGoldens(t *testing.T) {
	d := ovs.NewDocument(snapshots(), ovs.Options{})
	r := remarks{Missing: []missing{{"pmd-c02/id:8", 2, 0, new(1.25), "pmd-c02/id:8: no iteration completed for 1.25s"}}}
	s := sources()
	for name, a := range map[string]answer{
		"overhead":         newOverhead(d, r),
		"reloads":          newReloads(d, r),
		"packet-sizes":     newSizes(d, r),
		"percentiles":      newPercentiles(d, r, s),
		"percentiles-one":  newPercentiles(d, r, s[4:5]),
		"level":            &levelAnswer{[]levelThread{{identity{"pmd-c01/id:9", 1, 0}, "detailed", "running"}, {identity{"pmd-c17/id:10", 17, 1}, "basic", "parked"}}, r},
		"clock-stated":     &clockAnswer{"tsc", 2.3e9, true, 2.3e9 + 4600, []string{}},
		"clock-with-probe": &clockAnswer{"cntvct", 25e6, false, 25e6, []string{"rusage", "schedstat"}},
	} {
		data, err := json.MarshalIndent(a.json(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", textOf(a))
		golden(t, name+".json", string(data)+"\n")
	}
}

func textOf(a answer) string {
	var b strings.Builder
	a.write(&b)
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// The names of histograms are those in the JSON of a recorder.
func TestSourceNames(t *testing.T) {
	d := ovs.NewDocument(snapshots(), ovs.Options{})
	h := d.Threads[0].Histograms
	for _, s := range sources() {
		if _, ok := h[s.name]; !ok && s.name != reloadSpans {
			t.Errorf("the JSON of a recorder has no %q", s.name)
		}
	}
	if len(sources()) != len(h)+1 {
		t.Errorf("%d names for %d histograms and the reloads", len(sources()), len(h))
	}
}
