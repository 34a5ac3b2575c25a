package prom

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pmdperf/pmdperf/histogram"
)

// A Target is what is known of the threads of one program at one instant.
type Target struct {
	// Labels say which target it is: the values of Options.Labels.
	Labels []string
	// Up says whether the target answered.
	Up bool
	// Threads are what it answered. No two may be of the same core.
	Threads []*Thread
}

// A Thread is what is known of one PMD thread, or of the main thread, at one instant.
// What was not set is absent from the metrics. It is plain memory.
type Thread struct {
	// Main says that it is the main thread, which has no node and no core.
	Main bool
	// NUMA and Core are its node and core; the label of a negative one is empty.
	NUMA, Core int
	// Hz is the number of ticks in a second, 0 if unknown. It must stay the same as long
	// as Created does, or seconds would go backwards.
	Hz float64
	// Created is when the thread's counters began to count, the last clear; zero if that
	// is not known. It must stay the same to the nanosecond until the next one.
	Created time.Time
	// Exemplars are iterations that stand for others in the histograms of iterations.
	// Of two in one bucket the later one in the list is shown.
	Exemplars []Exemplar

	samples    []sample
	histograms []filled
	set        map[key]bool
}

// key tells values apart.
type key struct {
	metric Metric
	labels [mostLabels]string
}

// mostLabels is how many labels a metric has at most besides numa and cpu.
const mostLabels = 3

// sample is a value of a metric.
type sample struct {
	metric Metric
	value  float64
	labels []string
}

// filled is a histogram of a metric.
type filled struct {
	metric Metric
	Histogram
}

// An Exemplar is a suspicious iteration.
type Exemplar struct {
	Iteration uint64
	Record    string // id of its flight record
	Cycles    uint64 // that it took, sleep excluded
	Time      time.Time
}

// A Histogram is the content of a histogram of durations in ticks or of small integers.
type Histogram struct {
	// Bins are the counts of Open vSwitch's bins, not cumulative, and Walls the inclusive
	// upper bounds of all bins but the last. Both may be empty where there are Fine ones.
	Walls, Bins []uint64
	// Fine are narrow ranges of values in rising order, the empty ones left out, as
	// histogram.Fine and histogram.Small have them; nil if they are not known. Native
	// buckets are made of them. Of a bucket only Hi and Count are used.
	Fine []histogram.Bucket
	// Sum is the sum of all values, NaN if unknown.
	Sum float64
}

// Set sets a value. The labels are the values of those that the metric has. Of two
// values with the same labels the first one counts.
func (t *Thread) Set(m Metric, v float64, labels ...string) {
	for i, l := range labels {
		if !utf8.ValidString(l) { // the name of an interface may be anything
			labels = slices.Clone(labels)
			labels[i] = strings.ToValidUTF8(l, "\uFFFD")
		}
	}
	if t.first(m, labels) {
		t.samples = append(t.samples, sample{m, v, labels})
	}
}

// SetHistogram sets the content of a histogram; the first one counts.
func (t *Thread) SetHistogram(m Metric, h Histogram) {
	if t.first(m, nil) {
		t.histograms = append(t.histograms, filled{m, h})
	}
}

// Value returns a value that was set.
func (t *Thread) Value(m Metric, labels ...string) (v float64, ok bool) {
	for i := range t.samples {
		if s := &t.samples[i]; s.metric == m && slices.Equal(s.labels, labels) {
			return s.value, true
		}
	}
	return 0, false
}

// first reports whether the metric has no value with these labels yet.
func (t *Thread) first(m Metric, labels []string) bool {
	k := key{metric: m}
	copy(k.labels[:], labels)
	if t.set[k] {
		return false
	}
	if t.set == nil {
		t.set = make(map[key]bool)
	}
	t.set[k] = true
	return true
}
