package pmd

import (
	"context"
	"io"

	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/perf"
)

// overheadAnswer is what pmdperf/overhead answers.
type overheadAnswer struct {
	Threads []overheadThread `json:"threads"`
	remarks
}

// overheadThread says what of a PMD's time lay between its passes.
type overheadThread struct {
	identity
	Hz   float64   `json:"tsc_hz,omitzero"`
	Wall uint64    `json:"wall_ticks"` // since the last clear
	Gaps []gapData `json:"gaps"`
	Own  gapData   `json:"own"` // the recorder's: accounting and answering together
}

type gapData struct {
	Kind string `json:"kind"`
	ovs.GapSums
	Percent *float64 `json:"percent_of_wall,omitempty"`
}

func overhead(ctx context.Context, c *call) (answer, error) {
	if err := c.look(ctx, perf.Want{}); err != nil {
		return nil, err
	}
	return newOverhead(c.document(ovs.Options{}), c.remarks), nil
}

func newOverhead(d *ovs.Document, r remarks) *overheadAnswer {
	a := &overheadAnswer{[]overheadThread{}, r}
	for i := range d.Threads {
		t := &d.Threads[i]
		o := overheadThread{identity: identityOf(t), Hz: t.Hz, Wall: t.Cycles.Wall, Own: gapData{Kind: "own"}}
		for k := range history.NumGaps {
			g := gapData{Kind: k.String(), GapSums: t.Gaps[k.String()]}
			g.share(o.Wall)
			o.Gaps = append(o.Gaps, g)
			if k == history.Accounting || k == history.Answering {
				o.Own.add(&g)
			}
		}
		o.Own.share(o.Wall)
		a.Threads = append(a.Threads, o)
	}
	return a
}

// add adds up two kinds.
func (g *gapData) add(o *gapData) {
	if o.Count == 0 {
		return
	}
	if g.Count == 0 || *o.Min < *g.Min {
		g.Min = o.Min
	}
	if g.Count == 0 || *o.Max > *g.Max {
		g.Max, g.MaxAt = o.Max, o.MaxAt
	}
	g.Count += o.Count
	g.Ticks += o.Ticks
	g.Mean = new(float64(g.Ticks) / float64(g.Count))
}

func (g *gapData) share(wall uint64) {
	if wall > 0 {
		g.Percent = new(100 * float64(g.Ticks) / float64(wall))
	}
}

func (a *overheadAnswer) json() any { return a }

func (a *overheadAnswer) write(w io.Writer) {
	tab := newTable("core", "-gap", "count", "total us", "% of wall", "min us", "mean us", "max us", "longest ended (UTC)")
	for i := range a.Threads {
		t := &a.Threads[i]
		us := microsOf(t.Hz)
		for _, g := range append(t.Gaps[:len(t.Gaps):len(t.Gaps)], t.Own) {
			share := absent
			if g.Percent != nil {
				share = decimals(*g.Percent, 4)
			}
			tab.row(count(uint64(t.Core)), g.Kind, count(g.Count), us.of(float64(g.Ticks)), share,
				us.optional(g.Min), us.mean(g.Mean), us.optional(g.Max), moment(g.MaxAt))
		}
	}
	io.WriteString(w, tab.String()+a.lines())
}

// reloadsAnswer is what pmdperf/reloads answers.
type reloadsAnswer struct {
	Threads []reloadsThread `json:"threads"`
	remarks
}

// reloadsThread says how long a PMD was parked while its polling changed.
type reloadsThread struct {
	identity
	Hz float64 `json:"tsc_hz,omitzero"`
	ovs.GapSums
	Percentiles []ovs.Percentile `json:"percentiles,omitempty"`
}

func reloads(ctx context.Context, c *call) (answer, error) {
	if err := c.look(ctx, perf.Want{}); err != nil {
		return nil, err
	}
	return newReloads(c.document(ovs.Options{}), c.remarks), nil
}

func newReloads(d *ovs.Document, r remarks) *reloadsAnswer {
	a := &reloadsAnswer{[]reloadsThread{}, r}
	for i := range d.Threads {
		t := &d.Threads[i]
		l := reloadsThread{identity: identityOf(t), Hz: t.Hz, GapSums: t.Gaps[history.Reload.String()]}
		if t.Reloads != nil {
			l.Percentiles = t.Reloads.Percentiles
		}
		a.Threads = append(a.Threads, l)
	}
	return a
}

func (a *reloadsAnswer) json() any { return a }

func (a *reloadsAnswer) write(w io.Writer) {
	tab := newTable("core", "reloads", "total us", "min us", "mean us", "p50 us", "p99 us", "max us", "longest ended (UTC)")
	for i := range a.Threads {
		t := &a.Threads[i]
		us := microsOf(t.Hz)
		tab.row(count(uint64(t.Core)), count(t.Count), us.of(float64(t.Ticks)), us.optional(t.Min), us.mean(t.Mean),
			us.optional(percentile(t.Percentiles, 50)), us.optional(percentile(t.Percentiles, 99)),
			us.optional(t.Max), moment(t.MaxAt))
	}
	io.WriteString(w, tab.String()+a.lines())
}

// percentile returns one of the percentiles, or nil if it isn't there.
func percentile(ps []ovs.Percentile, percent float64) *uint64 {
	for i := range ps {
		if ps[i].Percent == percent {
			return &ps[i].Value
		}
	}
	return nil
}
