package exporter

import (
	"maps"
	"math"
	"strconv"

	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/export/prom"
	"github.com/pmdperf/pmdperf/histogram"
)

// texts turns the texts of an Open vSwitch into threads.
type texts struct {
	hz     float64               // ticks in a second of this machine, which is the switch's too; 0 if unknown
	epochs map[ovs.Thread]*epoch // of all threads that ever were: one that is missing in an answer may come back
}

// block is what the texts have of one thread.
type block struct {
	writer
	perf     *ovs.PerfBlock
	stats    *ovs.StatsBlock
	rxq      *ovs.RxqBlock
	window   int     // of the usage, in seconds; 0 if unknown
	maxSleep *uint64 // in us
	*epoch
}

// threads returns the threads in the texts.
func (ts *texts) threads(r *reading) []*prom.Thread {
	var blocks []*block
	if ts.epochs == nil {
		ts.epochs = make(map[ovs.Thread]*epoch)
	}
	byThread := make(map[ovs.Thread]*block)
	of := func(t ovs.Thread) *block {
		b := byThread[t]
		if b == nil {
			e := ts.epochs[t]
			if e == nil {
				e = new(epoch)
				ts.epochs[t] = e
			}
			b = &block{
				writer: writer{&prom.Thread{Main: t.Main, NUMA: t.NUMA, Core: t.Core, Hz: ts.hz}},
				epoch:  e,
			}
			byThread[t] = b
			blocks = append(blocks, b)
		}
		return b
	}
	for i := range r.perf.Blocks {
		of(r.perf.Blocks[i].Thread).perf = &r.perf.Blocks[i]
	}
	if r.stats != nil {
		for i := range r.stats.Blocks {
			of(r.stats.Blocks[i].Thread).stats = &r.stats.Blocks[i]
		}
	}
	if r.rxq != nil {
		for i := range r.rxq.Blocks {
			b := of(r.rxq.Blocks[i].Thread)
			b.rxq, b.window = &r.rxq.Blocks[i], r.rxq.Seconds
		}
	}
	if r.sleep != nil {
		for _, s := range r.sleep.Blocks {
			if of(s.Thread).maxSleep = s.MaxSleep; s.MaxSleep == nil {
				of(s.Thread).maxSleep = r.sleep.Default
			}
		}
	}

	if len(ts.epochs) > mostThreads {
		maps.DeleteFunc(ts.epochs, func(t ovs.Thread, _ *epoch) bool { return byThread[t] == nil })
	}

	var threads []*prom.Thread
	for _, b := range blocks {
		seconds := math.NaN()
		if b.perf != nil {
			seconds = secondsOf(b.perf)
		}
		b.see(r.sent, r.arrived, seconds, b.counters())
		b.Created = b.created
		b.write(seconds)
		threads = append(threads, b.Thread)
	}
	return threads
}

// row is a counter in the texts and what it is to Prometheus.
type row struct {
	perf   string // its label in pmd-perf-show
	stats  string // its label in pmd-stats-show
	metric prom.Metric
	labels []string
}

// rows are taken from pmd-perf-show where that has them.
var rows = []row{
	{"busy iterations", "", prom.Iterations, []string{"busy"}},
	{"idle iterations", "", prom.Iterations, []string{"idle"}},
	{"sleep iterations", "", prom.Iterations, []string{"sleep"}},
	{usedCycles, "", prom.UsedCycles, nil},
	{"", "processing cycles", prom.Cycles, []string{"busy"}},
	{"", "idle cycles", prom.Cycles, []string{"idle"}},
	{rxPackets, "packets received", prom.RxPackets, nil},
	{txPackets, "", prom.TxPackets, nil},
	{"Tx batches", "", prom.TxBatches, nil},
	{"Datapath passes", "", prom.DatapathPasses, nil},
	{"", "packet recirculations", prom.Recirculations, nil},
	{"PHWOL hits", "phwol hits", prom.LookupHits, []string{"phwol"}},
	{"MFEX Opt hits", "mfex opt hits", prom.LookupHits, []string{"mfex_opt"}},
	{"Simple Match hits", "simple match hits", prom.LookupHits, []string{"simple_match"}},
	{"EMC hits", "emc hits", prom.LookupHits, []string{"emc"}},
	{"SMC hits", "smc hits", prom.LookupHits, []string{"smc"}},
	{"Megaflow hits", "megaflow hits", prom.LookupHits, []string{"megaflow"}},
	{"Upcalls", "miss with success upcall", prom.Upcalls, nil},
	{"Lost upcalls", "miss with failed upcall", prom.LostUpcalls, nil},
}

// Labels of rows that have uses besides.
const (
	usedCycles = "Used TSC cycles"
	sleepTime  = "Sleep time (us)"
	rxPackets  = "Rx packets"
	txPackets  = "Tx packets"
)

// name is what an epoch knows the row's counter by.
func (r *row) name() string { return r.perf + "/" + r.stats }

// value returns the row's value in the texts of a thread.
func (r *row) value(b *block) (v uint64, ok bool) {
	if b.perf != nil && r.perf != "" {
		if v, ok = b.perf.Value(r.perf); ok {
			return v, true
		}
	}
	if b.stats != nil && r.stats != "" {
		return b.stats.Value(r.stats)
	}
	return 0, false
}

// counters returns all that should only rise.
func (b *block) counters() map[string]uint64 {
	cs := make(map[string]uint64)
	for i := range rows {
		if v, ok := rows[i].value(b); ok {
			cs[rows[i].name()] = v
		}
	}
	if b.perf == nil {
		return cs
	}
	if v, ok := b.perf.Value(sleepTime); ok {
		cs[sleepTime] = v
	}
	for i := range b.perf.Histograms {
		h := &b.perf.Histograms[i]
		if !whole(h) {
			continue
		}
		for j, n := range h.Counts {
			cs[binName(h, j)] = n
		}
	}
	return cs
}

// whole reports whether no bin is missing, as in a text that was damaged, where a sum of
// bins would be lower than before.
func whole(h *ovs.Histogram) bool {
	return len(h.Walls) == histogram.NumBins-1 && len(h.Counts) == histogram.NumBins
}

func binName(h *ovs.Histogram, bin int) string { return h.Title + "/" + strconv.Itoa(bin) }

// write sets the thread's values.
func (b *block) write(seconds float64) {
	if !math.IsNaN(seconds) {
		b.Set(prom.MeasuredSeconds, seconds)
	}
	for i := range rows {
		if v, ok := b.value(rows[i].name()); ok {
			b.count(rows[i].metric, v, rows[i].labels...)
		}
	}
	if b.Hz > 0 && !b.Main {
		b.Set(prom.TSCHertz, b.Hz)
	}
	if b.perf != nil {
		b.share()
		b.sleep(seconds)
		b.distributions()
	}
	if b.rxq != nil {
		b.queues()
	}
	if b.maxSleep != nil {
		b.Set(prom.MaxSleepSeconds, float64(*b.maxSleep)/1e6)
	}
}

// share sets the shares of busy and idle cycles where their exact numbers aren't known.
func (b *block) share() {
	if _, exact := b.Value(prom.Cycles, "busy"); exact {
		return
	}
	for _, state := range []string{"busy", "idle"} {
		if f, ok := b.perf.Figure(state+" iterations", "% of used cycles"); ok && !math.IsNaN(f.Float()) {
			b.Set(prom.CycleShare, f.Float()/100, state)
		}
	}
}

// sleep sets the time slept. An Open vSwitch that doesn't know the frequency of its ticks
// computes with one a second, so that its microseconds are a million to the tick. Once
// there was a sleep, what they are stays as it is.
func (b *block) sleep(seconds float64) {
	us, ok := b.value(sleepTime)
	if !ok {
		return
	}
	if b.sleepUnit == 0 && us > 0 {
		b.sleepUnit = 1e-6
		if float64(us)/1e6 > seconds+1 { // longer than it was measured
			b.sleepUnit = 1e-6 / b.Hz
		}
	}
	if !math.IsInf(b.sleepUnit, 0) {
		b.Set(prom.SleepSeconds, float64(us)*b.sleepUnit)
	}
}

func (b *block) distributions() {
	for i := range b.perf.Histograms {
		h := &b.perf.Histograms[i]
		if !whole(h) {
			continue
		}
		for _, known := range histograms {
			if known.title != h.Title {
				continue
			}
			bins := make([]uint64, len(h.Counts))
			for j := range bins {
				bins[j], _ = b.value(binName(h, j))
			}
			b.SetHistogram(known.metric, prom.Histogram{Walls: h.Walls, Bins: bins, Sum: b.sum(known.metric)})
		}
	}
}

// sum returns the sum of a histogram's values, NaN if it isn't known. The texts have no
// sums, but some are counters, too.
func (b *block) sum(m prom.Metric) float64 {
	counter := prom.Metric(-1)
	switch m {
	case prom.IterationCycles:
		counter = prom.UsedCycles
	case prom.IterationPackets:
		counter = prom.RxPackets
	}
	if v, ok := b.Value(counter); ok {
		return v
	}
	return math.NaN()
}

func (b *block) queues() {
	b.flag(prom.Isolated, b.rxq.Isolated)
	for i := range b.rxq.Queues {
		q := &b.rxq.Queues[i]
		id := []string{q.Port, strconv.Itoa(q.Queue)}
		b.flag(prom.RxqEnabled, &q.Enabled, id...)
		if q.Usage.Known {
			b.Set(prom.RxqUsage, float64(q.Usage.Percent)/100, id...)
		}
	}
	if o := b.rxq.Overhead; o != nil && o.Known {
		b.Set(prom.Overhead, float64(o.Percent)/100)
	}
	if b.window > 0 {
		b.Set(prom.UsageSeconds, float64(b.window))
	}
}
