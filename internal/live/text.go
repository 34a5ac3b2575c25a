package live

import (
	"math"
	"strconv"

	"github.com/pmdperf/pmdperf/export/ovs"
)

// readText fills the sample from the text of pmd-perf-show and pmd-stats-show.
func (s *Sample) readText(perf *ovs.PerfReport, stats *ovs.StatsReport) {
	for i := range perf.Blocks {
		b := &perf.Blocks[i]
		if b.Thread.Main {
			continue
		}
		p := fromText(b)
		for j := range stats.Blocks {
			if st := &stats.Blocks[j]; st.Thread == b.Thread {
				// The exact cycles, of which pmd-perf-show has only a rounded share. Both
				// rows are missing as long as there is no cycle.
				idle, _ := st.Value("idle cycles")
				busy, _ := st.Value("processing cycles")
				p.Counts.set(IdleCycles, idle)
				received, _ := st.Value("packets received")
				p.Counts.set(BusyCycles, busy)
				p.Counts.set(BusyPackets, received)
			}
		}
		s.PMDs = append(s.PMDs, p)
	}
	s.sort()
}

// rows are the labels of the counters. Open vSwitch leaves out rows that are 0.
var rows = [NumCounters]string{
	Iterations:      "Iterations",
	IdleIterations:  "idle iterations",
	BusyIterations:  "busy iterations",
	SleepIterations: "sleep iterations",
	UsedCycles:      "Used TSC cycles",
	SleepMicros:     "Sleep time (us)",
	RxPackets:       "Rx packets",
	TxPackets:       "Tx packets",
	TxBatches:       "Tx batches",
	Passes:          "Datapath passes",
	PHWOLHits:       "PHWOL hits",
	MFEXOptHits:     "MFEX Opt hits",
	SimpleMatchHits: "Simple Match hits",
	EMCHits:         "EMC hits",
	SMCHits:         "SMC hits",
	MegaflowHits:    "Megaflow hits",
	Upcalls:         "Upcalls",
	LostUpcalls:     "Lost upcalls",
}

func fromText(b *ovs.PerfBlock) PMD {
	p := PMD{Core: b.Thread.Core, NUMA: b.Thread.NUMA, Hz: math.NaN(), Seconds: math.NaN(), sleepHz: math.NaN()}
	if v, err := strconv.ParseFloat(b.Duration, 64); err == nil {
		p.Seconds = v
	}
	for c, label := range rows {
		if label != "" {
			v, _ := b.Value(label)
			p.Counts.set(Counter(c), v)
		}
	}
	p.frequency(b)
	for m := range NumMetrics {
		if h := b.Histogram(metrics[m].title); h != nil {
			p.Histograms[m] = histogram(h.Walls, h.Counts)
		}
	}
	if h := &p.Histograms[PacketsPerBatch]; h.Known() {
		p.Counts.set(RxBatches, h.Total())
	}
	p.histories(b)
	return p
}

// minHz is the lowest frequency that a time stamp counter may have. Open vSwitch
// without DPDK computes with 1 Hz.
const minHz = 1e6

// frequency finds the frequency that the target computes with, and the real one.
//
// The share of used cycles is printed with one decimal: used * 100 / (share *
// seconds) is the frequency, to 0.05/share: 5 % for a share of 1 %. Below that, and
// where the target computes with 1 Hz, it follows from a PMD being always either
// in a pass or asleep, so that used = (seconds - slept) * frequency. That is less
// exact where it is asleep most of the time, as oversleeping is booked nowhere.
func (p *PMD) frequency(b *ovs.PerfBlock) {
	used := p.Counts.Get(UsedCycles)
	share := math.NaN()
	if f, ok := b.Figure(rows[UsedCycles], "% of total cycles"); ok {
		share = f.Float()
	}
	if !(used > 0 && p.Seconds > 0 && share > 0) {
		return
	}
	p.Estimated = true
	printed := used * 100 / (share * p.Seconds)
	slept := p.Counts.Get(SleepMicros) / 1e6
	switch {
	case printed < minHz: // in which slept is in cycles of 1 Hz
		p.sleepHz = 1
		p.Hz = (used + slept) / p.Seconds
	case share < 1 && p.Seconds-slept > 0.05:
		p.Hz = used / (p.Seconds - slept)
		p.sleepHz = p.Hz
	default:
		p.Hz = printed
		p.sleepHz = p.Hz
	}
	if p.Hz < minHz {
		p.Hz = math.NaN()
	}
}

func (p *PMD) histories(b *ovs.PerfBlock) {
	if t := b.Iterations; t != nil {
		for i := range t.Rows {
			row := ovs.IterationRow{
				Iteration: cell(t, i, "iter"), Cycles: cell(t, i, "cycles"), Rx: cell(t, i, "packets"),
				Fill: new(cell(t, i, "vhost qlen")), Upcalls: new(cell(t, i, "upcalls")),
			}
			row.UpcallCycles = new(cell(t, i, "cycles/upcall") * *row.Upcalls)
			if row.Cycles > 0 { // the original prints slots that hold nothing
				p.Iterations = append(p.Iterations, row)
			}
		}
	}
	if t := b.Milliseconds; t != nil {
		// A row is numbered by when it began, and lasted until the next one began:
		// there are no rows for milliseconds in which no pass ended.
		var end uint64 // of the newest: how long that lasted isn't known
		var began uint64
		for i := range t.Rows {
			ms, its, rx := cell(t, i, "ms"), cell(t, i, "iterations"), cell(t, i, "Kpps")
			if its == 0 || began != 0 && ms >= began { // holds nothing, or was overwritten meanwhile
				continue
			}
			if began == 0 {
				began = ms + 1
				end = began
			}
			p.Millis = append(p.Millis, Milli{
				Age:        float64(end-began) / 1000,
				Seconds:    float64(began-ms) / 1000,
				Iterations: float64(its),
				Cycles:     float64(cell(t, i, "cycles/it") * its),
				BusyCycles: float64(cell(t, i, "cycles/pkt") * rx),
				Rx:         float64(rx),
				Upcalls:    float64(cell(t, i, "upcalls")),
				Fill:       float64(cell(t, i, "vhost qlen")),
			})
			began = ms
		}
	}
}

func cell(t *ovs.Table, row int, column string) uint64 {
	v, _ := t.Uint(row, column)
	return v
}
