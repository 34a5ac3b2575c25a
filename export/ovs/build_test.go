package ovs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/perf"
)

// pmd-stats-show of a snapshot with the captured numbers is the capture.
func TestBuildStatsFollowsFromNumbers(t *testing.T) {
	for name, text := range readCaptures(t, "pmd-stats-show") {
		report, err := ParseStats(text)
		if err != nil {
			t.Fatal(err)
		}
		var snaps []*perf.Snapshot
		for _, b := range report.Blocks {
			value := func(label string) uint64 {
				v, _ := b.Value(label)
				return v
			}
			average := func(label string) float64 {
				for _, r := range b.Rows {
					if r.Label == label {
						return Figure{Number: r.Number}.Float()
					}
				}
				return 0
			}
			s := &perf.Snapshot{Core: b.Thread.Core, NUMA: b.Thread.NUMA}
			if b.Thread.Main {
				s.Kind = perf.Main
			}
			s.Totals.RxPackets = value("packets received")
			s.Totals.BusyCycles = value("processing cycles")
			s.Totals.Cycles = s.Totals.BusyCycles + value("idle cycles")
			// Averages of which the captures have no numbers: a thousand batches and a
			// thousand lookups for a hit make the two decimals exact.
			s.Counts[perf.TxBatches] = 1000
			s.Totals.TxPackets = uint64(1000*average("avg. packets per output batch") + 0.5)
			s.Counts[perf.MegaflowHit] = value("megaflow hits")
			s.Counts[perf.SubtableLooks] = uint64(average("avg. subtable lookups per megaflow hit")*float64(value("megaflow hits")) + 0.5)
			s.Counts[perf.Recirc] = value("packet recirculations")
			s.Counts[perf.PHWOLHit] = value("phwol hits")
			s.Counts[perf.MFEXOptHit] = value("mfex opt hits")
			s.Counts[perf.SimpleHit] = value("simple match hits")
			s.Counts[perf.EMCHit] = value("emc hits")
			s.Counts[perf.SMCHit] = value("smc hits")
			s.Counts[perf.UpcallsOK] = value("miss with success upcall")
			s.Counts[perf.UpcallsLost] = value("miss with failed upcall")
			snaps = append(snaps, s)
		}
		if diff := cmp.Diff(text, BuildStats(snaps, Options{}).String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestBuildStatsSelection(t *testing.T) {
	pmd, other := detailed(), detailed()
	other.Kind = perf.Main
	if r := BuildStats([]*perf.Snapshot{pmd, other}, Options{Cores: []int{3}}); len(r.Blocks) != 1 || r.Blocks[0].Thread.Main {
		t.Errorf("blocks of core 3: %+v", r.Blocks)
	}
	b := BuildStats([]*perf.Snapshot{other, pmd}, Options{}).Blocks[1]
	if _, ok := b.Value("idle cycles"); ok || !b.Thread.Main {
		t.Errorf("the main thread's block: %+v", b)
	}
}

func TestUsageSeconds(t *testing.T) {
	for _, c := range [][2]int{{0, 60}, {-1, 60}, {1, 5}, {5, 5}, {6, 10}, {60, 60}, {61, 60}} {
		if got := UsageSeconds(c[0]); got != c[1] {
			t.Errorf("UsageSeconds(%d) = %d, want %d", c[0], got, c[1])
		}
	}
}

func TestBuildRxq(t *testing.T) {
	young := detailed()
	young.Core, young.Usage, young.Isolated = 4, nil, true
	empty := detailed()
	empty.Core, empty.RxQueues = 5, nil
	mainThread := detailed()
	mainThread.Kind = perf.Main
	snaps := []*perf.Snapshot{mainThread, empty, young, detailed()}
	// Queues in the order of their names; 500 + 400 of 2000 cycles were busy, of which
	// 555 and 245 in the queues.
	want := `Displaying last 60 seconds pmd usage %
pmd thread numa_id 1 core_id 3:
  isolated : false
  port: p 1               queue-id:  2 (enabled)   pmd usage: 28 %
  port: p0                queue-id:  0 (enabled)   pmd usage: 12 %
  overhead:  5 %
pmd thread numa_id 1 core_id 4:
  isolated : true
  port: p 1               queue-id:  2 (enabled)   pmd usage: NOT AVAIL
  port: p0                queue-id:  0 (enabled)   pmd usage: NOT AVAIL
  overhead: NOT AVAIL
pmd thread numa_id 1 core_id 5:
  isolated : false
`
	if diff := cmp.Diff(want, BuildRxq(snaps, 0, Options{}).String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = `Displaying last 5 seconds pmd usage %
pmd thread numa_id 1 core_id 3:
  isolated : false
  port: p 1               queue-id:  2 (enabled)   pmd usage: 30 %
  port: p0                queue-id:  0 (enabled)   pmd usage:  4 %
  overhead:  6 %
`
	if diff := cmp.Diff(want, BuildRxq(snaps, 3, Options{Cores: []int{3}}).String()); diff != "" {
		t.Errorf("of 3 s (-want +got):\n%s", diff)
	}
	if got := BuildRxq(snaps, 0, Options{Cores: []int{9}}).String(); got != "" {
		t.Errorf("of a core that isn't there: %q", got)
	}
}

func TestBuildSleep(t *testing.T) {
	mainThread := detailed()
	mainThread.Kind = perf.Main
	want := "Default max sleep:   50 us\npmd thread numa_id 1 core_id 3:\n  max sleep:  500 us\n"
	if got := BuildSleep([]*perf.Snapshot{mainThread, detailed()}, 50*time.Microsecond, Options{}).String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
