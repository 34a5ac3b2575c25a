package prom

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/pmdperf/pmdperf/histogram"
)

// grid are the bounds of the classic buckets of all histograms of seconds, the same on
// every host: 1, 2 and 5 times the powers of ten. 10 ns is a fast packet, and what lasts
// longer than 10 s needs no histogram.
var grid = [...]float64{
	1e-8, 2e-8, 5e-8, 1e-7, 2e-7, 5e-7, 1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4,
	1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.5, 1, 2, 5, 10,
}

// Native buckets: 2^schema of them double the bound. With schema 3 a bucket is 9 %
// wide, and a range of the fine histogram, which is 0.8 % wide at most, rarely lies in two.
const (
	schema  = 3
	doubled = 1 << schema
	// zeroThreshold is the default of client_golang, 2^-128.
	zeroThreshold = prometheus.DefNativeHistogramZeroThreshold
)

// nativeBounds are the bounds of the native buckets within [0.5, 1).
var nativeBounds = func() (b [doubled]float64) {
	for i := range b {
		b[i] = math.Exp2(float64(i)/doubled - 1)
	}
	return b
}()

// nativeBucket returns the number of the native bucket of v > 0. Number n has the
// inclusive upper bound 2^(n/doubled).
func nativeBucket(v float64) int {
	fraction, exponent := math.Frexp(v) // v = fraction * 2^exponent, fraction in [0.5, 1)
	i, _ := slices.BinarySearch(nativeBounds[:], fraction)
	return i + (exponent-1)*doubled
}

// constHistogram is a histogram with classic and native buckets.
type constHistogram struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	h      dto.Histogram
}

func (c *constHistogram) Desc() *prometheus.Desc { return c.desc }

func (c *constHistogram) Write(m *dto.Metric) error {
	m.Histogram, m.Label = &c.h, c.labels
	return nil
}

// newHistogram returns the metric of a histogram, whose values are in ticks where the
// kind is one of durations.
func newHistogram(d *prometheus.Desc, k kind, h *Histogram, t *Thread, exemplars bool, labels []string) prometheus.Metric {
	if err := h.check(); err != nil {
		return prometheus.NewInvalidMetric(d, err)
	}
	unit := 1.0 // what a value is divided by
	if k == seconds {
		if unit = t.Hz; unit <= 0 {
			return prometheus.NewInvalidMetric(d, fmt.Errorf("no seconds without a frequency"))
		}
	}
	c := &constHistogram{desc: d, labels: prometheus.MakeLabelPairs(d, labels)}
	if k == seconds {
		c.onGrid(h, unit)
	} else {
		c.inBins(h)
	}
	if h.Fine != nil {
		c.native(h.Fine, unit)
	}
	c.h.SampleCount = new(h.count())
	c.h.SampleSum = new(h.Sum / unit)
	if !t.Created.IsZero() {
		c.h.CreatedTimestamp = timestamppb.New(t.Created)
	}
	if !exemplars || len(t.Exemplars) == 0 {
		return c
	}
	list := make([]prometheus.Exemplar, len(t.Exemplars))
	for i, e := range t.Exemplars {
		list[i] = prometheus.Exemplar{
			Value:     float64(e.Cycles) / unit,
			Labels:    prometheus.Labels{"iteration": strconv.FormatUint(e.Iteration, 10), "record": e.Record},
			Timestamp: e.Time,
		}
	}
	with, err := prometheus.NewMetricWithExemplars(c, list...)
	if err != nil {
		return c // an id that is too long: better without
	}
	return with
}

// check returns what is wrong with the content.
func (h *Histogram) check() error {
	if len(h.Bins)+len(h.Walls) > 0 && len(h.Bins) != len(h.Walls)+1 {
		return fmt.Errorf("%d bins between %d walls", len(h.Bins), len(h.Walls))
	}
	for i := 1; i < len(h.Walls); i++ {
		if h.Walls[i] <= h.Walls[i-1] {
			return fmt.Errorf("wall %d after %d", h.Walls[i], h.Walls[i-1])
		}
	}
	for i := 1; i < len(h.Fine); i++ {
		if h.Fine[i].Hi <= h.Fine[i-1].Hi {
			return fmt.Errorf("range up to %d after %d", h.Fine[i].Hi, h.Fine[i-1].Hi)
		}
	}
	if len(h.Bins) > 0 && h.Fine != nil && total(h.Bins) != totalFine(h.Fine) {
		return fmt.Errorf("%d values in bins and %d in fine ranges", total(h.Bins), totalFine(h.Fine))
	}
	return nil
}

// count returns the number of values.
func (h *Histogram) count() uint64 {
	if len(h.Bins) > 0 {
		return total(h.Bins)
	}
	return totalFine(h.Fine)
}

func total(bins []uint64) (n uint64) {
	for _, c := range bins {
		n += c
	}
	return n
}

func totalFine(fine []histogram.Bucket) (n uint64) {
	for i := range fine {
		n += fine[i].Count
	}
	return n
}

// classic sets the classic buckets from counts that are not cumulative, one for every
// bound.
func (c *constHistogram) classic(bounds []float64, counts []uint64) {
	buckets := make([]dto.Bucket, len(bounds))
	c.h.Bucket = make([]*dto.Bucket, len(bounds))
	var n uint64
	for i := range bounds {
		n += counts[i]
		counts[i] = n
		buckets[i].UpperBound, buckets[i].CumulativeCount = &bounds[i], &counts[i]
		c.h.Bucket[i] = &buckets[i]
	}
}

// inBins sets the classic buckets to Open vSwitch's bins.
func (c *constHistogram) inBins(h *Histogram) {
	bounds := make([]float64, len(h.Walls))
	for i, w := range h.Walls {
		bounds[i] = float64(w)
	}
	c.classic(bounds, slices.Clone(h.Bins))
}

// onGrid sets the classic buckets to the grid. A range or bin counts as its upper
// bound; what is above all walls is above the grid.
func (c *constHistogram) onGrid(h *Histogram, hz float64) {
	counts := make([]uint64, len(grid)+1)
	add := func(ticks, n uint64) {
		i, _ := slices.BinarySearch(grid[:], float64(ticks)/hz)
		counts[i] += n
	}
	if h.Fine != nil {
		for i := range h.Fine {
			add(h.Fine[i].Hi, h.Fine[i].Count)
		}
	} else {
		for i, w := range h.Walls {
			add(w, h.Bins[i])
		}
	}
	c.classic(grid[:], counts)
}

// native sets the native buckets. A range counts as its upper bound.
func (c *constHistogram) native(fine []histogram.Bucket, unit float64) {
	h := &c.h
	h.Schema, h.ZeroThreshold, h.ZeroCount = new(int32(schema)), new(zeroThreshold), new(uint64(0))
	var span *dto.BucketSpan
	var count, before int64 // of the last bucket and the one before it
	last := 0               // number of the last bucket
	for i := range fine {
		n := int64(fine[i].Count)
		if fine[i].Hi == 0 {
			*h.ZeroCount += uint64(n)
			continue
		}
		bucket := nativeBucket(float64(fine[i].Hi) / unit)
		switch {
		case span != nil && bucket == last:
			count += n
			h.PositiveDelta[len(h.PositiveDelta)-1] = count - before
			continue
		case span != nil && bucket == last+1:
			*span.Length++
		default:
			// The offset is from 0 for the first span, from the end of the one before for
			// the others.
			offset := bucket
			if span != nil {
				offset = bucket - last - 1
			}
			span = &dto.BucketSpan{Offset: new(int32(offset)), Length: new(uint32(1))}
			h.PositiveSpan = append(h.PositiveSpan, span)
		}
		before, count, last = count, n, bucket
		h.PositiveDelta = append(h.PositiveDelta, count-before)
	}
}
