package prom

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/internal/promlab"
	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
)

// series is all values gathered, by name and labels: those of histograms as name_sum
// and name_count.
func series(families map[string]*dto.MetricFamily) map[string]float64 {
	all := make(map[string]float64)
	for name, f := range families {
		for _, m := range f.Metric {
			labels := labelsOf(m)
			switch {
			case m.Counter != nil:
				all[name+labels] = m.Counter.GetValue()
			case m.Gauge != nil:
				all[name+labels] = m.Gauge.GetValue()
			case m.Histogram != nil:
				all[name+"_sum"+labels] = m.Histogram.GetSampleSum()
				all[name+"_count"+labels] = float64(m.Histogram.GetSampleCount())
			}
		}
	}
	return all
}

func labelsOf(m *dto.Metric) string {
	var labels []string
	for _, l := range m.Label {
		labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	slices.Sort(labels)
	return "{" + strings.Join(labels, ",") + "}"
}

// ran returns the registry of two loops that have ended after some passes, of cores 1
// and 3, and what they recorded.
func ran(t *testing.T) (*perf.Registry, []*perf.Snapshot) {
	t.Helper()
	g := new(perf.Registry)
	var snaps []*perf.Snapshot
	for _, core := range []int{1, 3} {
		level := perf.Detailed
		if core == 3 {
			level = perf.Basic
		}
		p := start(t, g, core, level)
		await(t, "there was something", func() bool {
			var s perf.Snapshot
			return p.Snapshot(t.Context(), perf.Want{}, &s) == nil && s.Totals.Iterations > 50
		})
		change := polling(core)
		p.polling.Store(&change)
		await(t, "it was reloaded", func() bool { return p.polling.Load() == nil })
		p.end()
		s := new(perf.Snapshot)
		if err := p.Snapshot(t.Context(), perf.Want{}, s); err != nil {
			t.Fatal(err)
		}
		snaps = append(snaps, s)
	}
	return g, snaps
}

// What is gathered is what was recorded.
func TestCollector(t *testing.T) {
	g, snaps := ran(t)
	g.Shared().Batch(7)
	g.Shared().Upcall(true)
	families := gather(t, NewCollector(g, CollectorOptions{}))
	got := series(families)
	for _, s := range snaps {
		pmd := fmt.Sprintf(`{cpu="%d",numa="%d"}`, s.Core, s.NUMA)
		with := func(label, value string) string {
			labels := []string{fmt.Sprintf(`cpu="%d"`, s.Core), fmt.Sprintf(`numa="%d"`, s.NUMA), fmt.Sprintf("%s=%q", label, value)}
			slices.Sort(labels)
			return "{" + strings.Join(labels, ",") + "}"
		}
		wall := 0.0
		for _, state := range []string{"busy", "idle", "sleep", "accounting", "answering", "reload", "off"} {
			v, ok := got["ovs_pmd_cycles_total"+with("state", state)]
			if !ok {
				t.Errorf("no cycles %s", state)
			}
			wall += v
		}
		rxq := func(name string, q int) string {
			return fmt.Sprintf("%s{cpu=\"%d\",interface=%q,numa=\"%d\",rxq=\"%d\"}", name, s.Core, s.RxQueues[q].Port, s.NUMA, s.RxQueues[q].ID)
		}
		want := map[string]float64{
			"ovs_pmd_up{}":                                            1,
			"ovs_pmd_stalled" + pmd:                                   0,
			"ovs_pmd_info" + with("name", s.Name):                     1,
			"ovs_pmd_level" + with("level", s.Level.String()):         1,
			"ovs_pmd_level" + with("level", "off"):                    0,
			"ovs_pmd_tsc_hertz" + pmd:                                 s.Hz,
			"ovs_pmd_cpu_isolated" + pmd:                              map[int]float64{1: 0, 3: 1}[s.Core],
			"ovs_pmd_max_sleep_seconds" + pmd:                         float64(s.Core) * 1e-5,
			"ovs_pmd_iterations_total" + with("state", "busy"):        float64(s.Totals.BusyIterations),
			"ovs_pmd_iterations_total" + with("state", "idle"):        float64(s.Totals.Iterations - s.Totals.BusyIterations),
			"ovs_pmd_cycles_total" + with("state", "busy"):            float64(s.Totals.BusyCycles),
			"ovs_pmd_used_cycles_total" + pmd:                         float64(s.Totals.Cycles),
			"ovs_pmd_rx_packets_total" + pmd:                          float64(s.Totals.RxPackets),
			"ovs_pmd_tx_packets_total" + pmd:                          float64(s.Totals.TxPackets),
			"ovs_pmd_dropped_packets_total" + pmd:                     float64(s.Totals.Drops),
			"ovs_pmd_rx_ring_dropped_packets_total" + pmd:             float64(s.Totals.RxDrops),
			"ovs_pmd_tx_batches_total" + pmd:                          float64(s.Counts[perf.TxBatches]),
			"ovs_pmd_datapath_passes_total" + pmd:                     float64(s.DatapathPasses()),
			"ovs_pmd_lookup_hits_total" + with("cache", "emc"):        float64(s.Counts[perf.EMCHit]),
			"ovs_pmd_subtable_lookups_total" + pmd:                    float64(s.Counts[perf.SubtableLooks]),
			"ovs_pmd_upcalls_total" + pmd:                             float64(s.Counts[perf.UpcallsOK]),
			"ovs_pmd_lost_upcalls_total" + pmd:                        float64(s.Counts[perf.UpcallsLost]),
			"ovs_pmd_user_events_total" + with("event", "retries"):    float64(s.Counters[0].Count),
			"ovs_pmd_timer_spans_total" + with("timer", "flush"):      float64(s.Timers[0].Count),
			"ovs_pmd_gaps_total" + with("kind", "reload"):             1,
			"ovs_pmd_reload_duration_seconds_count" + pmd:             1,
			"ovs_pmd_iteration_cycles_sum" + pmd:                      float64(s.Totals.Cycles),
			"ovs_pmd_iteration_duration_seconds_count" + pmd:          float64(s.Totals.Iterations),
			"ovs_pmd_iteration_packets_sum" + pmd:                     float64(s.Totals.RxPackets),
			rxq("ovs_pmd_rxq_packets_total", 0):                       float64(s.RxQueues[0].Packets),
			rxq("ovs_pmd_rxq_enabled", 1):                             1,
			rxq("ovs_pmd_rxq_ring_packets", 1):                        1024,
			"ovs_main_thread_rx_packets_total{}":                      7,
			"ovs_main_thread_upcalls_total{}":                         1,
			`ovs_main_thread_lookup_hits_total{cache="simple_match"}`: 0,
		}
		if wall != float64(s.Wall()) {
			t.Errorf("%s: cycles by state add up to %.0f, want the time that passed, %d", s.Name, wall, s.Wall())
		}
		for name, v := range want {
			if have, ok := got[name]; !ok || math.Abs(have-v) > 1e-12*v {
				t.Errorf("%s: %v (%v), want %v", name, have, ok, v)
			}
		}
		// The times within 1 ns: gaps, and what of them the recorder took itself.
		own := float64(s.Gaps[history.Accounting].Ticks+s.Gaps[history.Answering].Ticks) / s.Hz
		if have := got["ovs_pmd_recorder_seconds_total"+pmd]; math.Abs(have-own) > 1e-9 || own == 0 {
			t.Errorf("%s: own overhead of %v s, want %v", s.Name, have, own)
		}
		_, detailed := got["ovs_pmd_batch_packets_sum"+pmd]
		if detailed != (s.Level == perf.Detailed) {
			t.Errorf("%s: level %v, and histogram of batches: %v", s.Name, s.Level, detailed)
		}
	}

	// Sizes of packets are as the program recorded them.
	size := `{bytes="1024-1518",cpu="1",interface="p0",numa="1",rxq="1"}`
	if have, want := got["ovs_pmd_rxq_sized_packets_total"+size], float64(snaps[0].RxQueues[0].Sizes.Classes[6]); have != want || want == 0 {
		t.Errorf("%v packets of 1024 to 1518 bytes, want %v", have, want)
	}
	// All of a PMD was created when it was cleared.
	for name, f := range families {
		for _, m := range f.Metric {
			if m.Counter == nil || strings.HasPrefix(name, prefixMain) || !strings.Contains(labelsOf(m), `cpu="1"`) {
				continue
			}
			created := m.Counter.GetCreatedTimestamp()
			if name == "ovs_pmd_context_switches_total" {
				if created != nil {
					t.Errorf("%s: a clear doesn't reset it", name)
				}
			} else if created == nil || !created.AsTime().Equal(snaps[0].Cleared) {
				t.Errorf("%s: created %v, want %v", name, created, snaps[0].Cleared)
			}
		}
	}
}

// The usage of queues is that of the intervals that are known.
func TestUsage(t *testing.T) {
	s := &perf.Snapshot{
		Hz: 1e9, RxQueues: []perf.QueueStats{{Queue: perf.Queue{Port: "a"}}, {Queue: perf.Queue{Port: "b"}}},
		Usage: []perf.Usage{
			{Ticks: 5e9, Busy: 3e9, Idle: 2e9, Queues: []uint64{1e9, 1e9}},
			{Ticks: 15e9, Busy: 7e9, Idle: 8e9, Queues: []uint64{1e9, 5e9}},
		},
	}
	thread := new(Thread)
	thread.fill(s)
	for _, c := range []struct {
		m      Metric
		labels []string
		want   float64
	}{
		{RxqUsage, []string{"a", "0"}, 0.1}, {RxqUsage, []string{"b", "0"}, 0.3}, {Overhead, nil, 0.1}, {UsageSeconds, nil, 20},
	} {
		if v, ok := thread.Value(c.m, c.labels...); !ok || v != c.want {
			t.Errorf("%s %v: %v, %v, want %v", families[c.m].name, c.labels, v, ok, c.want)
		}
	}
	// In the first seconds nothing is known, and the queues are there.
	s.Usage = nil
	thread = new(Thread)
	thread.fill(s)
	_, usage := thread.Value(RxqUsage, "a", "0")
	_, overhead := thread.Value(Overhead)
	if v, ok := thread.Value(RxqEnabled, "b", "0"); !ok || v != 1 || usage || overhead {
		t.Errorf("first seconds: queue %v %v, usage %v, overhead %v", v, ok, usage, overhead)
	}
}

// A loop that stands still shows its last values, and delays nobody for long.
func TestStalled(t *testing.T) {
	g := new(perf.Registry)
	p := start(t, g, 1, perf.Detailed)
	start(t, g, 2, perf.Detailed)
	stuck := start(t, g, 3, perf.Detailed)
	stuck.stall.Store(true)
	await(t, "the third loop stands still before anybody asked", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		return stuck.Ping(ctx) != nil
	})
	c := NewCollector(g, CollectorOptions{Timeout: patience})
	c.options.Timeout = 100 * time.Millisecond // whoever runs answers in time, or is asked again
	name := func(metric string, core int) string {
		return fmt.Sprintf(`ovs_pmd_%s{cpu="%d",numa="%d"}`, metric, core, core%2)
	}
	var before map[string]float64
	await(t, "both loops answered", func() bool {
		before = series(gather(t, c))
		return before[name("stalled", 1)] == 0 && before[name("stalled", 2)] == 0
	})
	if n, ok := before[name("rx_packets_total", 3)]; before[name("stalled", 3)] != 1 || ok {
		t.Errorf("a loop that never answered: stalled %v, %v packets", before[name("stalled", 3)], n)
	}
	p.stall.Store(true)
	var after map[string]float64
	await(t, "the first loop is stalled and the second runs", func() bool {
		after = series(gather(t, c))
		return after[name("stalled", 1)] == 1 && after[name("stalled", 2)] == 0 &&
			after[name("rx_packets_total", 2)] > before[name("rx_packets_total", 2)]
	})
	again := series(gather(t, c))
	for name, v := range after {
		if strings.Contains(name, `cpu="1"`) && !strings.Contains(name, "context_switches") && again[name] != v {
			t.Errorf("%s of a stalled loop went from %v to %v", name, v, again[name])
		}
	}
	if n := after[name("rx_packets_total", 1)]; n < before[name("rx_packets_total", 1)] || n == 0 {
		t.Errorf("a stalled loop has received %v packets, after %v", n, before[name("rx_packets_total", 1)])
	}
	p.stall.Store(false)
	await(t, "it runs again", func() bool {
		now := series(gather(t, c))
		return now[name("stalled", 1)] == 0 && now[name("rx_packets_total", 1)] > after[name("rx_packets_total", 1)]
	})
}

// No counter goes back, whatever happens, but for a clear, which tells that it does.
func TestNothingGoesBack(t *testing.T) {
	g := new(perf.Registry)
	p := start(t, g, 1, perf.Detailed)
	c := NewCollector(g, CollectorOptions{Timeout: patience})
	type value struct {
		v       float64
		created string
	}
	look := func() map[string]value {
		all := make(map[string]value)
		for name, f := range gather(t, c) {
			for _, m := range f.Metric {
				labels := labelsOf(m)
				if m.Counter != nil {
					all[name+labels] = value{m.Counter.GetValue(), m.Counter.GetCreatedTimestamp().String()}
				}
				if h := m.Histogram; h != nil {
					created := h.GetCreatedTimestamp().String()
					all[name+"_count"+labels] = value{float64(h.GetSampleCount()), created}
					all[name+"_sum"+labels] = value{h.GetSampleSum(), created}
					for _, b := range h.Bucket {
						all[fmt.Sprintf("%s_bucket%s%g", name, labels, b.GetUpperBound())] = value{float64(b.GetCumulativeCount()), created}
					}
					for i, n := range natives(h) {
						all[fmt.Sprintf("%s_native%s%d", name, labels, i)] = value{float64(n), created}
					}
				}
			}
		}
		return all
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	clears, steps := 0, 40
	before := look()
	for range steps {
		switch rnd.IntN(5) {
		case 0:
			clears++
			if err := p.Clear(t.Context()); err != nil {
				t.Fatal(err)
			}
		case 1:
			level := []perf.Level{perf.Off, perf.Basic, perf.Detailed}[rnd.IntN(3)]
			if err := p.SetLevel(t.Context(), level); err != nil {
				t.Fatal(err)
			}
		case 2:
			// A queue goes away, or comes back.
			change := polling(1)
			change.RxQueues = change.RxQueues[rnd.IntN(2):]
			p.polling.Store(&change)
			await(t, "it was reloaded", func() bool { return p.polling.Load() == nil })
		default:
			time.Sleep(2 * time.Millisecond)
		}
		now := look()
		for name, v := range now {
			if was, ok := before[name]; ok && v.v < was.v && v.created == was.created {
				t.Errorf("%s went from %v to %v, both since %s", name, was.v, v.v, v.created)
			}
		}
		// What is not there now may come back.
		for name, v := range now {
			before[name] = v
		}
	}
	if clears == 0 || clears == steps {
		t.Errorf("%d clears in %d steps: that was no test", clears, steps)
	}
}

// Suspicious iterations are counted by reason, those reported by cause, and the last ones
// are exemplars.
func TestSuspicious(t *testing.T) {
	g := new(perf.Registry)
	p := start(t, g, 1, perf.Detailed)
	settings := suspicious.Default()
	settings.On = true
	settings.Iteration, settings.QueueFill, settings.Before, settings.After = time.Nanosecond, 0, 1, 1
	supervisor, reports := supervise(t, g, func(*suspicious.Report) []suspicious.Cause {
		return []suspicious.Cause{{Kind: suspicious.CausePreempted}}
	})
	if err := p.SetSuspicion(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	await(t, "there are reports", func() bool { return supervisor.Reported() > 3 })
	settings.On = false
	if err := p.SetSuspicion(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	await(t, "all are reported", func() bool {
		var s perf.Snapshot
		if err := p.Snapshot(t.Context(), perf.Want{}, &s); err != nil {
			return false
		}
		return s.Suspicious.Iterations == s.Suspicious.Merged+s.Suspicious.NotCaptured+supervisor.Reported()
	})
	last := supervisor.Reported()
	families := gather(t, NewCollector(g, CollectorOptions{Supervisor: supervisor, Reports: reports, Timeout: patience}))
	got := series(families)
	total := got[`ovs_pmd_suspicious_iterations_total{cpu="1",numa="1"}`]
	want := map[string]float64{
		`ovs_pmd_suspicious_watched{cpu="1",numa="1"}`:                                      0,
		`ovs_pmd_suspicious_iterations_by_reason_total{cpu="1",numa="1",reason="cycles"}`:   total,
		`ovs_pmd_suspicious_iterations_by_reason_total{cpu="1",numa="1",reason="drops"}`:    0,
		`ovs_pmd_suspicious_iterations_reported_total{cpu="1",numa="1"}`:                    float64(last),
		`ovs_pmd_suspicious_iterations_by_cause_total{cause="preempted",cpu="1",numa="1"}`:  float64(last),
		`ovs_pmd_suspicious_iterations_by_cause_total{cause="interrupts",cpu="1",numa="1"}`: 0,
		`ovs_pmd_suspicious_iterations_held_back_total{cpu="1",numa="1"}`:                   0,
		`ovs_pmd_suspicious_iterations_merged_total{cpu="1",numa="1"}`:                      got[`ovs_pmd_suspicious_iterations_merged_total{cpu="1",numa="1"}`],
		`ovs_pmd_suspicious_iterations_not_captured_total{cpu="1",numa="1"}`:                total - float64(last) - got[`ovs_pmd_suspicious_iterations_merged_total{cpu="1",numa="1"}`],
		`ovs_pmd_suspicious_iterations_by_reason_total{cpu="1",numa="1",reason="poll_gap"}`: 0,
	}
	for name, v := range want {
		if have, ok := got[name]; !ok || have != v {
			t.Errorf("%s: %v (%v), want %v", name, have, ok, v)
		}
	}
	ids := make(map[string]bool)
	for _, r := range reports.Last() {
		ids[r.ID] = true
	}
	for _, name := range []string{"ovs_pmd_iteration_duration_seconds", "ovs_pmd_iteration_cycles"} {
		h := families[name].Metric[0].Histogram
		if n := len(h.Exemplars); n == 0 || n > mostExemplars {
			t.Errorf("%s: %d exemplars", name, n)
		}
		for _, e := range h.Exemplars {
			labels := labelsOf(&dto.Metric{Label: e.Label})
			_, id, _ := strings.Cut(labels, `record="`)
			if !ids[strings.TrimSuffix(id, `"}`)] || !strings.HasPrefix(labels, `{iteration="`) {
				t.Errorf("%s: exemplar %s is of no report", name, labels)
			}
		}
	}
	// After a clear they are of before.
	if err := p.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	h := gather(t, NewCollector(g, CollectorOptions{Reports: reports, Timeout: patience}))["ovs_pmd_iteration_cycles"].Metric[0].Histogram
	if len(h.Exemplars) > 0 {
		t.Errorf("%d exemplars of before the clear", len(h.Exemplars))
	}
}

// Of the exemplars the newest come last, and there are not too many.
func TestExemplarsOfReports(t *testing.T) {
	reports := suspicious.NewReports(100)
	at := time.Date(2026, 1, 31, 23, 59, 59, 0, time.UTC)
	for i := range 50 {
		r := &suspicious.Report{Name: []string{"a", "b"}[i%2], ID: fmt.Sprint("id", i), Time: at}
		r.Iteration, r.First = uint64(i), uint64(i)
		r.Records = []history.Record{{Cycles: uint64(1000 + i)}}
		reports.Add(r)
	}
	c := NewCollector(new(perf.Registry), CollectorOptions{Reports: reports})
	got := c.exemplars()["b"]
	var want []Exemplar
	for i := 19; i < 50; i += 2 {
		want = append(want, Exemplar{uint64(i), fmt.Sprint("id", i), uint64(1000 + i), at})
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != mostExemplars {
		t.Errorf("%d exemplars (-want +got):\n%s", len(got), diff)
	}
}

// promtool has nothing to say, and the page tells how many series there are.
func TestLintAndCardinality(t *testing.T) {
	g, _ := ran(t)
	supervisor, reports := supervise(t, g, nil)
	c := NewCollector(g, CollectorOptions{Supervisor: supervisor, Reports: reports})
	text, contentType := scrape(t, c, Options{}, "")
	if !strings.HasPrefix(contentType, "text/plain") {
		t.Errorf("served as %s", contentType)
	}
	promlab.CheckMetrics(t, text)
	pmd, buckets, queue, txq := 0, 0, 0, 0
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "#") || !strings.Contains(line, `cpu="1"`):
		case strings.Contains(line, `rxq="1"`):
			queue++
		case strings.Contains(line, `txq="1"`):
			txq++
		case !strings.Contains(line, `rxq=`):
			pmd++
			if strings.Contains(line, "_bucket{") {
				buckets++
			}
		}
	}
	// docs/metrics.md says so.
	if pmd < 440 || pmd > 460 || buckets != 340 || queue != 5+10-1 || txq != 1+11 {
		t.Errorf("%d series of a PMD, %d of them buckets, %d of an rx queue, %d of a tx queue", pmd, buckets, queue, txq)
	}
}

// Whatever a target answered, the rest is served.
func TestHostileTarget(t *testing.T) {
	bad := &Thread{NUMA: -1, Core: 4, Hz: math.NaN(), Created: time.Unix(1, 2)}
	bad.Set(RxPackets, 1)
	bad.Set(RxPackets, 2)
	bad.Set(RxqEnabled, 1, "eth\xff0", "0")
	bad.Set(RxqEnabled, 1, "eth\xff0", "0")
	bad.Set(RxqEnabled, 1, "eth\xfe0", "0")
	bad.Set(LookupHits, 3) // a label is missing
	bad.Set(TxBatches, math.Inf(1))
	bad.SetHistogram(IterationPackets, Histogram{Walls: []uint64{1}, Bins: []uint64{1}, Sum: math.NaN()})
	bad.SetHistogram(BatchPackets, Histogram{Walls: []uint64{1}, Bins: []uint64{1, 1}, Sum: math.NaN()})
	twin := &Thread{NUMA: -1, Core: 4}
	twin.Set(RxPackets, 5)
	main := &Thread{Main: true}
	main.Set(RxPackets, 6)
	main.Set(UsedCycles, 6) // which it can't have
	good := &Thread{NUMA: 0, Core: 4}
	good.Set(RxPackets, 7)
	m := New(Options{Labels: []string{"target"}})
	c := targetCollector{m, []*Target{
		{Labels: []string{"a"}, Up: true, Threads: []*Thread{bad, twin, main}},
		{Labels: []string{"b"}, Up: true, Threads: []*Thread{good}},
		{Labels: []string{"c"}},
	}}
	text, _ := scrape(t, c, Options{}, "")
	var got []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	want := []string{
		`ovs_main_thread_rx_packets_total{target="a"} 6`,
		`ovs_pmd_batch_packets_bucket{cpu="4",numa="",target="a",le="1"} 1`,
		`ovs_pmd_batch_packets_bucket{cpu="4",numa="",target="a",le="+Inf"} 2`,
		`ovs_pmd_batch_packets_sum{cpu="4",numa="",target="a"} NaN`,
		`ovs_pmd_batch_packets_count{cpu="4",numa="",target="a"} 2`,
		`ovs_pmd_rx_packets_total{cpu="4",numa="",target="a"} 1`,
		`ovs_pmd_rx_packets_total{cpu="4",numa="0",target="b"} 7`,
		`ovs_pmd_rxq_enabled{cpu="4",interface="eth` + "\uFFFD" + `0",numa="",rxq="0",target="a"} 1`,
		`ovs_pmd_tx_batches_total{cpu="4",numa="",target="a"} +Inf`,
		`ovs_pmd_up{target="a"} 1`,
		`ovs_pmd_up{target="b"} 1`,
		`ovs_pmd_up{target="c"} 0`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The bins of small integers are what the recorder's walls make of them.
func TestWalls(t *testing.T) {
	walls := histogram.QueueFill.Walls()
	thread := new(Thread)
	s := &perf.Snapshot{Hz: 1e9, Level: perf.Detailed}
	s.QueueFill.Add(40)
	thread.fill(s)
	c := targetCollector{New(Options{}), []*Target{{Up: true, Threads: []*Thread{thread}}}}
	h := gather(t, c)["ovs_pmd_queue_fill_packets"].Metric[0].Histogram
	for i, b := range h.Bucket {
		want := uint64(0)
		if walls[i] >= 40 {
			want = 1
		}
		if b.GetUpperBound() != float64(walls[i]) || b.GetCumulativeCount() != want {
			t.Errorf("bucket %d: %v", i, b)
		}
	}
}

var _ prometheus.Collector = (*Collector)(nil)
