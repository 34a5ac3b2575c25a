package exporter

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/export/appctl/pmd"
	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/export/prom"
	"github.com/pmdperf/pmdperf/internal/promlab"
	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
)

// TestOurs has a program's own collector and an exporter that asks the program over its
// socket say the same, of recorders that stand still.
func TestOurs(t *testing.T) {
	registry := new(perf.Registry)
	for core := range 3 {
		record(t, registry, core+1)
	}
	registry.Shared().Batch(7)
	reports := func(string) (c suspicious.ReportCounts) {
		c.Reported, c.HeldBack, c.Causes[0] = 5, 1, 5
		return c
	}
	dir := shortDir(t)
	server, err := appctl.Listen(appctl.Config{Name: "ours", RunDir: dir}, pmd.Commands(registry, pmd.Options{Reports: reports})...)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	path, err := appctl.Resolve(dir, "ours")
	if err != nil {
		t.Fatal(err)
	}
	e, log := newExporter(t, patienceOfTests, path)
	text := scrape(t, e)
	got := parseSamples(t, text)
	if got["ovs_pmd_up{}"] != 1 {
		t.Fatalf("the target is down: %s", log)
	}
	promlab.CheckMetrics(t, text)

	g := prometheus.NewPedanticRegistry()
	if err := g.Register(prom.NewCollector(registry, prom.CollectorOptions{})); err != nil {
		t.Fatal(err)
	}
	want := parseSamples(t, serve(t, g, prom.Options{}))
	if len(want) < 1000 {
		t.Fatalf("only %d samples", len(want))
	}
	ignore := func(s samples) {
		maps.DeleteFunc(s, func(k string, _ float64) bool {
			return slices.ContainsFunc([]string{
				"_measured_seconds",                    // the time goes on
				"_context_switches",                    // of threads that aren't PMDs of a process that is no switch
				"_by_cause", "_reported", "_held_back", // counted here by nobody
			}, func(part string) bool { return strings.Contains(k, part) })
		})
	}
	if n := got[key("ovs_pmd_suspicious_iterations_reported_total", `numa="1"`, `cpu="1"`)]; n != 5 {
		t.Errorf("%v reports, want 5", n)
	}
	ignore(got)
	ignore(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the exporter differs from the program itself (-program +exporter):\n%s", diff)
	}
}

// record makes a recorder that has seen all sorts of things, and is closed.
func record(t *testing.T, g *perf.Registry, core int) {
	t.Helper()
	r, err := g.New(perf.Config{
		Core: core, NUMA: core % 2, ID: 8 + core, Level: perf.Detailed,
		Counters: []string{"retries"}, Timers: []string{"flush"},
		Polling: perf.Polling{
			RxQueues: []perf.Queue{{Port: "p0", ID: core}, {Port: "vhu-\"a\"\\", ID: 0, Size: 1024}},
			TxQueues: []perf.Queue{{Port: "p0", ID: core, Size: 512}},
			Isolated: core == 2,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	retries, _ := r.Counter("retries")
	for n := range 5000 {
		r.Poll(0)
		if n%(core+1) == 0 {
			r.Batch(n%33, n%700)
			r.RxSizes(0, []uint16{60, 1500})
			r.Count(perf.EMCHit, 30)
			r.Count(perf.MegaflowHit, 1)
			r.Count(perf.SubtableLooks, 2)
			r.Count(retries, 1)
			r.Upcall(uint64(n), n%4 == 0)
			r.Tx(31, 1)
			r.TxSizes(0, []uint16{60})
			r.Drop(1)
			r.RxDrop(2)
		}
		r.Poll(1)
		r.Batch(0, 3)
		r.End()
		if n%1000 == 999 {
			r.Park()
			if err := r.Resume(nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestExemplars has the last suspicious iterations of a program be exemplars, less those
// of before the last clear.
func TestExemplars(t *testing.T) {
	core, node := 3, 0
	cleared := time.Now().Add(-time.Minute).UTC()
	r := ovs.Recorded{Kind: "pmd", Name: "pmd-c03/id:11", Core: &core, NUMA: &node, Level: "basic", Hz: 1e9, Since: cleared,
		Histograms: map[string]ovs.HistogramData{"cycles_per_iteration": {
			Walls: []uint64{1000, 2_000_000}, Bins: []uint64{0, 1, 1}, Count: 2, Sum: 5_000_000, Fine: [][2]uint64{{1_000_000, 1}, {4_000_000, 1}},
		}}}
	event := func(id string, at time.Time, us float64, name string) suspicious.FlightRecord {
		return suspicious.FlightRecord{ID: id, Name: name, Core: core, Iteration: 17, Time: at, Micros: us, Hz: 1e9}
	}
	path := newOurs(t, func() any { return ovs.Document{Version: ovs.DocumentVersion, Threads: []ovs.Recorded{r}} },
		event("newest", cleared.Add(3*time.Second), 4000, r.Name), event("other", cleared.Add(2*time.Second), 4000, "another"),
		event("older", cleared.Add(time.Second), 1000, r.Name), event("before", cleared.Add(-time.Second), 1000, r.Name))
	e, log := newExporter(t, patienceOfTests, path)
	g := prometheus.NewPedanticRegistry()
	if err := g.Register(collector{prom.New(prom.Options{Labels: []string{Label}}), e}); err != nil {
		t.Fatal(err)
	}
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "ovs_pmd_iteration_duration_seconds" {
			continue
		}
		for _, b := range f.Metric[0].Histogram.Bucket {
			if x := b.Exemplar; x != nil {
				for _, l := range x.Label {
					if l.GetName() == "record" {
						got[l.GetValue()] = x.GetValue()
					}
				}
			}
		}
	}
	if diff := cmp.Diff(map[string]float64{"newest": 0.004, "older": 0.001}, got); diff != "" {
		t.Errorf("exemplars by record (-want +got):\n%s\n%s", diff, log)
	}
}
