package pmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/histogram/hdr"
	"github.com/pmdperf/pmdperf/perf"
)

// source is a histogram that can be asked for by name.
type source struct {
	name  string // as in the JSON of a recorder
	unit  string // of its values
	ticks bool   // values are lengths of time
	of    func(*perf.Snapshot) *hdr.Histogram
}

const reloadSpans = "reload_spans"

func sources() []source {
	fine := func(f func(*perf.Snapshot) *histogram.Fine) func(*perf.Snapshot) *hdr.Histogram {
		return func(s *perf.Snapshot) *hdr.Histogram { return hdr.FromFine(f(s)) }
	}
	small := func(f func(*perf.Snapshot) *histogram.Small) func(*perf.Snapshot) *hdr.Histogram {
		return func(s *perf.Snapshot) *hdr.Histogram { return hdr.FromSmall(f(s)) }
	}
	return []source{
		{"cycles_per_iteration", "cycles", true, fine(func(s *perf.Snapshot) *histogram.Fine { return &s.Cycles.Fine })},
		{"packets_per_iteration", "packets", false, small(func(s *perf.Snapshot) *histogram.Small { return &s.Packets })},
		{"cycles_per_packet", "cycles", true, fine(func(s *perf.Snapshot) *histogram.Fine { return &s.CyclesPerPacket.Fine })},
		{"packets_per_batch", "packets", false, small(func(s *perf.Snapshot) *histogram.Small { return &s.BatchPackets })},
		{"queue_fill_per_iteration", "packets", false, small(func(s *perf.Snapshot) *histogram.Small { return &s.QueueFill })},
		{"upcalls_per_iteration", "upcalls", false, small(func(s *perf.Snapshot) *histogram.Small { return &s.Upcalls })},
		{"cycles_per_upcall", "cycles", true, fine(func(s *perf.Snapshot) *histogram.Fine { return &s.CyclesPerUpcall.Fine })},
		{reloadSpans, "cycles", true, fine(func(s *perf.Snapshot) *histogram.Fine { return &s.Reloads })},
	}
}

// percentilesAnswer is what pmdperf/percentiles answers.
type percentilesAnswer struct {
	Threads []percentilesThread `json:"threads"`
	remarks
}

type percentilesThread struct {
	identity
	Hz         float64                      `json:"tsc_hz,omitzero"`
	Histograms map[string]ovs.HistogramData `json:"histograms"`
}

func percentiles(ctx context.Context, c *call) (answer, error) {
	wanted := sources()
	if c.hasWord {
		i := slices.IndexFunc(wanted, func(s source) bool { return s.name == c.word })
		if i < 0 {
			var names []string
			for _, s := range wanted {
				names = append(names, s.name)
			}
			return nil, &argumentError{text: fmt.Sprintf("there is no histogram %q; there are %s", c.word, strings.Join(names, ", "))}
		}
		wanted = wanted[i : i+1]
	}
	if c.flags["-hdr"] {
		return distribution(ctx, c, wanted)
	}
	if c.flags["-log"] {
		return logged(ctx, c, wanted)
	}
	if err := c.look(ctx, perf.Want{}); err != nil {
		return nil, err
	}
	return newPercentiles(c.document(ovs.Options{}), c.remarks, wanted), nil
}

func newPercentiles(d *ovs.Document, r remarks, wanted []source) *percentilesAnswer {
	a := &percentilesAnswer{[]percentilesThread{}, r}
	for i := range d.Threads {
		t := &d.Threads[i]
		p := percentilesThread{identityOf(t), t.Hz, map[string]ovs.HistogramData{}}
		for _, s := range wanted {
			if h, ok := t.Histograms[s.name]; ok {
				p.Histograms[s.name] = h
			} else if s.name == reloadSpans && t.Reloads != nil {
				p.Histograms[s.name] = *t.Reloads
			} else if len(wanted) == 1 {
				a.note("core %d has recorded no %s (level %s)", p.Core, s.name, t.Level)
			}
		}
		a.Threads = append(a.Threads, p)
	}
	return a
}

func (a *percentilesAnswer) json() any { return a }

func (a *percentilesAnswer) write(w io.Writer) {
	tab := newTable("core", "-histogram", "-unit", "samples", "mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99", "p99.999", "max")
	for i := range a.Threads {
		t := &a.Threads[i]
		us := microsOf(t.Hz)
		for _, s := range sources() {
			h, ok := t.Histograms[s.name]
			if !ok {
				continue
			}
			row := func(unit string, mean string, value func(*uint64) string) {
				cells := []string{count(uint64(t.Core)), s.name, unit, count(h.Count), mean}
				for _, p := range []float64{50, 90, 95, 99, 99.9, 99.99, 99.999} {
					cells = append(cells, value(percentile(h.Percentiles, p)))
				}
				tab.row(append(cells, value(h.Max))...)
			}
			mean := absent
			if h.Mean != nil {
				mean = decimals(*h.Mean, 2)
			}
			row(s.unit, mean, optional)
			if s.ticks {
				row("us", us.mean(h.Mean), us.optional)
			}
		}
	}
	io.WriteString(w, tab.String()+a.lines())
}

// distributionAnswer is what pmdperf/percentiles -hdr answers: one histogram of
// one PMD, since that is what a file for HdrHistogram's plotters holds.
type distributionAnswer struct {
	identity
	Histogram string `json:"histogram"`
	Unit      string `json:"unit"`
	Text      string `json:"percentile_distribution"`
}

func (a *distributionAnswer) json() any         { return a }
func (a *distributionAnswer) write(w io.Writer) { io.WriteString(w, a.Text) }

func distribution(ctx context.Context, c *call, wanted []source) (answer, error) {
	if len(wanted) != 1 {
		return nil, &argumentError{text: "-hdr wants the name of one histogram, such as " + wanted[0].name}
	}
	if len(c.pmds) != 1 {
		return nil, &argumentError{optCore, "-hdr wants one PMD, by -pmd core"}
	}
	// The one PMD must answer even if the client didn't have to name it.
	c.numbers[optCore] = uint64(c.pmds[0].Core())
	if err := c.look(ctx, perf.Want{}); err != nil {
		return nil, err
	}
	a := &distributionAnswer{identify(c.pmds[0]), wanted[0].name, wanted[0].unit, ""}
	var b strings.Builder
	err := hdr.WritePercentiles(&b, wanted[0].of(c.snaps[0]))
	if errors.Is(err, hdr.ErrEmpty) {
		return nil, fmt.Errorf("core %d has recorded no %s", a.Core, a.Histogram)
	}
	a.Text = b.String()
	return a, err
}

// hdrLogAnswer is what pmdperf/percentiles -log answers: a log of one interval, which is the
// time since each PMD was cleared.
type hdrLogAnswer struct {
	Text string `json:"hdr_log"`
	remarks
}

func (a *hdrLogAnswer) json() any         { return a }
func (a *hdrLogAnswer) write(w io.Writer) { io.WriteString(w, a.Text) }

// logged answers with all histograms that hold anything. Remarks would be no lines of a
// log: its text has none.
func logged(ctx context.Context, c *call, wanted []source) (answer, error) {
	if err := c.look(ctx, perf.Want{}); err != nil {
		return nil, err
	}
	var b strings.Builder
	var l *hdr.Log
	for _, s := range c.snaps {
		if l == nil {
			var err error
			if l, err = hdr.NewLog(&b, s.Cleared); err != nil {
				return nil, err
			}
		}
		for _, w := range wanted {
			h := w.of(s)
			if h.TotalCount() == 0 {
				continue
			}
			if err := l.Write(fmt.Sprintf("pmd-c%02d.%s", s.Core, w.name), s.Cleared, s.Time(s.Now), h); err != nil {
				return nil, err
			}
		}
	}
	return &hdrLogAnswer{b.String(), c.remarks}, nil
}
