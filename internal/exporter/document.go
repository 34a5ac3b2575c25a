package exporter

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/export/prom"
	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
)

// documents turns the documents of a target into threads.
type documents struct {
	last    map[int]*ovs.Recorded // by core, of PMDs, for when they are stuck
	cleared map[string]cleared    // by the name of the thread
}

// cleared is when a thread's counters were cleared. A document's time is computed from
// the tick anew each time and differs by some nanoseconds.
type cleared struct {
	tick uint64
	time time.Time
}

// threads returns the threads of a document. A PMD that did not answer its program has
// its last known values.
func (ds *documents) threads(d *document) []*prom.Thread {
	var threads []*prom.Thread
	now := make(map[int]*ovs.Recorded)
	for i := range d.Threads {
		r := &d.Threads[i]
		ds.settle(r)
		if r.Core != nil {
			now[*r.Core] = r
		}
		t := recorded(r, false)
		t.Exemplars = exemplars(d.events, r.Name, t.Created)
		threads = append(threads, t)
	}
	for _, m := range d.Missing {
		r := ds.last[m.Core]
		if r == nil || r.Name != m.Name {
			r = &ovs.Recorded{Kind: "pmd", Name: m.Name, Core: &m.Core, NUMA: &m.NUMA}
		} else {
			now[m.Core] = r
		}
		threads = append(threads, recorded(r, true))
	}
	ds.last = now
	if len(ds.cleared) > mostThreads {
		clear(ds.cleared)
	}
	return threads
}

// settle makes the time of a thread's last clear the one that it had in the document
// before, if it is the same clear, and else a later one.
func (ds *documents) settle(r *ovs.Recorded) {
	if r.Since.IsZero() {
		return
	}
	if ds.cleared == nil {
		ds.cleared = make(map[string]cleared)
	}
	before, ok := ds.cleared[r.Name]
	switch {
	case ok && before.tick == r.SinceTick:
		r.Since = before.time
	case ok && !r.Since.After(before.time):
		r.Since = before.time.Add(1)
	}
	ds.cleared[r.Name] = cleared{r.SinceTick, r.Since}
}

// exemplars returns the suspicious iterations of a thread since its last clear, the newest
// last.
func exemplars(events []suspicious.FlightRecord, name string, since time.Time) (list []prom.Exemplar) {
	for i := range events {
		if e := &events[i]; e.Name == name && e.Time.After(since) {
			list = append(list, prom.Exemplar{
				Iteration: e.Iteration, Record: e.ID, Cycles: uint64(math.Round(e.Micros / 1e6 * e.Hz)), Time: e.Time,
			})
		}
	}
	slices.Reverse(list)
	return list
}

// recorded returns what a document has of a thread.
func recorded(r *ovs.Recorded, stalled bool) *prom.Thread {
	t := &prom.Thread{Main: r.Kind == "main", NUMA: ovs.Unspecified, Core: ovs.Unspecified, Hz: r.Hz, Created: r.Since}
	w := writer{t}
	if r.NUMA != nil {
		t.NUMA = *r.NUMA
	}
	if r.Seconds != nil {
		t.Set(prom.MeasuredSeconds, *r.Seconds)
	}
	if r.Core != nil {
		t.Core = *r.Core
		t.Set(prom.Info, 1, r.Name)
		w.flag(prom.Stalled, &stalled)
	}
	if !t.Main && r.Level == "" {
		return t // a PMD of which nothing is known
	}
	w.flag(prom.Isolated, r.Isolated)
	if !t.Main {
		for l := perf.Basic; l <= perf.Off; l++ {
			on := r.Level == l.String()
			w.flag(prom.Level, &on, l.String())
		}
	}
	if us := r.MaxSleepMicros; us != nil {
		t.Set(prom.MaxSleepSeconds, *us/1e6)
	}
	if r.Hz > 0 {
		t.Set(prom.TSCHertz, r.Hz)
	}
	if !t.Main {
		w.count(prom.ClockBackwards, r.ClockBack)
	}
	if c := r.Iterations; c != nil {
		w.count(prom.Iterations, c.Busy, "busy")
		w.count(prom.Iterations, c.Idle, "idle")
		w.count(prom.Iterations, c.Sleeping, "sleep")
	}
	if c := r.Cycles; c != nil {
		w.count(prom.Cycles, c.Busy, "busy")
		w.count(prom.Cycles, c.Idle, "idle")
		w.count(prom.Cycles, c.Sleep, "sleep")
		w.count(prom.UsedCycles, c.Used)
		w.seconds(prom.SleepSeconds, c.Sleep)
		w.count(prom.RxRingDrops, r.Packets.RxDrops)
	}
	w.packets(r)
	for i := range histograms {
		h := &histograms[i]
		if data, ok := r.Histograms[h.key]; ok {
			t.SetHistogram(h.metric, filled(&data))
		}
	}
	w.gaps(r)
	w.suspicious(r)
	if s := r.Slowest; s != nil {
		w.seconds(prom.LongestIteration, s.Cycles)
	}
	for _, c := range r.Counters {
		w.count(prom.UserEvents, c.Count, c.Name)
	}
	for _, c := range r.Timers {
		w.count(prom.TimerSpans, c.Count, c.Name)
		w.seconds(prom.TimerSeconds, c.Cycles, c.Name)
	}
	w.queues(r)
	return t
}

// writer sets values of a thread.
type writer struct{ *prom.Thread }

func (w writer) count(m prom.Metric, n uint64, labels ...string) {
	w.Set(m, float64(n), labels...)
}

func (w writer) countOf(m prom.Metric, n *uint64, labels ...string) {
	if n != nil {
		w.count(m, *n, labels...)
	}
}

func (w writer) flag(m prom.Metric, on *bool, labels ...string) {
	switch {
	case on == nil:
	case *on:
		w.Set(m, 1, labels...)
	default:
		w.Set(m, 0, labels...)
	}
}

// seconds sets a length in ticks, where their frequency is known.
func (w writer) seconds(m prom.Metric, ticks uint64, labels ...string) {
	if w.Hz > 0 {
		w.Set(m, float64(ticks)/w.Hz, labels...)
	}
}

func (w writer) packets(r *ovs.Recorded) {
	p, d := &r.Packets, &r.Datapath
	w.count(prom.RxPackets, p.Rx)
	w.count(prom.TxPackets, p.Tx)
	w.count(prom.DroppedPackets, p.Drops)
	w.countOf(prom.RxBatches, p.RxBatches)
	w.countOf(prom.FullRxBatches, p.FullBatches)
	w.count(prom.TxBatches, p.TxBatches)
	w.count(prom.DatapathPasses, d.Passes)
	w.count(prom.Recirculations, d.Recirculations)
	w.count(prom.LookupHits, d.PHWOLHits, "phwol")
	w.count(prom.LookupHits, d.MFEXOptHits, "mfex_opt")
	w.count(prom.LookupHits, d.SimpleMatchHits, "simple_match")
	w.count(prom.LookupHits, d.EMCHits, "emc")
	w.count(prom.LookupHits, d.SMCHits, "smc")
	w.count(prom.LookupHits, d.MegaflowHits, "megaflow")
	w.count(prom.SubtableLookups, d.SubtableLookups)
	w.count(prom.Upcalls, d.Upcalls)
	w.count(prom.LostUpcalls, d.LostUpcalls)
}

// histograms are the seven of Open vSwitch, by the title that they have in its texts and
// the key that they have in our documents.
var histograms = [...]struct {
	metric     prom.Metric
	title, key string
}{
	{prom.IterationCycles, "cycles/it", "cycles_per_iteration"},
	{prom.IterationPackets, "packets/it", "packets_per_iteration"},
	{prom.PacketCycles, "cycles/pkt", "cycles_per_packet"},
	{prom.BatchPackets, "pkts/batch", "packets_per_batch"},
	{prom.QueueFillPackets, "max vhost qlen", "queue_fill_per_iteration"},
	{prom.IterationUpcalls, "upcalls/it", "upcalls_per_iteration"},
	{prom.UpcallCycles, "cycles/upcall", "cycles_per_upcall"},
}

func filled(data *ovs.HistogramData) prom.Histogram {
	h := prom.Histogram{Walls: data.Walls, Bins: data.Bins, Sum: float64(data.Sum)}
	if data.Count == 0 {
		h.Fine = []histogram.Bucket{}
	}
	for _, b := range data.Fine {
		h.Fine = append(h.Fine, histogram.Bucket{Lo: b[0], Hi: b[0], Count: b[1]})
	}
	return h
}

func (w writer) gaps(r *ovs.Recorded) {
	for kind, g := range r.Gaps {
		w.count(prom.Cycles, g.Ticks, kind)
		w.count(prom.Gaps, g.Count, kind)
		w.seconds(prom.GapSeconds, g.Ticks, kind)
		longest := uint64(0)
		if g.Max != nil {
			longest = *g.Max
		}
		w.seconds(prom.LongestGap, longest, kind)
	}
	if r.Gaps != nil {
		w.seconds(prom.OverheadSeconds, r.Gaps[history.Accounting.String()].Ticks+r.Gaps[history.Answering.String()].Ticks)
	}
	switch {
	case w.Main || w.Hz == 0:
	case r.Reloads != nil:
		w.SetHistogram(prom.ReloadSeconds, filled(r.Reloads))
	default:
		w.SetHistogram(prom.ReloadSeconds, filled(&ovs.HistogramData{}))
	}
}

func (w writer) suspicious(r *ovs.Recorded) {
	c := r.Suspicious
	if c == nil {
		return
	}
	w.flag(prom.SuspiciousWatched, &c.Watched)
	w.count(prom.SuspiciousTotal, c.Total)
	w.count(prom.SuspiciousMerged, c.Merged)
	w.count(prom.SuspiciousNotCaptured, c.NotCaptured)
	for reason := range suspicious.NumReasons {
		w.count(prom.SuspiciousByReason, c.ByReason[reason.String()], reason.String())
	}
	if c.Reports == nil {
		return
	}
	w.count(prom.SuspiciousReported, c.Reports.Reported)
	w.count(prom.SuspiciousHeldBack, c.Reports.HeldBack)
	for cause := range suspicious.NumCauseKinds {
		w.count(prom.SuspiciousByCause, c.Reports.ByCause[cause.String()], cause.String())
	}
}

func (w writer) queues(r *ovs.Recorded) {
	on := true
	for i := range r.RxQueues {
		q := &r.RxQueues[i]
		id := []string{q.Port, number(q.Queue)}
		w.flag(prom.RxqEnabled, &on, id...)
		w.count(prom.RxqPackets, q.Packets, id...)
		w.countOf(prom.RxqCycles, q.BusyCycles, append(id, "busy")...)
		w.countOf(prom.RxqCycles, q.IdleCycles, append(id, "idle")...)
		w.queue(q, prom.RxqRingSize, prom.RxqSizes, prom.RxqCasts, id)
	}
	for i := range r.TxQueues {
		q := &r.TxQueues[i]
		id := []string{q.Port, number(q.Queue)}
		if q.Sizes != nil {
			w.count(prom.TxqPackets, q.Packets, id...)
		}
		w.queue(q, prom.TxqRingSize, prom.TxqSizes, prom.TxqCasts, id)
	}
	u := r.Usage
	if u == nil {
		return
	}
	for _, q := range u.Queues {
		w.Set(prom.RxqUsage, q.Percent/100, q.Port, strconv.Itoa(q.Queue))
	}
	w.Set(prom.Overhead, u.Overhead/100)
	if u.Seconds != nil {
		w.Set(prom.UsageSeconds, *u.Seconds)
	}
}

// queue sets what rx and tx queues have in common.
func (w writer) queue(q *ovs.QueueData, ring, sizes, casts prom.Metric, id []string) {
	id = slices.Clip(id)
	if q.Size != nil {
		w.Set(ring, float64(*q.Size), id...)
	}
	if q.Sizes == nil {
		return
	}
	for _, c := range q.Sizes.Classes {
		w.count(sizes, c.Count, append(id, c.Bytes)...)
	}
	w.count(casts, q.Sizes.Multicast, append(id, "multicast")...)
	w.count(casts, q.Sizes.Broadcast, append(id, "broadcast")...)
}

func number(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}
