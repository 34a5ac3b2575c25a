package prom

import (
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/pmdperf/pmdperf/internal/promlab"
	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
)

// What scrapers send.
const (
	acceptOpenMetrics = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
	acceptProtobuf    = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,text/plain;version=0.0.4;q=0.5"
)

// decode returns the families of a scrape in protobuf.
func decode(t *testing.T, body string) map[string]*dto.MetricFamily {
	t.Helper()
	families := make(map[string]*dto.MetricFamily)
	d := expfmt.NewDecoder(strings.NewReader(body), expfmt.NewFormat(expfmt.TypeProtoDelim))
	for {
		f := new(dto.MetricFamily)
		err := d.Decode(f)
		if errors.Is(err, io.EOF) {
			return families
		}
		if err != nil {
			t.Fatal(err)
		}
		families[f.GetName()] = f
	}
}

// All three formats say the same, but for what only some of them have.
func TestFormats(t *testing.T) {
	g, _ := ran(t)
	reports := suspicious.NewReports(1)
	c := NewCollector(g, CollectorOptions{Reports: reports})
	want := series(gather(t, c))

	text, contentType := scrape(t, c, Options{}, "text/plain")
	if !strings.HasPrefix(contentType, "text/plain; version=0.0.4") {
		t.Errorf("text: served as %s", contentType)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	equal := func(format string, got map[string]float64) {
		t.Helper()
		for _, m := range []map[string]float64{want, got} {
			for name := range m {
				// These change from scrape to scrape.
				if strings.Contains(name, "context_switches") || strings.Contains(name, "measured_seconds") {
					delete(m, name)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got) < 200 {
			t.Errorf("%s: %d values (-gathered +served):\n%s", format, len(got), diff)
		}
	}
	equal("text", series(families))

	body, contentType := scrape(t, c, Options{}, acceptProtobuf)
	if !strings.HasPrefix(contentType, "application/vnd.google.protobuf") {
		t.Errorf("protobuf: served as %s", contentType)
	}
	families = decode(t, body)
	equal("protobuf", series(families))
	for name, f := range families {
		for _, m := range f.Metric {
			// Both kinds of buckets in one metric.
			if h := m.Histogram; h != nil && (len(h.Bucket) < 28 || h.GetSchema() != schema || h.GetZeroThreshold() == 0) {
				t.Errorf("%s: %d classic buckets, schema %d", name, len(h.Bucket), h.GetSchema())
			}
		}
	}

	body, contentType = scrape(t, c, Options{}, acceptOpenMetrics)
	if !strings.HasPrefix(contentType, "application/openmetrics-text; version=1.0.0") {
		t.Errorf("OpenMetrics: served as %s", contentType)
	}
	if !strings.HasSuffix(body, "# EOF\n") || !strings.Contains(body, "# TYPE ovs_pmd_rx_packets counter\novs_pmd_rx_packets_total{") {
		t.Errorf("OpenMetrics: no counter and end in\n%.300s", body)
	}
	if strings.Contains(body, "_created") {
		t.Error("OpenMetrics: series of created timestamps, which nobody reads")
	}
}

// The old names are exactly those of openstack-network-exporter, with its labels.
func TestCompatNames(t *testing.T) {
	g, snaps := ran(t)
	thread := &Thread{NUMA: 1, Core: 9}
	thread.Set(Overhead, 0.25)
	thread.Set(RxqUsage, 0.5, "eth0", "3")
	o := Options{CompatNames: true}
	all := series(gather(t, NewCollector(g, CollectorOptions{Options: o})))
	fromTarget := gather(t, targetCollector{New(o), []*Target{{Up: true, Threads: []*Thread{thread}}}})
	for name, v := range series(fromTarget) {
		all[name] = v
	}
	s := snaps[0]
	want := map[string]float64{
		"total_iterations": float64(s.Totals.Iterations), "idle_iterations": float64(s.Totals.IdleIterations()),
		"busy_iterations": float64(s.Totals.BusyIterations), "sleep_iterations": 0, "sleep_microseconds": 0,
		"rx_packets": float64(s.Totals.RxPackets), "tx_packets": float64(s.Totals.TxPackets),
		"total_upcalls": float64(s.Counts[perf.UpcallsOK]), "lost_upcalls": float64(s.Counts[perf.UpcallsLost]),
		"datapath_passes": float64(s.DatapathPasses()), "phwol_hits": 0, "mfex_opt_hits": 0, "simple_match_hits": 0,
		"emc_hits": float64(s.Counts[perf.EMCHit]), "smc_hits": 0, "megaflow_hits": float64(s.Counts[perf.MegaflowHit]),
		"tx_batches": float64(s.Counts[perf.TxBatches]), "cpu_isolated": 0,
	}
	got := make(map[string]float64)
	for name := range want {
		if v, ok := all["ovs_pmd_"+name+`{cpu="1",numa="1"}`]; ok {
			got[name] = v
		}
	}
	for name, key := range map[string]string{
		"cpu_overhead": `ovs_pmd_cpu_overhead{cpu="9",numa="1"}`,
		"rxq_usage":    `ovs_pmd_rxq_usage{cpu="9",interface="eth0",numa="1",rxq="3"}`,
		"rxq_enabled":  `ovs_pmd_rxq_enabled{cpu="1",interface="p0",numa="1",rxq="1"}`,
	} {
		if v, ok := all[key]; ok {
			got[name] = v
		}
	}
	want["cpu_overhead"], want["rxq_usage"], want["rxq_enabled"] = 25, 50, 1
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	descs := make(chan *prometheus.Desc, 1000)
	New(o).Describe(descs)
	close(descs)
	var switches int
	for d := range descs {
		if strings.Contains(d.String(), `"ovs_pmd_context_switches"`) || strings.Contains(d.String(), `"ovs_pmd_nonvol_context_switches"`) {
			switches++
		}
	}
	if switches != 2 {
		t.Errorf("%d metrics of context switches, want 2", switches)
	}

	// OpenMetrics would rename them.
	c := NewCollector(g, CollectorOptions{Options: o})
	text, contentType := scrape(t, c, o, acceptOpenMetrics)
	if !strings.HasPrefix(contentType, "text/plain") || !strings.Contains(text, "# TYPE ovs_pmd_rx_packets counter\novs_pmd_rx_packets{") {
		t.Errorf("served as %s", contentType)
	}
	body, contentType := scrape(t, c, o, acceptProtobuf)
	if !strings.HasPrefix(contentType, "application/vnd.google.protobuf") || decode(t, body)["ovs_pmd_rx_packets"].GetType() != dto.MetricType_COUNTER {
		t.Errorf("protobuf is served as %s", contentType)
	}
}

// A real Prometheus scrapes it, with native histograms and without.
func TestPrometheus(t *testing.T) {
	g := new(perf.Registry)
	p := start(t, g, 1, perf.Detailed)
	supervisor, reports := supervise(t, g, nil)
	settings := suspicious.Default()
	settings.On, settings.Iteration = true, 1
	if err := p.SetSuspicion(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(NewCollector(g, CollectorOptions{Supervisor: supervisor, Reports: reports, Timeout: patience})); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(Handler(registry, Options{}, nil))
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	for _, native := range []bool{false, true} {
		t.Run(map[bool]string{false: "classic", true: "native"}[native], func(t *testing.T) {
			t.Parallel()
			prometheus := promlab.Start(t, promlab.Options{Jobs: map[string][]string{"pmdperf": {address}}, NativeHistograms: native})
			some := func(s []promlab.Sample) bool { return len(s) == 1 && s[0].Value > 0 }
			await := func(expr string) float64 { return prometheus.Await(t, expr, some)[0].Value }
			await(`up{job="pmdperf"}`)
			await(`rate(ovs_pmd_rx_packets_total{cpu="1"}[5s])`)
			selector := `sum by (le) (rate(ovs_pmd_iteration_duration_seconds_bucket[5s]))`
			if native {
				selector = `sum(rate(ovs_pmd_iteration_duration_seconds[5s]))`
			}
			// The loop sleeps for 20 us at least in every pass.
			q := await(`histogram_quantile(0.5, ` + selector + `)`)
			if q < 10e-6 || q > 10 {
				t.Errorf("median of iterations %g s", q)
			}
			classic, err := prometheus.Query(t.Context(), `count(ovs_pmd_iteration_duration_seconds_bucket)`)
			if err != nil {
				t.Fatal(err)
			}
			if (len(classic) == 0) != native {
				t.Errorf("classic buckets are %v", classic)
			}
		})
	}
}
