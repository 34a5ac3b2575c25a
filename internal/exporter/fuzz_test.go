package exporter

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/export/prom"
)

// FuzzTexts has a switch answer anything, twice: what comes out satisfies a strict
// registry, and no counter falls without a later created timestamp.
func FuzzTexts(f *testing.F) {
	metrics := prom.New(prom.Options{Labels: []string{Label}})
	f.Fuzz(func(t *testing.T, perf, perfLater, stats, rxq, sleep string) {
		ts := texts{hz: 1e9}
		resets := newResets()
		now := time.Now()
		for _, text := range []string{perf, perfLater} {
			r := &reading{sent: now, arrived: now.Add(time.Millisecond)}
			now = now.Add(time.Minute)
			var err error
			if r.perf, err = ovs.ParsePerf(text); err != nil {
				return
			}
			r.stats, _ = ovs.ParseStats(stats)
			r.rxq, _ = ovs.ParseRxq(rxq)
			r.sleep, _ = ovs.ParseSleep(sleep)
			families, err := gatherThreads(t, metrics, ts.threads(r))
			if err != nil {
				t.Errorf("a strict registry complains: %v", err)
			}
			for _, family := range families {
				for _, m := range family.Metric {
					if err := resets.check(family, m); err != nil {
						t.Error(err)
					}
				}
			}
		}
	})
}

// FuzzParseDocument has a program answer any document.
func FuzzParseDocument(f *testing.F) {
	metrics := prom.New(prom.Options{Labels: []string{Label}})
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseDocument(text)
		if d == nil || err != nil {
			return
		}
		var ds documents
		for range 2 { // the second time with last values
			threads := ds.threads(d)
			if n := len(threads); n != len(d.Threads)+len(d.Missing) {
				t.Errorf("%d threads of %d and %d", n, len(d.Threads), len(d.Missing))
			}
			// Histograms that contradict themselves are left out with an error.
			if _, err := gatherThreads(t, metrics, threads); err != nil {
				t.Logf("a strict registry complains: %v", err)
			}
		}
	})
}

func FuzzParseStatus(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		if core, s, ok := parseStatus(text); ok && core < 0 {
			t.Errorf("core %d of %v", core, s)
		}
	})
}

// threadsCollector collects threads.
type threadsCollector struct {
	*prom.Metrics
	threads []*prom.Thread
}

func (c threadsCollector) Collect(ch chan<- prometheus.Metric) {
	c.Metrics.Collect(ch, &prom.Target{Labels: []string{"x"}, Up: true, Threads: c.threads})
}

// gatherThreads returns what a strict registry gathers, and what it complains of.
func gatherThreads(t *testing.T, m *prom.Metrics, threads []*prom.Thread) ([]*dto.MetricFamily, error) {
	t.Helper()
	g := prometheus.NewPedanticRegistry()
	if err := g.Register(threadsCollector{m, threads}); err != nil {
		t.Fatal(err)
	}
	return g.Gather()
}
