// Package hdr turns the histograms of a recorder into HdrHistograms, on the
// reader's side. It is the only importer of hdrhistogram-go.
package hdr

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/pmdperf/pmdperf/histogram"
)

// Histogram is an HdrHistogram, for those who may not import its package.
type Histogram = hdrhistogram.Histogram

// Percentiles are those that reports show, from the median to where a loop of a
// million passes a second has ten passes a second left.
var Percentiles = [...]float64{50, 75, 90, 95, 99, 99.9, 99.99, 99.999}

// FromFine returns an HdrHistogram with the same counts, bucket by bucket: both
// have the same layout at 2 significant digits.
func FromFine(f *histogram.Fine) *hdrhistogram.Histogram {
	return from(f.Buckets(), hdrhistogram.New(1, histogram.FineMax, 2))
}

// FromSmall returns an HdrHistogram with the same counts: 3 significant digits
// keep every value below 2048 apart, as Small does below 1024.
func FromSmall(s *histogram.Small) *hdrhistogram.Histogram {
	return from(s.Buckets(), hdrhistogram.New(1, histogram.SmallMax, 3))
}

func from(buckets func(func(histogram.Bucket) bool), h *hdrhistogram.Histogram) *hdrhistogram.Histogram {
	for b := range buckets {
		if err := h.RecordValues(int64(b.Lo), int64(b.Count)); err != nil {
			// Both layouts end at the same value, so that no bucket is out of range.
			panic("hdr: " + err.Error())
		}
	}
	return h
}

// A Log writes histograms in HdrHistogram's V2 log format, which its plotters
// and log processors read. It is for one goroutine.
type Log struct {
	w *hdrhistogram.HistogramLogWriter
}

// NewLog writes the head of a log to w, whose intervals begin at start.
func NewLog(w io.Writer, start time.Time) (*Log, error) {
	l := &Log{hdrhistogram.NewHistogramLogWriter(w)}
	l.w.SetBaseTime(start.UnixMilli())
	for _, write := range []func() error{
		l.w.OutputLogFormatVersion,
		func() error { return l.w.OutputBaseTime(start.UnixMilli()) },
		func() error { return l.w.OutputStartTime(start.UnixMilli()) },
		l.w.OutputLegend,
	} {
		if err := write(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Write adds one interval. The tag names the histogram, as "pmd-c01.cycles"; the format
// has no way to write an empty one, or one with a comma, a blank or a line break, which
// is an error and writes nothing.
func (l *Log) Write(tag string, from, to time.Time, h *Histogram) error {
	if tag == "" || strings.ContainsAny(tag, ", \t\r\n") {
		return fmt.Errorf("hdr: %q can't be the tag of a histogram", tag)
	}
	h.SetTag(tag)
	h.SetStartTimeMs(from.UnixMilli())
	h.SetEndTimeMs(to.UnixMilli())
	return l.w.OutputIntervalHistogram(h)
}

// ErrEmpty is returned for a histogram without values, of which nothing can be said.
var ErrEmpty = errors.New("hdr: the histogram is empty")

// ticksPerHalf is how many lines a percentile distribution has for each halving of
// the distance to 100 %. It is the default of HdrHistogram's own tools.
const ticksPerHalf = 5

// WritePercentiles writes the percentile distribution of h in HdrHistogram's text
// format (.hgrm), which its plotters read. It returns ErrEmpty if h has no values.
func WritePercentiles(w io.Writer, h *hdrhistogram.Histogram) error {
	if h.TotalCount() == 0 {
		return ErrEmpty
	}
	_, err := h.PercentilesPrint(w, ticksPerHalf, 1)
	return err
}
