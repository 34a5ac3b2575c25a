package ovs

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/perf/tsc"
	"github.com/pmdperf/pmdperf/suspicious"
)

// captureHz is the frequency of the machine on which a capture was made.
func captureHz(name string) float64 {
	if strings.HasPrefix(name, "g") {
		return 2.315e9
	}
	return 2.3e9
}

// snapshotOf makes a snapshot of a block's printed numbers. Three amounts are not
// printed and taken from what was derived from them: busy cycles from their share and
// cycles/pkt, subtable lookups and upcall cycles from their averages.
func snapshotOf(t *testing.T, b *PerfBlock, hz float64) *perf.Snapshot {
	t.Helper()
	value := func(label string) uint64 {
		v, _ := b.Value(label)
		return v
	}
	figure := func(label, unit string) float64 {
		f, _ := b.Figure(label, unit)
		v, _ := strconv.ParseFloat(f.Number, 64)
		return v
	}
	seconds, err := strconv.ParseFloat(b.Duration, 64)
	if err != nil {
		t.Fatal(err)
	}
	day, err := time.Parse("15:04:05.000", b.Time)
	if err != nil {
		t.Fatal(err)
	}
	const since = 1 << 40
	now := since + uint64(math.Round(seconds*hz))
	s := &perf.Snapshot{
		Core: b.Thread.Core, NUMA: b.Thread.NUMA, Hz: hz,
		Since: since, Until: now, Now: now,
		Anchor: tsc.Anchor{Ticks: now, Wall: day},
	}
	tot := &s.Totals
	tot.Iterations = value("Iterations")
	tot.BusyIterations = value("busy iterations")
	tot.SleepIterations = value("sleep iterations")
	tot.Cycles = value("Used TSC cycles")
	tot.Sleep = uint64(float64(value("Sleep time (us)")) * hz / 1e6)
	tot.RxPackets = value("Rx packets")
	tot.TxPackets = value("Tx packets")
	tot.BusyCycles = busyCycles(float64(tot.Cycles), figure("busy iterations", "% of used cycles"),
		float64(tot.RxPackets), figure("Rx packets", "cycles/pkt"))
	s.Counts = [perf.NumBuiltin]uint64{
		perf.PHWOLHit:    value("PHWOL hits"),
		perf.MFEXOptHit:  value("MFEX Opt hits"),
		perf.SimpleHit:   value("Simple Match hits"),
		perf.EMCHit:      value("EMC hits"),
		perf.SMCHit:      value("SMC hits"),
		perf.MegaflowHit: value("Megaflow hits"),
		perf.UpcallsOK:   value("Upcalls"),
		perf.UpcallsLost: value("Lost upcalls"),
		perf.TxBatches:   value("Tx batches"),
		perf.Recirc:      value("Datapath passes") - tot.RxPackets,
	}
	s.Counts[perf.SubtableLooks] = uint64(math.Round(figure("Megaflow hits", "subtbl lookups/hit") * float64(s.Counts[perf.MegaflowHit])))
	binner := histogram.NewBinner(histogram.CyclesPerUpcall.Walls())
	for range s.Counts[perf.UpcallsOK] {
		s.CyclesPerUpcall.Add(binner, uint64(figure("Upcalls", "us/upcall")*hz/1e6))
	}
	return s
}

// busyCycles returns busy cycles that round to both the share of used cycles and the
// cycles per packet that were printed.
func busyCycles(used, percent, packets, perPacket float64) uint64 {
	lo, hi := max(0, (percent-0.05)/100*used), min(used, (percent+0.05)/100*used)
	if packets == 0 {
		return uint64(min(max(percent/100*used, lo), hi))
	}
	lo, hi = max(lo, (perPacket-0.5)*packets), min(hi, (perPacket+0.5)*packets)
	return uint64((lo + hi) / 2)
}

// A snapshot of the numbers that the original printed gives the figures that the
// original derived from them, to the last digit.
func TestFiguresFollowFromNumbers(t *testing.T) {
	for name, text := range readCaptures(t, "pmd-perf-show") {
		t.Run(name, func(t *testing.T) {
			want := parsePerf(t, text)
			var snaps []*perf.Snapshot
			for i := range want.Blocks {
				b := &want.Blocks[i]
				snaps = append(snaps, snapshotOf(t, b, captureHz(name)))
				b.Histograms, b.Averages, b.Iterations, b.Milliseconds = nil, nil, nil, nil
			}
			got := BuildPerf(snaps, Options{})
			if diff := cmp.Diff(strings.Split(want.String(), "\n"), strings.Split(got.String(), "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A PMD without detailed metrics prints exactly what the original does.
func TestBasicLevel(t *testing.T) {
	text := readCaptures(t, "pmd-perf-show")["metrics-off"]
	var snaps []*perf.Snapshot
	for _, b := range parsePerf(t, text).Blocks {
		snaps = append(snaps, snapshotOf(t, &b, 2.3e9))
	}
	snaps[0], snaps[1] = snaps[1], snaps[0] // order doesn't matter
	got := BuildPerf(snaps, Options{Iterations: 5, Milliseconds: 5}).String()
	if diff := cmp.Diff(text, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The histograms of a snapshot come out as the original's.
func TestHistogramColumns(t *testing.T) {
	for _, name := range []string{"upcalls-flowlimit", "upcalls-flowdel", "sleep-afpacket-20kpps", "g11-perfshow-full-hist-it-ms-v310"} {
		want := parsePerf(t, readCaptures(t, "pmd-perf-show")[name])
		b := &want.Blocks[0]
		s := snapshotOf(t, b, captureHz(name))
		s.Level = perf.Detailed
		for m := range histogram.NumMetrics {
			h := b.Histogram(m.String())
			switch m {
			case histogram.CyclesPerIteration:
				copy(s.Cycles.Bins[:], h.Counts)
			case histogram.CyclesPerPacket:
				copy(s.CyclesPerPacket.Bins[:], h.Counts)
			case histogram.CyclesPerUpcall:
				copy(s.CyclesPerUpcall.Bins[:], h.Counts)
			case histogram.PacketsPerIteration:
				addAll(&s.Packets, h)
			case histogram.PacketsPerBatch:
				addAll(&s.BatchPackets, h)
			case histogram.QueueFill:
				addAll(&s.QueueFill, h)
			case histogram.UpcallsPerIteration:
				addAll(&s.Upcalls, h)
			}
		}
		got := BuildPerf([]*perf.Snapshot{s}, Options{}).Blocks[0]
		if diff := cmp.Diff(b.Histograms, got.Histograms); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for i, a := range got.Averages {
			if a.Title != b.Averages[i].Title {
				t.Errorf("%s: average %d is %q, want %q", name, i, a.Title, b.Averages[i].Title)
			}
		}
		none := BuildPerf([]*perf.Snapshot{s}, Options{NoHistograms: true}).Blocks[0]
		if none.Histograms != nil || none.Averages != nil {
			t.Errorf("%s: histograms in spite of NoHistograms", name)
		}
	}
}

// addAll adds a value to h for each one that was counted at a wall.
func addAll(h *histogram.Small, counts *Histogram) {
	for i, n := range counts.Counts {
		wall := uint64(2000) // beyond all walls
		if i < len(counts.Walls) {
			wall = counts.Walls[i]
		}
		for range n {
			h.Add(wall)
		}
	}
}

const hz = 2e9

// detailed returns a snapshot of a PMD with one of everything: 2 iterations in 4 ms, the
// second after a reload.
func detailed() *perf.Snapshot {
	const since = 10_000_000_000
	s := &perf.Snapshot{
		Name: "pmd-c03/id:7", Core: 3, NUMA: 1, Level: perf.Detailed, Hz: hz,
		Since: since, Until: since + 8_000_000, Now: since + 8_000_000,
		Anchor:   tsc.Anchor{Ticks: since, Wall: time.Date(2024, 5, 6, 14, 46, 9, 304e6, time.UTC)},
		MaxSleep: 500 * time.Microsecond,
		Totals: perf.Totals{
			Iterations: 2, BusyIterations: 1, SleepIterations: 1, DetailIterations: 2,
			Cycles: 3_000_000, BusyCycles: 2_000_000, Sleep: 1_000_000,
			RxPackets: 33, TxPackets: 32, RxBatches: 2, FullBatches: 1, Drops: 1, RxDrops: 3, UpcallCycles: 100_000,
		},
		Counters:      []perf.NamedCount{{Name: "acl_denied", Count: 5}},
		Timers:        []perf.TimerStats{{Name: "crypto", Count: 2, Cycles: 900, Max: 500, MaxIteration: 41}, {Name: "unused"}},
		NextIteration: 43, SlowestIteration: 42,
		RxQueues: []perf.QueueStats{
			{Queue: perf.Queue{Port: "p 1", ID: 2, Size: 512}, Packets: 30, BusyCycles: 900, IdleCycles: 50},
			{Queue: perf.Queue{Port: "p0", ID: 0}, Packets: 3, BusyCycles: 100},
		},
		TxQueues: []perf.QueueStats{{Queue: perf.Queue{Port: "p9", ID: 1}, Packets: 32,
			Sizes: perf.Sizes{Classes: [8]uint64{0, 30, 2}, Multicast: 1}}},
		Gone: perf.QueueStats{Packets: 8, BusyCycles: 9},
		Usage: []perf.Usage{
			{Ticks: 1000, Busy: 500, Idle: 300, Sleep: 150, Gap: 50, Queues: []uint64{255, 200}},
			{Ticks: 1000, Busy: 400, Idle: 600, Queues: []uint64{300, 45}},
		},
	}
	s.Gaps[history.Reload] = perf.GapStats{Count: 1, Ticks: 4_000_000, Min: 4_000_000, Max: 4_000_000, MaxAt: since + 6_000_000}
	s.Reloads.Add(4_000_000)
	s.Counts[perf.SimpleHit], s.Counts[perf.UpcallsOK], s.Counts[perf.UpcallsLost] = 30, 1, 2
	s.Counts[perf.TxBatches] = 2
	s.Iterations = []history.Record{
		{End: since + 2_000_000, Cycles: 1_000_000, Sleep: 1_000_000, Flags: history.Detailed.WithQueue(1)},
		{End: since + 8_000_000, Cycles: 2_000_000, UpcallCycles: 100_000, Rx: 33, Tx: 32, Batches: 2, Upcalls: 3, Fill: 200, Full: 1, Drops: 1,
			Flags: history.Detailed.WithQueue(0).WithGap(history.Reload)},
	}
	s.Slowest = s.Iterations[1]
	s.Suspicion.On = true
	s.Suspicious = suspicious.Counts{Iterations: 3, Merged: 1, NotCaptured: 1}
	s.Suspicious.ByReason[suspicious.Cycles], s.Suspicious.ByReason[suspicious.QueueFill] = 3, 2
	s.Millis = []history.Milli{
		{End: since + 2_000_000, Duration: 2_000_000, Cycles: 1_000_000, Sleep: 1_000_000, Iterations: 1},
		{End: since + 8_000_000, Duration: 6_000_000, Cycles: 2_000_000, BusyCycles: 2_000_000, Gap: 4_000_000, UpcallCycles: 100_000, SumFill: 200,
			Iterations: 1, BusyIterations: 1, Rx: 33, Tx: 32, Batches: 2, Upcalls: 3, MaxFill: 200, Drops: 1},
	}
	cycles := histogram.NewBinner(histogram.CyclesPerIteration.Walls())
	s.Cycles.Add(cycles, 1_000_000)
	s.Cycles.Add(cycles, 2_000_000)
	s.CyclesPerPacket.Add(histogram.NewBinner(histogram.CyclesPerPacket.Walls()), 2_000_000/33)
	upcalls := histogram.NewBinner(histogram.CyclesPerUpcall.Walls())
	for _, c := range []uint64{20_000, 30_000, 50_000} {
		s.CyclesPerUpcall.Add(upcalls, c)
	}
	for _, v := range []struct {
		h      *histogram.Small
		values []uint64
	}{{&s.Packets, []uint64{0, 33}}, {&s.BatchPackets, []uint64{32, 1}}, {&s.QueueFill, []uint64{0, 200}}, {&s.Upcalls, []uint64{0, 3}}} {
		for _, x := range v.values {
			v.h.Add(x)
		}
	}
	return s
}

func build(s *perf.Snapshot, o Options) *PerfBlock {
	return &BuildPerf([]*perf.Snapshot{s}, o).Blocks[0]
}

func wantFigure(t *testing.T, b *PerfBlock, label, unit, want string) {
	t.Helper()
	if got, ok := b.Figure(label, unit); !ok || got.Number != want {
		t.Errorf("%s of %s = %q, %v, want %q", unit, label, got.Number, ok, want)
	}
}

// An average is one over the upcalls that were timed, not one over those that
// succeeded: the original prints 0.0 us/upcall in the worst storm, and too little
// after enabling.
func TestMicrosPerUpcall(t *testing.T) {
	s := detailed()
	wantFigure(t, build(s, Options{}), "Upcalls", "us/upcall", "16.7") // 100,000 / 3 ticks
	s.Counts[perf.UpcallsOK] = 0
	wantFigure(t, build(s, Options{}), "Upcalls", "us/upcall", "16.7")
	s.Counts[perf.UpcallsOK] = 1000 // most of them before the measuring began
	wantFigure(t, build(s, Options{}), "Upcalls", "us/upcall", "16.7")
}

// Averages don't wrap after 2^32 packets or ticks, as the original's do.
func TestAverages64Bit(t *testing.T) {
	s := detailed()
	upcalls := histogram.NewBinner(histogram.CyclesPerUpcall.Walls())
	for range 3 {
		s.CyclesPerUpcall.Add(upcalls, 1<<33)
	}
	s.Totals.RxPackets, s.Totals.BusyCycles, s.Totals.Cycles = 1<<34, 1<<44, 1<<45
	got := map[string]string{}
	for _, a := range build(s, Options{}).Averages {
		got[a.Title] = a.Number
	}
	want := map[string]string{"cycles/it": "1500000", "packets/it": "16.50000", "cycles/pkt": "1024",
		"pkts/batch": "16.50000", "vhost qlen": "100.00000", "upcalls/it": "1.50000",
		"cycles/upcall": strconv.Itoa((3<<33 + 100_000) / 6)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Where nobody knows the frequency there is no figure that needs it; the original
// calculates with 1 Hz and prints "2545022843.81 us/it".
func TestUnknownFrequency(t *testing.T) {
	for _, unknown := range []float64{0, 1, math.NaN(), math.Inf(1)} {
		s := detailed()
		s.Hz = unknown
		text := BuildPerf([]*perf.Snapshot{s}, Options{Iterations: 3, Milliseconds: 3, Extra: Extra{WallClock: true, Slept: true, Lasted: true}}).String()
		for _, wrong := range []string{"us/it", "us/upcall", "Kpps)", "Kpps,", "Sleep time", "of total", "Time:", "duration", "NaN", "Inf"} {
			if strings.Contains(text, wrong) {
				t.Errorf("%v Hz: %q in\n%s", unknown, wrong, text)
			}
		}
		for _, right := range []string{"  Iterations:                    2\n", "( 66.7 % of used cycles)", "(60606 cycles/pkt)"} {
			if !strings.Contains(text, right) {
				t.Errorf("%v Hz: no %q in\n%s", unknown, right, text)
			}
		}
		checkPerf(t, text)
	}
}

// A history has a row for every iteration and millisecond that there was, and no rows
// of zeros; Kpps is a rate of the time that the row really lasted.
func TestHistories(t *testing.T) {
	got := BuildPerf([]*perf.Snapshot{detailed()}, Options{NoHistograms: true, Iterations: 1000, Milliseconds: 1000}).String()
	_, got, _ = strings.Cut(got, "pkts/batch)\n\n")
	want := `   iter                cycles       packets      cycles/pkt   pkts/batch   vhost qlen   upcalls      cycles/upcall
   42                  2000000      33           60606        16           200          3            33333      ` + `
   41                  1000000      0            0            0            0            0            0          ` + `

   ms             iterations   cycles/it    Kpps         cycles/pkt   pkts/batch   vhost qlen   upcalls      cycles/upcall
   5004           1            2000000      11           60606        16           200          3            33333      ` + `
   5001           1            1000000      0            0            0            0            0            0          ` + `
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b := build(detailed(), Options{Iterations: 1, Milliseconds: 1})
	if len(b.Iterations.Rows) != 1 || len(b.Milliseconds.Rows) != 1 || b.Iterations.Rows[0][0] != "42" {
		t.Errorf("one row each: %v %v", b.Iterations.Rows, b.Milliseconds.Rows)
	}
	s := detailed()
	s.Iterations, s.Millis = nil, nil
	b = build(s, Options{Iterations: 5, Milliseconds: 5})
	if len(b.Iterations.Rows) != 0 || len(b.Milliseconds.Rows) != 0 {
		t.Errorf("rows of nothing: %v %v", b.Iterations.Rows, b.Milliseconds.Rows)
	}
	s = detailed()
	s.Iterations[1].Flags &^= history.Detailed
	b = build(s, Options{Iterations: 5})
	if len(b.Iterations.Rows) != 1 || b.Iterations.Rows[0][0] != "41" {
		t.Errorf("iterations that were not recorded in detail: %v", b.Iterations.Rows)
	}
}

func TestExtraColumns(t *testing.T) {
	s := detailed()
	o := Options{NoHistograms: true, Iterations: 2, Milliseconds: 2}
	plain := build(s, o)
	o.Extra = Extra{true, true, true, true, true, true}
	report := BuildPerf([]*perf.Snapshot{s}, o)
	b := &report.Blocks[0]
	for _, c := range []struct {
		plain, extra *Table
		want         [][]string
	}{
		{plain.Iterations, b.Iterations, [][]string{
			{"wall clock", "tx", "slept us", "slowest queue", "mark"},
			{"14:46:09.308000", "32", "0.0", "p_1/2", "reload"},
			{"14:46:09.305000", "0", "500.0", "-", "-"}, // before the reload
		}},
		{plain.Milliseconds, b.Milliseconds, [][]string{
			{"wall clock", "tx", "slept us", "lasted us"},
			{"14:46:09.308000", "32", "0.0", "3000.0"},
			{"14:46:09.305000", "0", "500.0", "1000.0"},
		}},
	} {
		n := len(c.plain.Columns)
		got := [][]string{c.extra.Columns[n:], c.extra.Rows[0][n:], c.extra.Rows[1][n:]}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("extra columns (-want +got):\n%s", diff)
		}
		if !cmp.Equal(c.plain.Columns, c.extra.Columns[:n]) || !cmp.Equal(c.plain.Rows[0], c.extra.Rows[0][:n]) {
			t.Error("extra columns change the others")
		}
	}
	again := parsePerf(t, report.String())
	if diff := cmp.Diff(report, again); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
}

// With a duration of 0.000 s there are no counters, and never a division by zero.
func TestNoTime(t *testing.T) {
	s := detailed()
	s.Now = s.Since + 400_000 // 0.2 ms
	want := "\nTime: 14:46:09.304\nMeasurement duration: 0.000 s\n\npmd thread numa_id 1 core_id 3:\n\n"
	if got := BuildPerf([]*perf.Snapshot{s}, Options{NoHistograms: true}).String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s = &perf.Snapshot{Level: perf.Detailed, Hz: hz, Now: hz, Until: hz}
	text := BuildPerf([]*perf.Snapshot{s}, Options{Iterations: 1, Milliseconds: 1}).String()
	if strings.Contains(strings.ToLower(text), "nan") {
		t.Errorf("a recorder that recorded nothing:\n%s", text)
	}
	if !strings.Contains(text, "  Iterations:                    0  (0.00 us/it)\n") {
		t.Errorf("no row of iterations in:\n%s", text)
	}
}

func TestMainThread(t *testing.T) {
	pmd, other := detailed(), detailed()
	other.Kind = perf.Main
	snaps := []*perf.Snapshot{other, pmd}
	if r := BuildPerf(snaps, Options{}); len(r.Blocks) != 1 {
		t.Errorf("%d blocks without MainThread, want 1", len(r.Blocks))
	}
	if r := BuildPerf(snaps, Options{MainThread: true, Cores: []int{3}}); len(r.Blocks) != 1 {
		t.Errorf("%d blocks of core 3, want 1", len(r.Blocks))
	}
	if r := BuildPerf(snaps, Options{Cores: []int{9}}); r.String() != "" {
		t.Errorf("blocks of a core that isn't there: %q", r)
	}
	r := BuildPerf(snaps, Options{MainThread: true, Iterations: 1})
	text := r.Blocks[1:]
	got := (&PerfReport{Blocks: text}).String()
	want := `
Time: 14:46:09.308
Measurement duration: 0.004 s

main thread:

  Rx packets:                   33  (8 Kpps)
  Datapath passes:              33  (1.00 passes/pkt)
  - PHWOL hits:                  0  (  0.0 %)
  - MFEX Opt hits:               0  (  0.0 %)
  - Simple Match hits:          30  ( 90.9 %)
  - EMC hits:                    0  (  0.0 %)
  - SMC hits:                    0  (  0.0 %)
  - Megaflow hits:               0  (  0.0 %, 0.00 subtbl lookups/hit)
  - Upcalls:                     1  (  3.0 %)
  - Lost upcalls:                2  (  6.1 %)
  Tx packets:                   32  (8 Kpps)
  Tx batches:                    2  (16.00 pkts/batch)
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(r, parsePerf(t, r.String())); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
}

// Of an iteration that only sent, the original counts the cycles as busy and the
// iteration as idle.
func TestTxOnlyIterationIsBusy(t *testing.T) {
	s := detailed()
	s.Totals.RxPackets = 0
	b := build(s, Options{})
	if v, _ := b.Value("busy iterations"); v != 1 {
		t.Errorf("%d busy iterations, want 1", v)
	}
	wantFigure(t, b, "busy iterations", "% of used cycles", "66.7")
}

// A report that is used again is the same as a fresh one, whatever it was before.
func TestBuildAgain(t *testing.T) {
	busy, idle := detailed(), detailed()
	idle.Core, idle.Totals.RxPackets, idle.Totals.TxPackets = 9, 0, 0
	basic := detailed()
	basic.Level = perf.Basic
	r := new(PerfReport)
	for i, c := range []struct {
		snaps []*perf.Snapshot
		o     Options
	}{
		{[]*perf.Snapshot{busy, idle}, Options{Iterations: 3, Milliseconds: 3}},
		{[]*perf.Snapshot{basic}, Options{}},
		{[]*perf.Snapshot{idle, busy}, Options{NoHistograms: true}},
		{nil, Options{}},
		{[]*perf.Snapshot{busy, idle}, Options{}},
	} {
		r.Build(c.snaps, c.o)
		want := BuildPerf(c.snaps, c.o)
		if diff := cmp.Diff(want, r, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%d (-fresh +again):\n%s", i, diff)
		}
		text, err := r.AppendText([]byte("before "))
		if got := string(text); err != nil || got != "before "+want.String() {
			t.Errorf("%d: %v: %s", i, err, got)
		}
	}
}
