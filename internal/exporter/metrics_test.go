package exporter

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pmdperf/pmdperf/export/prom"
)

// collector makes metrics of an exporter's targets.
type collector struct {
	*prom.Metrics
	*Exporter
}

func (c collector) Collect(ch chan<- prometheus.Metric) {
	c.Metrics.Collect(ch, c.Read(context.Background())...)
}

// scrape returns what Prometheus would be served in its text format.
func scrape(t testing.TB, e *Exporter) string {
	t.Helper()
	o := prom.Options{Labels: []string{Label}}
	g := prometheus.NewPedanticRegistry()
	if err := g.Register(collector{prom.New(o), e}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Gather(); err != nil {
		t.Errorf("a strict registry complains: %v", err)
	}
	return serve(t, g, o)
}

// serve returns what a registry's handler serves.
func serve(t testing.TB, g prometheus.Gatherer, o prom.Options) string {
	t.Helper()
	w := httptest.NewRecorder()
	prom.Handler(g, o, nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// samples are values by name and sorted labels, without the target's.
type samples map[string]float64

// key returns what a sample is found by.
func key(name string, labels ...string) string {
	labels = slices.DeleteFunc(slices.Clone(labels), func(l string) bool {
		return l == "" || strings.HasPrefix(l, Label+"=")
	})
	slices.Sort(labels)
	return name + "{" + strings.Join(labels, ",") + "}"
}

// sampleLine is a line of the text format.
var sampleLine = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? (\S+)$`)

func parseSamples(t testing.TB, text string) samples {
	t.Helper()
	s := samples{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("no sample: %q", line)
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		s[key(m[1], strings.Split(m[2], ",")...)] = v
	}
	return s
}

// The texts of Open vSwitch are read here once more, in another way: line by line, with
// regular expressions, into what the metrics have to be.
var (
	threadLine  = regexp.MustCompile(`^(?:pmd thread numa_id (\d+) core_id (\d+)|(main) thread):`)
	counterLine = regexp.MustCompile(`^\s+(?:- )?([A-Za-z. ()]+?):\s+(\d+)(?:\s|$)`)
	queueLine   = regexp.MustCompile(`^\s+port: (\S+)\s+queue-id:\s*(\d+)(?: +\((enabled|disabled)\))?\s+pmd usage:\s*(\d+|NOT AVAIL)`)
)

// counterNames are what the rows of the texts are called in the metrics.
var counterNames = map[string][2]string{
	"busy iterations":          {"iterations_total", `state="busy"`},
	"idle iterations":          {"iterations_total", `state="idle"`},
	"sleep iterations":         {"iterations_total", `state="sleep"`},
	"busy":                     {"iterations_total", `state="busy"`}, // up to 2.10
	"idle":                     {"iterations_total", `state="idle"`}, // up to 2.10
	"Cycles":                   {"used_cycles_total"},                // up to 2.10
	"Used TSC cycles":          {"used_cycles_total"},
	"processing cycles":        {"cycles_total", `state="busy"`},
	"idle cycles":              {"cycles_total", `state="idle"`},
	"Rx packets":               {"rx_packets_total"},
	"packets received":         {"rx_packets_total"},
	"Tx packets":               {"tx_packets_total"},
	"Tx batches":               {"tx_batches_total"},
	"Datapath passes":          {"datapath_passes_total"},
	"packet recirculations":    {"recirculations_total"},
	"PHWOL hits":               {"lookup_hits_total", `cache="phwol"`},
	"MFEX Opt hits":            {"lookup_hits_total", `cache="mfex_opt"`},
	"Simple Match hits":        {"lookup_hits_total", `cache="simple_match"`},
	"EMC hits":                 {"lookup_hits_total", `cache="emc"`},
	"SMC hits":                 {"lookup_hits_total", `cache="smc"`},
	"Megaflow hits":            {"lookup_hits_total", `cache="megaflow"`},
	"phwol hits":               {"lookup_hits_total", `cache="phwol"`},
	"mfex opt hits":            {"lookup_hits_total", `cache="mfex_opt"`},
	"simple match hits":        {"lookup_hits_total", `cache="simple_match"`},
	"emc hits":                 {"lookup_hits_total", `cache="emc"`},
	"smc hits":                 {"lookup_hits_total", `cache="smc"`},
	"megaflow hits":            {"lookup_hits_total", `cache="megaflow"`},
	"Upcalls":                  {"upcalls_total"},
	"miss with success upcall": {"upcalls_total"},
	"Lost upcalls":             {"lost_upcalls_total"},
	"miss with failed upcall":  {"lost_upcalls_total"},
}

// histogramNames are the histograms in the order of their columns.
var histogramNames = []string{"iteration_cycles", "iteration_packets", "packet_cycles", "batch_packets",
	"queue_fill_packets", "iteration_upcalls", "upcall_cycles"}

// expect reads what the metrics have to be out of texts. Of a value that is in several of
// them the first counts.
func expect(texts ...string) samples {
	want := samples{}
	for _, text := range texts {
		var prefix string
		var thread []string // labels
		var cumulative []float64
		set := func(name string, v float64, labels ...string) {
			k := key(prefix+name, append(labels, thread...)...)
			if _, ok := want[k]; !ok {
				want[k] = v
			}
		}
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			if m := threadLine.FindStringSubmatch(line); m != nil {
				prefix, thread = "ovs_pmd_", []string{`numa="` + m[1] + `"`, `cpu="` + m[2] + `"`}
				if m[3] != "" {
					prefix, thread = "ovs_main_thread_", nil
				}
				cumulative = make([]float64, len(histogramNames))
				continue
			}
			if prefix == "" {
				continue
			}
			if m := queueLine.FindStringSubmatch(line); m != nil {
				queue := []string{`interface="` + m[1] + `"`, `rxq="` + m[2] + `"`}
				on := 1.0
				if m[3] == "disabled" {
					on = 0
				}
				set("rxq_enabled", on, queue...)
				if v, err := strconv.ParseFloat(m[4], 64); err == nil {
					set("rxq_usage_ratio", v/100, queue...)
				}
				continue
			}
			if m := counterLine.FindStringSubmatch(line); m != nil {
				if name, ok := counterNames[m[1]]; ok {
					v, _ := strconv.ParseFloat(m[2], 64)
					set(name[0], v, name[1])
				}
				continue
			}
			fields := strings.Fields(line)
			if len(fields) != 2*len(histogramNames) {
				continue
			}
			for i, name := range histogramNames {
				n, err := strconv.ParseFloat(fields[2*i+1], 64)
				if err != nil {
					break
				}
				cumulative[i] += n
				le := "+Inf"
				if fields[2*i] == ">" {
					set(name+"_count", cumulative[i])
				} else if v, err := strconv.ParseFloat(fields[2*i], 64); err == nil {
					le = strconv.FormatFloat(v, 'g', -1, 64)
				} else {
					break
				}
				set(name+"_bucket", cumulative[i], `le="`+le+`"`)
			}
		}
	}
	return want
}
