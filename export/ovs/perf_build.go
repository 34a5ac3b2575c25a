package ovs

import (
	"math"
	"strconv"

	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/perf"
)

// BuildPerf returns the report that pmd-perf-show would print. The snapshots are only
// read; those of several recorders need not be of the same time.
func BuildPerf(snaps []*perf.Snapshot, o Options) *PerfReport {
	r := new(PerfReport)
	r.Build(snaps, o)
	return r
}

// Build makes r what BuildPerf returns, in the memory that r has: who shows often makes
// less garbage with it. What r had before is no longer valid.
func (r *PerfReport) Build(snaps []*perf.Snapshot, o Options) {
	r.Unread = nil
	blocks := r.Blocks[:0]
	for _, s := range o.pmds(snaps, o.MainThread) {
		var b *PerfBlock
		blocks, b = next(blocks)
		b.build(s, &o)
	}
	r.Blocks = blocks
}

// next makes a slice one longer and returns its last element, which may be one that was
// there before the slice was made shorter.
func next[E any](list []E) ([]E, *E) {
	if len(list) == cap(list) {
		list = append(list, *new(E))
	} else {
		list = list[:len(list)+1]
	}
	return list, &list[len(list)-1]
}

// build makes b what is printed about a snapshot, in the memory that b has.
func (b *PerfBlock) build(s *perf.Snapshot, o *Options) {
	f := printedFigures(s)
	*b = PerfBlock{Thread: threadOf(s), Rows: b.Rows[:0], Histograms: b.Histograms[:0], Averages: b.Averages[:0]}
	if t, ok := wallClock(s, s.Now); ok {
		b.Time = t.Format("15:04:05.000")
	}
	if !math.IsNaN(f.seconds) {
		b.Duration = strconv.FormatFloat(f.seconds, 'f', 3, 64)
	}
	if f.seconds != 0 {
		b.counters(&f)
	}
	if s.Kind != perf.PMD || s.Level != perf.Detailed {
		return
	}
	if !o.NoHistograms {
		b.histograms(&f)
	}
	if o.Iterations > 0 {
		b.Iterations = iterationTable(s, o.Iterations, &o.Extra)
	}
	if o.Milliseconds > 0 {
		b.Milliseconds = milliTable(s, o.Milliseconds, &o.Extra)
	}
}

// Labels of rows and units of figures that are needed in more than one place.
const (
	labelTxPackets = "Tx packets"
	unitSleep      = "us/iteration avg."
)

func (b *PerfBlock) counters(f *figures) {
	s, t := f.s, &f.s.Totals
	pmd := s.Kind == perf.PMD // cycles are those of PMDs only
	_, hz := frequency(s)
	const detail = true
	if pmd {
		b.add("Iterations", !detail, t.Iterations, fig(f.usPerIteration(), 2, "us/it", hz))
		b.add("Used TSC cycles", detail, t.Cycles, fig(f.usedPercent(), 1, "% of total cycles", hz))
		b.add("idle iterations", detail, t.IdleIterations(), fig(f.idlePercent(), 1, "% of used cycles", true))
		b.add("busy iterations", detail, t.BusyIterations, fig(f.busyPercent(), 1, "% of used cycles", true))
		b.add("sleep iterations", detail, t.SleepIterations, fig(f.sleepPercent(), 1, "% of iterations", true))
		if hz {
			b.add("Sleep time (us)", !detail, uint64(math.RoundToEven(f.sleepMicros())), fig(f.microsPerSleep(), 0, unitSleep, true))
		}
	}
	b.add("Rx packets", !detail, t.RxPackets,
		fig(f.perSecond(t.RxPackets)/1000, 0, "Kpps", hz && t.RxPackets > 0),
		fig(f.cyclesPerPacket(), 0, "cycles/pkt", pmd && t.RxPackets > 0))
	if t.RxPackets > 0 {
		share := func(n uint64) Figure { return fig(f.passesPercent(n), 1, "%", true) }
		ok, lost := s.Counts[perf.UpcallsOK], s.Counts[perf.UpcallsLost]
		b.add("Datapath passes", !detail, s.DatapathPasses(), fig(f.passesPerPacket(), 2, "passes/pkt", true))
		for _, c := range []struct {
			label string
			n     perf.Counter
		}{
			{"PHWOL hits", perf.PHWOLHit},
			{"MFEX Opt hits", perf.MFEXOptHit},
			{"Simple Match hits", perf.SimpleHit},
			{"EMC hits", perf.EMCHit},
			{"SMC hits", perf.SMCHit},
		} {
			b.add(c.label, detail, s.Counts[c.n], share(s.Counts[c.n]))
		}
		hits := s.Counts[perf.MegaflowHit]
		b.add("Megaflow hits", detail, hits, share(hits), fig(f.lookupsPerHit(), 2, "subtbl lookups/hit", true))
		b.add("Upcalls", detail, ok, share(ok), fig(f.cyclesPerUpcall()*f.usPerCycle, 1, "us/upcall", pmd && hz))
		b.add("Lost upcalls", detail, lost, share(lost))
	}
	b.add(labelTxPackets, !detail, t.TxPackets,
		fig(f.perSecond(t.TxPackets)/1000, 0, "Kpps", hz && t.TxPackets > 0))
	if t.TxPackets > 0 {
		b.add("Tx batches", !detail, s.Counts[perf.TxBatches], fig(f.packetsPerTxBatch(), 2, "pkts/batch", true))
	}
}

// add adds a row with those of the figures that apply.
func (b *PerfBlock) add(label string, detail bool, value uint64, figs ...Figure) {
	var r *Row
	b.Rows, r = next(b.Rows)
	*r = Row{Label: label, Detail: detail, Value: value, Figures: r.Figures[:0]}
	for _, f := range figs {
		if f != (Figure{}) {
			r.Figures = append(r.Figures, f)
		}
	}
}

// fig returns a figure with so many decimals, or none if it doesn't apply. A share or
// average of nothing is printed as 0.
func fig(v float64, decimals int, unit string, applies bool) Figure {
	if !applies {
		return Figure{}
	}
	return Figure{fixed(v, decimals), unit}
}

// fixed formats like "%.*f", but NaN as 0.
func fixed(v float64, decimals int) string {
	if math.IsNaN(v) {
		v = 0
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// histograms adds the seven histograms and, if there was any pass, the averages.
// Unlike the original's they cover everything since the last clear, not only completed
// milliseconds.
func (b *PerfBlock) histograms(f *figures) {
	for m := range histogram.NumMetrics {
		h, bins := ovsHistogram(f.s, m)
		walls := m.Walls()
		var printed *Histogram
		b.Histograms, printed = next(b.Histograms)
		*printed = Histogram{m.String(), append(printed.Walls[:0], walls[:]...), append(printed.Counts[:0], bins[:]...)}
		avg := Average{Title: m.String(), Number: fixed(mean(h), 5)}
		switch m {
		case histogram.CyclesPerIteration, histogram.CyclesPerUpcall:
			avg.Number = fixed(math.Floor(mean(h)), 0)
		case histogram.CyclesPerPacket:
			// Not the mean of the histogram, in which an iteration counts once
			// whatever its number of packets.
			avg.Number = fixed(math.Floor(f.cyclesPerPacket()), 0)
		case histogram.QueueFill:
			avg.Title = "vhost qlen"
		}
		if f.s.Totals.Iterations > 0 {
			b.Averages = append(b.Averages, avg)
		}
	}
}
