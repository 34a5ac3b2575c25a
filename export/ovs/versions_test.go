package ovs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// format returns the text of a file in testdata/formats.
func format(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/formats", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// formats returns the versions that there are files for.
func formats(t testing.TB, command string) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/formats/*." + command + ".txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no formats of %s: %v", command, err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), "."+command+".txt")
	}
	return files
}

// absent marks a row that a version doesn't have.
const absent = ^uint64(0)

// valuer is a block of a report.
type valuer interface {
	Value(label string) (uint64, bool)
}

// values returns what a block has for labels.
func values(b valuer, labels map[string]uint64) map[string]uint64 {
	got := make(map[string]uint64)
	for label := range labels {
		v, ok := b.Value(label)
		if !ok {
			v = absent
		}
		got[label] = v
	}
	return got
}

// with returns a map with some values changed.
func with(m map[string]uint64, change map[string]uint64) map[string]uint64 {
	all := make(map[string]uint64)
	for _, from := range []map[string]uint64{m, change} {
		for k, v := range from {
			all[k] = v
		}
	}
	return all
}

func TestPerfVersions(t *testing.T) {
	busy := map[string]uint64{
		"Iterations": 9912345, "Used TSC cycles": 14724135176, "idle iterations": 2345678, "busy iterations": 7566667,
		"sleep iterations": absent, "Sleep time (us)": absent,
		"Rx packets": 123456789, "Datapath passes": 123461110, "PHWOL hits": absent, "MFEX Opt hits": absent,
		"Simple Match hits": absent, "EMC hits": 123000000, "SMC hits": 31, "Megaflow hits": 450000,
		"Upcalls": 4000, "Lost upcalls": 33, "Tx packets": 120000000, "Tx batches": 4000000,
	}
	// What is left out where nothing was received is 0, in versions that have it.
	idle := map[string]uint64{
		"Iterations": 31234567, "Used TSC cycles": 14726900000, "idle iterations": 31234567, "busy iterations": 0,
		"sleep iterations": absent, "Rx packets": 0, "Datapath passes": 0, "PHWOL hits": absent, "MFEX Opt hits": absent,
		"Simple Match hits": absent, "EMC hits": 0, "SMC hits": 0, "Megaflow hits": 0,
		"Upcalls": 0, "Lost upcalls": 0, "Tx packets": 0, "Tx batches": 0, "Cakes": absent,
	}
	slept := map[string]uint64{"sleep iterations": 1200, "Sleep time (us)": 66000}
	later := map[string]uint64{"sleep iterations": 0, "PHWOL hits": 0, "Simple Match hits": 0}
	v216 := map[string]uint64{"PHWOL hits": 17, "MFEX Opt hits": 23}
	v217 := with(v216, map[string]uint64{"Simple Match hits": 29})
	want := map[string][2]map[string]uint64{
		"2.10": {with(busy, map[string]uint64{"SMC hits": absent}), with(idle, map[string]uint64{"SMC hits": absent})},
		"2.11": {busy, idle},
		"2.16": {with(busy, v216), idle},
		"2.17": {with(busy, v217), idle},
		"3.2":  {with(with(busy, v217), slept), with(idle, later)},
		"4.0":  {with(with(with(busy, v217), slept), map[string]uint64{"MFEX Opt hits": absent}), with(idle, later)},
	}
	for _, version := range formats(t, "perf") {
		r, err := ParsePerf(format(t, version+".perf"))
		if err != nil {
			t.Fatal(err)
		}
		blocks := 2
		if version == "4.0" {
			blocks++
		}
		if len(r.Unread) > 0 || len(r.Blocks) != blocks {
			t.Errorf("%s: %d blocks, unread %v", version, len(r.Blocks), r.Unread)
			continue
		}
		for i, want := range want[version] {
			b := &r.Blocks[i]
			if diff := cmp.Diff(want, values(b, want)); diff != "" {
				t.Errorf("%s, block %d (-want +got; %d is absent):\n%s", version, i, absent, diff)
			}
			if len(b.Histograms) != 7 || len(b.Averages) != 7 || b.Time != "14:46:09.304" || b.Duration == "" {
				t.Errorf("%s, block %d: %d histograms, %d averages, at %q for %q", version, i, len(b.Histograms), len(b.Averages), b.Time, b.Duration)
			}
			for _, h := range b.Histograms {
				if len(h.Walls) != 31 || len(h.Counts) != 32 {
					t.Errorf("%s, block %d, %s: %d walls, %d counts", version, i, h.Title, len(h.Walls), len(h.Counts))
				}
			}
		}
		// In the layout of 3.1 it still says the same.
		again, err := ParsePerf(r.String())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("%s: written and read again (-before +after):\n%s", version, diff)
		}
	}

	// Units of 2.10, which differ.
	r, err := ParsePerf(format(t, "2.10.perf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct{ label, unit, want string }{
		{"Used TSC cycles", "GHz", "2.30"},
		{"idle iterations", "% cycles", "24.5"},
		{"Megaflow hits", "subtbl lookups/hit", "1.25"},
	} {
		if got, ok := r.Blocks[0].Figure(f.label, f.unit); !ok || got.Number != f.want {
			t.Errorf("%s of %s: %+v, %v, want %s", f.unit, f.label, got, ok, f.want)
		}
	}
}

// A row that is missing though packets were received is not 0 but cut off.
func TestPerfCut(t *testing.T) {
	r, err := ParsePerf("pmd thread numa_id 0 core_id 1:\n\n  Rx packets: 5\n  Tx packets: 4\n\npmd thread numa_id 0 core_id 2:\n")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]uint64{"EMC hits": absent, "Upcalls": absent, "Tx batches": absent}
	for i := range r.Blocks {
		if diff := cmp.Diff(want, values(&r.Blocks[i], want)); diff != "" {
			t.Errorf("block %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestPerfMainThread(t *testing.T) {
	r, err := ParsePerf(format(t, "4.0.perf"))
	if err != nil {
		t.Fatal(err)
	}
	b := &r.Blocks[2]
	want := map[string]uint64{
		"Iterations": absent, "Used TSC cycles": absent, "sleep iterations": absent, "Rx packets": 40, "Datapath passes": 42,
		"PHWOL hits": 0, "Simple Match hits": 2, "EMC hits": 30, "Megaflow hits": 5, "Upcalls": 4, "Lost upcalls": 1,
		"Tx packets": 3, "Tx batches": 3,
	}
	if diff := cmp.Diff(want, values(b, want)); diff != "" || !b.Thread.Main {
		t.Errorf("%v (-want +got):\n%s", b.Thread, diff)
	}
}

func TestStatsVersions(t *testing.T) {
	since210 := map[string]uint64{
		"packets received": 123456789, "packet recirculations": 4321, "phwol hits": absent, "mfex opt hits": absent,
		"simple match hits": absent, "emc hits": 123000000, "smc hits": 31, "megaflow hits": 450000,
		"miss with success upcall": 4000, "miss with failed upcall": 33,
		"idle cycles": 3603261452, "processing cycles": 11120873724,
	}
	before29 := with(since210, map[string]uint64{"packets received": absent, "packet recirculations": absent, "smc hits": absent})
	later := map[string]uint64{"phwol hits": 17, "mfex opt hits": 23}
	want := map[string]map[string]uint64{
		"2.6":  before29,
		"2.8":  before29,
		"2.9":  with(since210, map[string]uint64{"smc hits": absent}),
		"2.10": since210,
		"2.16": with(since210, later),
		"2.17": with(with(since210, later), map[string]uint64{"simple match hits": 29}),
		// That is pmd-perf-show, in which the cycles by state are no longer.
		"4.0": with(since210, map[string]uint64{"phwol hits": 17, "simple match hits": 29, "idle cycles": absent, "processing cycles": absent}),
	}
	for _, version := range formats(t, "stats") {
		r, err := ParseStats(format(t, version+".stats"))
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Unread) > 0 || len(r.Blocks) < 2 {
			t.Errorf("%s: %d blocks, unread %v", version, len(r.Blocks), r.Unread)
			continue
		}
		if diff := cmp.Diff(want[version], values(&r.Blocks[0], want[version])); diff != "" {
			t.Errorf("%s (-want +got; %d is absent):\n%s", version, absent, diff)
		}
		last := &r.Blocks[len(r.Blocks)-1]
		if _, ok := last.Value("idle cycles"); ok || last.Thread != MainThread() {
			t.Errorf("%s: the last block is %v, with cycles: %v", version, last.Thread, ok)
		}
		again, err := ParseStats(r.String())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("%s: written and read again (-before +after):\n%s", version, diff)
		}
	}
	// The averages of 4.0 are there, too.
	r, err := ParseStats(format(t, "4.0.stats"))
	if err != nil {
		t.Fatal(err)
	}
	var averages []StatsRow
	for _, row := range r.Blocks[0].Rows {
		if strings.HasPrefix(row.Label, "avg.") {
			averages = append(averages, row)
		}
	}
	wantAverages := []StatsRow{
		{"avg. datapath passes per packet", "1.00", ""},
		{"avg. subtable lookups per megaflow hit", "1.25", ""},
		{"avg. packets per output batch", "30.00", ""},
	}
	if diff := cmp.Diff(wantAverages, averages); diff != "" {
		t.Errorf("averages of 4.0 (-want +got):\n%s", diff)
	}
}

func TestRxqVersions(t *testing.T) {
	queue := func(port string, id int, u Usage) RxqQueue {
		return RxqQueue{Port: port, Queue: id, Enabled: true, Usage: u}
	}
	three := []RxqQueue{queue("dpdk0", 0, Usage{true, 2}), queue("dpdk0", 1, Usage{true, 43}), queue("vhu-a-rather-long", 0, Usage{})}
	three[2].Enabled = false
	change := func(list []RxqQueue, f func(*RxqQueue)) []RxqQueue {
		list = append([]RxqQueue{}, list...)
		for i := range list {
			f(&list[i])
		}
		return list
	}
	noState := change(three, func(q *RxqQueue) { q.NoState, q.Enabled = true, true })
	noUsage := change([]RxqQueue{queue("dpdk0", 0, Usage{}), queue("dpdk0", 1, Usage{}), queue("vhu-a", 0, Usage{})},
		func(q *RxqQueue) { q.NoState, q.NoUsage = true, true })
	overhead := &Usage{true, 11}
	for version, want := range map[string]struct {
		seconds  int
		queues   []RxqQueue
		overhead *Usage
	}{
		"2.8": {0, noUsage, nil}, "2.9": {0, noState, nil}, "2.10": {0, noState, nil},
		"2.12": {0, three, nil}, "2.16": {0, three, overhead}, "3.1": {60, three, overhead},
	} {
		text := format(t, version+".rxq")
		r, err := ParseRxq(text)
		if err != nil {
			t.Fatal(err)
		}
		yes, no := true, false
		wanted := &RxqReport{Seconds: want.seconds, Blocks: []RxqBlock{
			{Thread: Thread{NUMA: 0, Core: 1}, Isolated: &yes, Queues: want.queues, Overhead: want.overhead},
			{Thread: Thread{NUMA: 1, Core: 13}, Isolated: &no},
		}}
		if diff := cmp.Diff(wanted, r); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
		again, err := ParseRxq(r.String())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("%s: written and read again (-before +after):\n%s", version, diff)
		}
		// Since 2.10 it is even the same text.
		if version != "2.8" && version != "2.9" && r.String() != text {
			t.Errorf("%s: written again it differs (-want +got):\n%s", version, cmp.Diff(text, r.String()))
		}
	}
	if n := len(formats(t, "rxq")); n != 6 {
		t.Errorf("%d formats, want 6", n)
	}
}
