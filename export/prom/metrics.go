package prom

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options say how targets become metrics. The zero value is for the one target that a
// program itself is.
type Options struct {
	// Labels are the names of labels that say of which target a metric is. They stand in
	// all metrics.
	Labels []string
	// CompatNames adds the metrics of openstack-network-exporter, by its names.
	CompatNames bool
}

// Metrics turns targets into metrics. Any goroutine may call its methods.
type Metrics struct {
	up        *prometheus.Desc
	pmd, main [numMetrics]*prometheus.Desc // of main those that the main thread has
	compat    []*prometheus.Desc           // in the order of oldNames; nil without
}

// New returns the metrics that o describes.
func New(o Options) *Metrics {
	m := &Metrics{up: prometheus.NewDesc(nameUp, "1 if the target answered.", o.Labels, nil)}
	thread := append(slices.Clone(o.Labels), "numa", "cpu")
	desc := func(name, help string, labels ...[]string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, slices.Concat(labels...), nil)
	}
	for i := range families {
		f := &families[i]
		m.pmd[i] = desc(prefixPMD+f.name, f.help, thread, f.labels)
		if f.main {
			m.main[i] = desc(prefixMain+f.name, f.help, o.Labels, f.labels)
		}
	}
	if o.CompatNames {
		for i := range oldNames {
			old := &oldNames[i]
			m.compat = append(m.compat, desc(old.name, old.help(), thread, old.labels()))
		}
	}
	return m
}

// nameUp is the one metric that is not of a thread.
const nameUp = prefixPMD + "up"

// Describe sends the descriptions of all metrics, as a prometheus.Collector has to.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.up
	for _, descs := range [][]*prometheus.Desc{m.pmd[:], m.main[:], m.compat} {
		for _, d := range descs {
			if d != nil {
				ch <- d
			}
		}
	}
}

// Collect sends the metrics of targets. What of a target makes no sense is sent as an
// invalid metric, which spoils no other one.
func (m *Metrics) Collect(ch chan<- prometheus.Metric, targets ...*Target) {
	for _, t := range targets {
		up := 0.0
		if t.Up {
			up = 1
		}
		ch <- constant(m.up, gauge, up, time.Time{}, t.Labels)
		seen := make(map[string]bool)
		for _, thread := range t.Threads {
			key := strings.Join(thread.labels(), "/")
			if !seen[key] {
				seen[key] = true
				m.collect(ch, t, thread)
			}
		}
	}
}

// collect sends the metrics of a thread.
func (m *Metrics) collect(ch chan<- prometheus.Metric, target *Target, t *Thread) {
	descs := &m.pmd
	if t.Main {
		descs = &m.main
	}
	labels := append(slices.Clone(target.Labels), t.labels()...)
	labels = slices.Clip(labels)
	for i := range t.samples {
		s := &t.samples[i]
		if d := descs[s.metric]; d != nil {
			ch <- constant(d, families[s.metric].kind, s.value, t.created(s.metric), append(labels, s.labels...))
		}
	}
	for i := range t.histograms {
		h := &t.histograms[i]
		if d := descs[h.metric]; d != nil {
			ch <- newHistogram(d, families[h.metric].kind, &h.Histogram, t, h.metric == IterationCycles, labels)
		}
		if in, ok := inSeconds(h.metric); ok && t.Hz > 0 && descs[in] != nil {
			ch <- newHistogram(descs[in], seconds, &h.Histogram, t, in == IterationSeconds, labels)
		}
	}
	for i, d := range m.compat {
		oldNames[i].collect(t, func(v float64, more ...string) {
			ch <- constant(d, oldNames[i].kind, v, t.created(oldNames[i].from), append(labels, more...))
		})
	}
}

// labels returns the values of the labels that every metric of a PMD has, and none for
// the main thread.
func (t *Thread) labels() []string {
	if t.Main {
		return nil
	}
	id := func(n int) string {
		if n < 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	return []string{id(t.NUMA), id(t.Core)}
}

// inSeconds returns the histogram of seconds that is made of one of ticks.
func inSeconds(m Metric) (Metric, bool) {
	switch m {
	case IterationCycles:
		return IterationSeconds, true
	case PacketCycles:
		return PacketSeconds, true
	case UpcallCycles:
		return UpcallSeconds, true
	}
	return 0, false
}

// created returns when a metric began to count, zero if that is not known.
func (t *Thread) created(m Metric) time.Time {
	if m.lasting() {
		return time.Time{}
	}
	return t.Created
}

// constant returns a metric with a value.
func constant(d *prometheus.Desc, k kind, v float64, created time.Time, labels []string) (m prometheus.Metric) {
	var err error
	switch {
	case k == gauge:
		m, err = prometheus.NewConstMetric(d, prometheus.GaugeValue, v, labels...)
	case created.IsZero():
		m, err = prometheus.NewConstMetric(d, prometheus.CounterValue, v, labels...)
	default:
		m, err = prometheus.NewConstMetricWithCreatedTimestamp(d, prometheus.CounterValue, v, created, labels...)
	}
	if err != nil {
		return prometheus.NewInvalidMetric(d, err)
	}
	return m
}
