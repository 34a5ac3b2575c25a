package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/export/ovs"
)

func TestSummarize(t *testing.T) {
	r := &ovs.Recorded{
		Name:   "pmd-c01/id:1",
		Level:  "detailed",
		Hz:     2e9,
		Cycles: &ovs.CycleSums{Wall: 2e9, Used: 1.9e9, Gaps: 1e8},
		Slowest: &ovs.IterationRow{
			Iteration: 23, Cycles: 4e6 + 200, Rx: 32, Tx: 31,
			Time:        time.Date(2026, 1, 2, 3, 4, 5, 678900000, time.UTC),
			SlowestPort: "mem0", SlowestQueue: new(1),
			After: []string{"accounting", "reload"},
		},
		Histograms: map[string]ovs.HistogramData{"cycles_per_iteration": {
			Max: new(uint64(4e6 + 200)),
			Percentiles: []ovs.Percentile{{Percent: 50, Value: 80}, {Percent: 90, Value: 90}, {Percent: 99, Value: 300},
				{Percent: 99.9, Value: 2000}, {Percent: 99.99, Value: 64000}, {Percent: 99.999, Value: 3e6}},
		}},
		Gaps: map[string]ovs.GapSums{
			"accounting": {Count: 1000, Ticks: 3e7, Max: new(uint64(5e4))},
			"answering":  {Count: 2, Ticks: 1e7, Max: new(uint64(9e6))},
			"reload":     {Count: 1, Ticks: 6e7, Max: new(uint64(6e7))},
			"off":        {},
		},
	}
	var b bytes.Buffer
	summarize(&b, r)
	want := `pmd-c01/id:1, beyond pmd-perf-show:
  Slowest iteration: 23, 2000.1 us, ended 03:04:05.678900, most of it at mem0 queue 1, 32 packets received, 31 sent, after accounting and reload
  Iterations (us): p50 0.04, p99 0.15, p99.9 1.00, p99.99 32.00, max 2000.10
  Gaps                count       total us       max us    % of time
  - accounting         1000        15000.0         25.0        1.500
  - answering             2         5000.0       4500.0        0.500
  - reload                1        30000.0      30000.0        3.000
  - off                   0            0.0          0.0        0.000
  Recorder's own work between iterations: 2.00 % of the time
`
	if got := b.String(); got != want {
		t.Errorf("summary is\n%swant\n%s", got, want)
	}
}
