package live

import (
	"math"
	"os"
	"testing"

	"github.com/pmdperf/pmdperf/export/ovs"
)

// capture reads what a real Open vSwitch printed.
func capture(t *testing.T, name string) *Sample {
	t.Helper()
	read := func(file string) string {
		text, err := os.ReadFile("../../export/ovs/testdata/ovs-3.1/" + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	perf, err := ovs.ParsePerf(read(name + ".txt"))
	if err != nil {
		t.Fatal(err)
	}
	stats, err := ovs.ParseStats(read(name + ".stats.txt"))
	if err != nil {
		t.Fatal(err)
	}
	s := &Sample{Form: Text}
	s.readText(perf, stats)
	return s
}

func within(t *testing.T, what string, got, want, percent float64) {
	t.Helper()
	if !(math.Abs(got-want) <= math.Abs(want)*percent/100) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestReadText(t *testing.T) {
	s := capture(t, "manyflows-normal").Since(nil)[0]
	near(t, "length", s.Seconds, 6.012)
	within(t, "frequency", s.Hz, 2.3e9, 0.2)
	if !s.Estimated {
		t.Error("the frequency is not an estimate")
	}
	near(t, "packets", s.Counts.Get(RxPackets), 1454112)
	near(t, "batches", s.Counts.Get(RxBatches), 45441)
	near(t, "drops", s.Counts.Get(Drops), math.NaN())
	within(t, "busy", s.BusyPercent(), 100, 0.1)
	if m := s.Histograms[CyclesPerIteration].Max(); m != (Estimate{24000000, MoreThan}) {
		t.Errorf("max is %+v, want more than the last wall", m)
	}
	p := s.Histograms[CyclesPerIteration].Percentile(50)
	// 12581 of 45444 are up to 76480, and 15873 more up to 109544.
	within(t, "median", p.Value, 76480+(109544-76480)*(22722.0-12581)/15873, 0.01)
	if n := len(s.Iterations); n != 30 {
		t.Errorf("%d iterations, want 30", n)
	}
	if r := s.Iterations[0]; r.Iteration != 162716830 || r.Cycles != 90954 || r.Rx != 32 || *r.Fill != 0 {
		t.Errorf("the newest iteration is %+v", r)
	}

	s = capture(t, "sleep-afpacket-20kpps").Since(nil)[0]
	within(t, "frequency of one that sleeps", s.Hz, 2.3e9, 1)
	within(t, "sleep", s.SleepPercent(), 100*5.706/6.038, 1)
	within(t, "busy of one that sleeps", s.BusyPercent(), 5.3*0.907, 3) // of 2 digits

	two := capture(t, "two-pmds")
	if len(two.PMDs) != 2 || two.PMDs[0].Core != 0 || two.PMDs[1].Core != 1 {
		t.Fatalf("PMDs are %+v", two.PMDs)
	}
	if s := two.Since(nil)[0]; s.Counts.Get(BusyCycles) == 0 {
		t.Error("cycles of pmd-stats-show are not in the sample")
	}
	off := capture(t, "metrics-off")
	if off.PMDs[0].Histograms[CyclesPerIteration].Known() {
		t.Error("there is a histogram where metrics are off")
	}
}

// TestFrequencyUnknown: without DPDK Open vSwitch computes with 1 Hz.
func TestFrequencyUnknown(t *testing.T) {
	perf, err := ovs.ParsePerf(`
Time: 14:50:01.963
Measurement duration: 2.000 s

pmd thread numa_id 0 core_id 0:

  Iterations:                 1000  (2545022843.81 us/it)
  - Used TSC cycles:    1000000000  (50000000000.0 % of total cycles)
  Sleep time (us): 3000000000000000  (  0 us/iteration avg.)
`)
	if err != nil {
		t.Fatal(err)
	}
	var s Sample
	s.readText(perf, new(ovs.StatsReport))
	near(t, "frequency", s.PMDs[0].Hz, 2e9)
	near(t, "sleep", new(s.Since(nil)[0]).SleepPercent(), 75)
}

func TestMillis(t *testing.T) {
	b := &ovs.PerfBlock{Milliseconds: &ovs.Table{
		Columns: []string{"ms", "iterations", "cycles/it", "Kpps", "cycles/pkt", "pkts/batch", "vhost qlen", "upcalls", "cycles/upcall"},
		Rows: [][]string{
			{"1009", "10", "200", "32", "50", "16", "3", "2", "0"},
			{"1006", "20", "100", "64", "25", "16", "4", "0", "0"}, // lasted 3 ms
			{"1005", "0", "0", "0", "0", "0", "0", "0", "0"},       // a slot that holds nothing
			{"1012", "5", "1", "1", "5", "1", "0", "0", "0"},       // overwritten while it was printed
			{"1004", "5", "100", "1", "5", "1", "0", "0", "0"},
		},
	}}
	var p PMD
	p.histories(b)
	if len(p.Millis) != 3 {
		t.Fatalf("%d rows, want 3", len(p.Millis))
	}
	for i, want := range []Milli{
		{0, 0.001, 10, 2000, 1600, 32, 2, 3},
		{0.001, 0.003, 20, 2000, 1600, 64, 0, 4},
		{0.004, 0.002, 5, 500, 5, 1, 0, 0},
	} {
		if p.Millis[i] != want {
			t.Errorf("row %d is %+v, want %+v", i, p.Millis[i], want)
		}
	}
}
