package prom

import (
	"iter"
	"math"
	"slices"
	"strconv"

	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
)

func (t *Thread) setBool(m Metric, v bool, labels ...string) {
	n := 0.0
	if v {
		n = 1
	}
	t.Set(m, n, labels...)
}

func (t *Thread) setCount(m Metric, n uint64, labels ...string) { t.Set(m, float64(n), labels...) }

// setTicks sets seconds, where the frequency is known.
func (t *Thread) setTicks(m Metric, ticks uint64, labels ...string) {
	if t.Hz > 0 {
		t.Set(m, float64(ticks)/t.Hz, labels...)
	}
}

// fill sets what is in a snapshot, which is not used afterwards.
func (t *Thread) fill(s *perf.Snapshot) {
	t.Created = s.Cleared
	// Below 1 kHz it is no counter's frequency; false for NaN, too.
	if s.Hz >= 1000 && !math.IsInf(s.Hz, 0) {
		t.Hz = s.Hz
	}
	t.setTicks(MeasuredSeconds, s.Now-s.Since)
	t.packets(s)
	if s.Kind != perf.PMD {
		return
	}
	for l := perf.Basic; l <= perf.Off; l++ {
		t.setBool(Level, l == s.Level, l.String())
	}
	if t.Hz > 0 {
		t.Set(TSCHertz, t.Hz)
	}
	t.setBool(Isolated, s.Isolated)
	t.Set(MaxSleepSeconds, s.MaxSleep.Seconds())
	t.setCount(ClockBackwards, s.ClockBack)
	t.iterations(s)
	t.gaps(s)
	t.suspicious(s)
	t.distributions(s)
	for _, c := range s.Counters {
		t.setCount(UserEvents, c.Count, c.Name)
	}
	for _, timer := range s.Timers {
		t.setCount(TimerSpans, timer.Count, timer.Name)
		t.setTicks(TimerSeconds, timer.Cycles, timer.Name)
	}
	t.queues(s)
}

// packets sets what the main thread has, too.
func (t *Thread) packets(s *perf.Snapshot) {
	t.setCount(RxPackets, s.Totals.RxPackets)
	t.setCount(TxPackets, s.Totals.TxPackets)
	t.setCount(DroppedPackets, s.Totals.Drops)
	t.setCount(TxBatches, s.Counts[perf.TxBatches])
	t.setCount(DatapathPasses, s.DatapathPasses())
	t.setCount(Recirculations, s.Counts[perf.Recirc])
	for _, c := range []struct {
		cache string
		n     perf.Counter
	}{
		{"phwol", perf.PHWOLHit},
		{"mfex_opt", perf.MFEXOptHit},
		{"simple_match", perf.SimpleHit},
		{"emc", perf.EMCHit},
		{"smc", perf.SMCHit},
		{"megaflow", perf.MegaflowHit},
	} {
		t.setCount(LookupHits, s.Counts[c.n], c.cache)
	}
	t.setCount(SubtableLookups, s.Counts[perf.SubtableLooks])
	t.setCount(Upcalls, s.Counts[perf.UpcallsOK])
	t.setCount(LostUpcalls, s.Counts[perf.UpcallsLost])
}

func (t *Thread) iterations(s *perf.Snapshot) {
	n := &s.Totals
	t.setCount(Iterations, n.BusyIterations, "busy")
	t.setCount(Iterations, n.IdleIterations(), "idle")
	t.setCount(Iterations, n.SleepIterations, "sleep")
	t.setCount(Cycles, n.BusyCycles, "busy")
	t.setCount(Cycles, n.IdleCycles(), "idle")
	t.setCount(Cycles, n.Sleep, "sleep")
	t.setCount(UsedCycles, n.Cycles)
	t.setTicks(SleepSeconds, n.Sleep)
	t.setTicks(LongestIteration, s.Slowest.Cycles)
	t.setCount(RxRingDrops, n.RxDrops)
	if detailed(s) {
		t.setCount(RxBatches, n.RxBatches)
		t.setCount(FullRxBatches, n.FullBatches)
	}
}

// detailed reports whether there is what is recorded at that level only.
func detailed(s *perf.Snapshot) bool {
	return s.Level == perf.Detailed || s.Totals.DetailIterations > 0
}

func (t *Thread) gaps(s *perf.Snapshot) {
	for g := range history.NumGaps {
		sums := &s.Gaps[g]
		t.setCount(Cycles, sums.Ticks, g.String())
		t.setCount(Gaps, sums.Count, g.String())
		t.setTicks(GapSeconds, sums.Ticks, g.String())
		t.setTicks(LongestGap, sums.Max, g.String())
	}
	t.setTicks(OverheadSeconds, s.Gaps[history.Accounting].Ticks+s.Gaps[history.Answering].Ticks)
}

func (t *Thread) suspicious(s *perf.Snapshot) {
	c := &s.Suspicious
	t.setBool(SuspiciousWatched, s.Suspicion.On)
	t.setCount(SuspiciousTotal, c.Iterations)
	for r := range suspicious.NumReasons {
		t.setCount(SuspiciousByReason, c.ByReason[r], r.String())
	}
	t.setCount(SuspiciousMerged, c.Merged)
	t.setCount(SuspiciousNotCaptured, c.NotCaptured)
}

// setReports sets what became of the reports of suspicious iterations.
func (t *Thread) setReports(c suspicious.ReportCounts) {
	t.setCount(SuspiciousReported, c.Reported)
	t.setCount(SuspiciousHeldBack, c.HeldBack)
	for k := range suspicious.NumCauseKinds {
		t.setCount(SuspiciousByCause, c.Causes[k], k.String())
	}
}

// values are those that a recorder's histograms have in common.
type values interface {
	Sum() uint64
	Buckets() func(yield func(histogram.Bucket) bool)
}

func (t *Thread) distributions(s *perf.Snapshot) {
	set := func(m Metric, of histogram.Metric, h values, bins histogram.Bins) {
		walls := of.Walls()
		t.SetHistogram(m, Histogram{Walls: walls[:], Bins: bins[:], Fine: fine(h), Sum: float64(h.Sum())})
	}
	small := func(m Metric, of histogram.Metric, h *histogram.Small) { set(m, of, h, h.Bins(of.Walls())) }
	set(IterationCycles, histogram.CyclesPerIteration, &s.Cycles, s.Cycles.Bins)
	small(IterationPackets, histogram.PacketsPerIteration, &s.Packets)
	if t.Hz > 0 {
		t.SetHistogram(ReloadSeconds, Histogram{Fine: fine(&s.Reloads), Sum: float64(s.Reloads.Sum())})
	}
	if detailed(s) {
		set(PacketCycles, histogram.CyclesPerPacket, &s.CyclesPerPacket, s.CyclesPerPacket.Bins)
		small(BatchPackets, histogram.PacketsPerBatch, &s.BatchPackets)
		small(QueueFillPackets, histogram.QueueFill, &s.QueueFill)
		small(IterationUpcalls, histogram.UpcallsPerIteration, &s.Upcalls)
		set(UpcallCycles, histogram.CyclesPerUpcall, &s.CyclesPerUpcall, s.CyclesPerUpcall.Bins)
	}
}

// fine returns the buckets of a histogram, never nil.
func fine(h values) []histogram.Bucket {
	return slices.AppendSeq([]histogram.Bucket{}, iter.Seq[histogram.Bucket](h.Buckets()))
}

func (t *Thread) queues(s *perf.Snapshot) {
	var ticks, overhead uint64
	busy := make([]uint64, len(s.RxQueues))
	for i := range s.Usage {
		u := &s.Usage[i]
		ticks += u.Ticks
		overhead += u.Busy
		for q := range min(len(busy), len(u.Queues)) {
			busy[q] += u.Queues[q]
		}
	}
	for i := range s.RxQueues {
		q := &s.RxQueues[i]
		port, id := q.Port, strconv.Itoa(q.ID)
		t.Set(RxqEnabled, 1, port, id)
		t.setCount(RxqPackets, q.Packets, port, id)
		t.setCount(RxqCycles, q.BusyCycles, port, id, "busy")
		t.setCount(RxqCycles, q.IdleCycles, port, id, "idle")
		if ticks > 0 {
			t.Set(RxqUsage, float64(busy[i])/float64(ticks), port, id)
		}
		overhead -= min(overhead, busy[i])
		t.queue(q, RxqRingSize, RxqSizes, RxqCasts)
	}
	if ticks > 0 {
		t.Set(Overhead, float64(overhead)/float64(ticks))
		t.setTicks(UsageSeconds, ticks)
	}
	for i := range s.TxQueues {
		q := &s.TxQueues[i]
		if q.Sizes != (perf.Sizes{}) {
			t.setCount(TxqPackets, q.Packets, q.Port, strconv.Itoa(q.ID))
		}
		t.queue(q, TxqRingSize, TxqSizes, TxqCasts)
	}
}

// queue sets what both kinds of queue have.
func (t *Thread) queue(q *perf.QueueStats, ring, sizes, casts Metric) {
	port, id := q.Port, strconv.Itoa(q.ID)
	if q.Size > 0 {
		t.setCount(ring, uint64(q.Size), port, id)
	}
	if q.Sizes == (perf.Sizes{}) {
		return
	}
	for i, n := range q.Sizes.Classes {
		t.setCount(sizes, n, port, id, perf.SizeNames[i])
	}
	t.setCount(casts, q.Sizes.Multicast, port, id, "multicast")
	t.setCount(casts, q.Sizes.Broadcast, port, id, "broadcast")
}
