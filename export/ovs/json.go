package ovs

import (
	"math"
	"time"

	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
)

// DocumentVersion is the version of [Document]'s JSON. Fields may be added without a new
// one; it rises when one changes its meaning or goes away.
const DocumentVersion = 1

// Document is the JSON of one or more snapshots. Encoding it and decoding it again
// gives the same document.
//
// The key of every percentage says of what. Lengths are in ticks, which is also called
// cycles, unless the key says otherwise; tsc_hz turns them into seconds. What was not
// measured, or has no meaning (an average over nothing), is absent rather than null or
// 0. Counts are whole numbers of up to 64 bits.
type Document struct {
	Version int        `json:"version"`
	Threads []Recorded `json:"threads"`
}

// Recorded is the snapshot of one recorder.
type Recorded struct {
	Kind  string `json:"kind"` // "pmd" or "main"
	Name  string `json:"name"`
	Core  *int   `json:"core,omitempty"`
	NUMA  *int   `json:"numa,omitempty"`
	Level string `json:"level"` // "off", "basic" or "detailed"
	State string `json:"state"` // "running", "parked" or "closed"

	Isolated       *bool    `json:"isolated,omitempty"`
	MaxSleepMicros *float64 `json:"max_sleep_us,omitempty"`

	Hz        float64   `json:"tsc_hz,omitzero"`
	Time      time.Time `json:"time,omitzero"`  // of the snapshot, UTC
	Since     time.Time `json:"since,omitzero"` // of the last clear, UTC
	Seconds   *float64  `json:"seconds,omitempty"`
	SinceTick uint64    `json:"since_tick"`
	UntilTick uint64    `json:"until_tick"` // end of the last pass: all up to it is accounted for
	NowTick   uint64    `json:"now_tick"`
	ClockBack uint64    `json:"clock_went_back"` // how often the clock did

	Iterations *IterationCounts `json:"iterations,omitempty"` // PMDs only
	Cycles     *CycleSums       `json:"cycles,omitempty"`     // PMDs only
	Packets    PacketCounts     `json:"packets"`
	Datapath   DatapathCounts   `json:"datapath"`
	Derived    Derived          `json:"derived"`

	Counters []NamedCount `json:"counters,omitempty"` // the program's own
	Timers   []TimerSums  `json:"timers,omitempty"`   // the program's own

	// Histograms by metric, those that were recorded: "cycles_per_iteration" and so on.
	Histograms map[string]HistogramData `json:"histograms,omitempty"`
	// Gaps are the times between passes by kind: "reload" and so on.
	Gaps    map[string]GapSums `json:"gaps,omitempty"`
	Reloads *HistogramData     `json:"reload_spans,omitempty"` // lengths of the reloads

	Slowest    *IterationRow     `json:"slowest_iteration,omitempty"`
	Suspicious *SuspiciousCounts `json:"suspicious_iterations,omitempty"` // PMDs only

	RxQueues []QueueData `json:"rx_queues,omitempty"`
	TxQueues []QueueData `json:"tx_queues,omitempty"`
	Gone     *QueueData  `json:"rx_queues_gone,omitempty"` // sum of queues no longer polled
	Usage    *UsageData  `json:"usage,omitempty"`

	IterationHistory   []IterationRow   `json:"iteration_history,omitempty"`   // newest first
	MillisecondHistory []MillisecondRow `json:"millisecond_history,omitempty"` // newest first
}

// IterationCounts count passes.
type IterationCounts struct {
	Total    uint64 `json:"total"`
	Idle     uint64 `json:"idle"` // neither received nor sent
	Busy     uint64 `json:"busy"`
	Sleeping uint64 `json:"sleeping"` // slept
	Detailed uint64 `json:"detailed"` // recorded in detail
}

// CycleSums say what the time from since_tick to until_tick was spent on, exactly:
// Wall = Used + Sleep + Gaps, Used = Idle + Busy.
type CycleSums struct {
	Wall   uint64  `json:"wall"`
	Used   uint64  `json:"used"` // in passes
	Idle   uint64  `json:"idle"` // in passes that neither received nor sent
	Busy   uint64  `json:"busy"`
	Sleep  uint64  `json:"sleep"`
	Gaps   uint64  `json:"gaps"`             // between passes
	Upcall *uint64 `json:"upcall,omitempty"` // part of Used; recorded in detail only
}

// SuspiciousCounts count the iterations that exceeded a threshold.
type SuspiciousCounts struct {
	Watched     bool              `json:"watched"` // whether iterations are compared with thresholds now
	Total       uint64            `json:"total"`
	Merged      uint64            `json:"merged"`              // of them, in the neighborhood of another
	NotCaptured uint64            `json:"not_captured"`        // of them, no memory was free for
	ByReason    map[string]uint64 `json:"by_reason,omitempty"` // one counts for each of its reasons
	Reports     *ReportCounts     `json:"reports,omitempty"`   // only where Options.Reports tells
}

// ReportCounts say what became of the reports of suspicious iterations. A clear does not
// affect them.
type ReportCounts struct {
	Reported uint64            `json:"reported"`
	HeldBack uint64            `json:"held_back"`          // by the rate limit
	ByCause  map[string]uint64 `json:"by_cause,omitempty"` // those reported, by their main cause
}

func reportCounts(c suspicious.ReportCounts) *ReportCounts {
	data := &ReportCounts{Reported: c.Reported, HeldBack: c.HeldBack}
	for k, n := range c.Causes {
		if n > 0 {
			if data.ByCause == nil {
				data.ByCause = make(map[string]uint64)
			}
			data.ByCause[suspicious.CauseKind(k).String()] = n
		}
	}
	return data
}

// suspiciousCounts names the reasons that there were.
func suspiciousCounts(s *perf.Snapshot) *SuspiciousCounts {
	c := &s.Suspicious
	data := &SuspiciousCounts{Watched: s.Suspicion.On, Total: c.Iterations, Merged: c.Merged, NotCaptured: c.NotCaptured}
	for r, n := range c.ByReason {
		if n > 0 {
			if data.ByReason == nil {
				data.ByReason = make(map[string]uint64)
			}
			data.ByReason[suspicious.Reason(r).String()] = n
		}
	}
	return data
}

// PacketCounts count packets and batches.
type PacketCounts struct {
	Rx          uint64  `json:"rx"`
	Tx          uint64  `json:"tx"`
	Drops       uint64  `json:"drops"`    // as the program reported them
	RxDrops     uint64  `json:"rx_drops"` // of rings of rx queues that were full, likewise; not among Rx
	TxBatches   uint64  `json:"tx_batches"`
	RxBatches   *uint64 `json:"rx_batches,omitempty"`   // recorded in detail only
	FullBatches *uint64 `json:"full_batches,omitempty"` // as large as can be; recorded in detail only
}

// DatapathCounts count what became of packets in the pipeline.
type DatapathCounts struct {
	Passes          uint64 `json:"passes"` // received + recirculated
	Recirculations  uint64 `json:"recirculations"`
	PHWOLHits       uint64 `json:"phwol_hits"`
	MFEXOptHits     uint64 `json:"mfex_opt_hits"`
	SimpleMatchHits uint64 `json:"simple_match_hits"`
	EMCHits         uint64 `json:"emc_hits"`
	SMCHits         uint64 `json:"smc_hits"`
	MegaflowHits    uint64 `json:"megaflow_hits"`
	SubtableLookups uint64 `json:"subtable_lookups"`
	Upcalls         uint64 `json:"upcalls"`      // whose flow was installed
	LostUpcalls     uint64 `json:"lost_upcalls"` // whose flow was not; their packets may have been forwarded
}

// Derived are the figures that pmd-perf-show prints in parentheses.
type Derived struct {
	MicrosPerIteration *float64 `json:"us_per_iteration,omitempty"`
	UsedPercent        *float64 `json:"used_percent_of_total_cycles,omitempty"`
	IdlePercent        *float64 `json:"idle_percent_of_used_cycles,omitempty"`
	BusyPercent        *float64 `json:"busy_percent_of_used_cycles,omitempty"`
	SleepPercent       *float64 `json:"sleeping_percent_of_iterations,omitempty"`
	SleepMicros        *float64 `json:"sleep_us,omitempty"`
	MicrosPerSleep     *float64 `json:"us_per_sleeping_iteration,omitempty"`
	RxPerSecond        *float64 `json:"rx_packets_per_second,omitempty"`
	TxPerSecond        *float64 `json:"tx_packets_per_second,omitempty"`
	CyclesPerPacket    *float64 `json:"busy_cycles_per_rx_packet,omitempty"`
	PassesPerPacket    *float64 `json:"datapath_passes_per_rx_packet,omitempty"`
	LookupsPerHit      *float64 `json:"subtable_lookups_per_megaflow_hit,omitempty"`
	CyclesPerUpcall    *float64 `json:"cycles_per_upcall,omitempty"`
	MicrosPerUpcall    *float64 `json:"us_per_upcall,omitempty"`
	PacketsPerTxBatch  *float64 `json:"packets_per_tx_batch,omitempty"`
}

// NamedCount is a counter of the program's own.
type NamedCount struct {
	Name  string `json:"name"`
	Count uint64 `json:"count"`
}

// TimerSums sum up the spans of a timer of the program's own.
type TimerSums struct {
	Name         string  `json:"name"`
	Count        uint64  `json:"count"`
	Cycles       uint64  `json:"cycles"`
	Max          *uint64 `json:"max_cycles,omitempty"`
	MaxIteration *uint64 `json:"max_iteration,omitempty"`
}

// HistogramData is a histogram: Bins[i] counts the values above Walls[i-1] and up to
// Walls[i], the last one those above all walls. Count, Sum and Max are exact;
// percentiles are at most 1/128 too high.
type HistogramData struct {
	Walls       []uint64     `json:"walls,omitempty"` // inclusive upper bounds
	Bins        []uint64     `json:"bins,omitempty"`
	Count       uint64       `json:"count"`
	Sum         uint64       `json:"sum"`
	Mean        *float64     `json:"mean,omitempty"`
	Max         *uint64      `json:"max,omitempty"`
	Percentiles []Percentile `json:"percentiles,omitempty"`
	// Fine are narrow ranges of values, each at most 1/128 wide, in rising order: the
	// largest value of a range, and how many fell into it. Empty ranges are left out.
	// Only where Options.Fine asks for them.
	Fine [][2]uint64 `json:"fine,omitempty"`
}

// Percentile says that so many percent of the values are not larger than Value.
type Percentile struct {
	Percent float64 `json:"percent"`
	Value   uint64  `json:"value"`
}

// GapSums sum up the gaps of one kind.
type GapSums struct {
	Count uint64    `json:"count"`
	Ticks uint64    `json:"ticks"`
	Min   *uint64   `json:"min_ticks,omitempty"`
	Mean  *float64  `json:"mean_ticks,omitempty"`
	Max   *uint64   `json:"max_ticks,omitempty"`
	MaxAt time.Time `json:"max_at,omitzero"` // when the longest ended, UTC
}

// QueueData is one queue, or a sum of several.
type QueueData struct {
	Port       string     `json:"port,omitempty"`
	Queue      *int       `json:"queue,omitempty"`
	Size       *int       `json:"ring_size,omitempty"`
	Packets    uint64     `json:"packets"`
	BusyCycles *uint64    `json:"busy_cycles,omitempty"` // rx: polls that found packets, and their processing
	IdleCycles *uint64    `json:"idle_cycles,omitempty"` // rx: empty polls
	Sizes      *SizesData `json:"sizes,omitempty"`
}

// SizesData counts packets by size and destination.
type SizesData struct {
	Classes   []SizeClass `json:"classes"`
	Multicast uint64      `json:"multicast"`
	Broadcast uint64      `json:"broadcast"`
}

// SizeClass counts the packets of so many bytes.
type SizeClass struct {
	Bytes string `json:"bytes"` // "65-127"
	Count uint64 `json:"count"`
}

// UsageData says what the last Seconds were spent on. The percentages of Queues,
// Overhead, Idle, Sleep and Gaps add up to 100.
type UsageData struct {
	Seconds  *float64     `json:"seconds,omitempty"`
	Ticks    uint64       `json:"ticks"`
	Queues   []QueueUsage `json:"queues,omitempty"`
	Overhead float64      `json:"overhead_percent_of_all_cycles"` // busy, but not in a queue
	Idle     float64      `json:"idle_percent_of_all_cycles"`
	Sleep    float64      `json:"sleep_percent_of_all_cycles"`
	Gaps     float64      `json:"gaps_percent_of_all_cycles"`
}

// QueueUsage is what one rx queue took of the time.
type QueueUsage struct {
	Port    string  `json:"port"`
	Queue   int     `json:"queue"`
	Percent float64 `json:"busy_percent_of_all_cycles"`
}

// IterationRow is one pass.
type IterationRow struct {
	Iteration uint64    `json:"iteration"`
	Time      time.Time `json:"time,omitzero"` // at its end, UTC
	EndTick   uint64    `json:"end_tick"`
	Cycles    uint64    `json:"cycles"`
	Sleep     uint64    `json:"sleep_cycles"`
	Rx        uint64    `json:"rx"`
	Tx        uint64    `json:"tx"`
	Drops     uint64    `json:"drops"`

	// Recorded in detail only.
	Batches      *uint64 `json:"rx_batches,omitempty"`
	FullBatches  *uint64 `json:"full_batches,omitempty"`
	Fill         *uint64 `json:"queue_fill,omitempty"` // highest of all rx queues
	Upcalls      *uint64 `json:"upcalls,omitempty"`
	UpcallCycles *uint64 `json:"upcall_cycles,omitempty"`

	SlowestPort  string   `json:"slowest_rx_port,omitempty"`
	SlowestQueue *int     `json:"slowest_rx_queue,omitempty"`
	After        []string `json:"after,omitempty"` // kinds of gap between the pass before and this one
	ClockBack    bool     `json:"clock_went_back,omitempty"`
}

// MillisecondRow sums up the passes of about a millisecond.
type MillisecondRow struct {
	Time         time.Time `json:"time,omitzero"` // at its end, UTC
	EndTick      uint64    `json:"end_tick"`
	Ticks        uint64    `json:"ticks"` // how long it really lasted: Cycles + Sleep + Gaps
	Cycles       uint64    `json:"cycles"`
	BusyCycles   uint64    `json:"busy_cycles"`
	Sleep        uint64    `json:"sleep_cycles"`
	Gaps         uint64    `json:"gap_cycles"`
	Iterations   uint64    `json:"iterations"`
	Busy         uint64    `json:"busy_iterations"`
	Rx           uint64    `json:"rx"`
	Tx           uint64    `json:"tx"`
	Drops        uint64    `json:"drops"`
	RxPerSecond  *float64  `json:"rx_packets_per_second,omitempty"`
	Batches      uint64    `json:"rx_batches"`
	Upcalls      uint64    `json:"upcalls"`
	UpcallCycles uint64    `json:"upcall_cycles"`
	SumFill      uint64    `json:"sum_queue_fill"` // over the passes
	MaxFill      uint64    `json:"max_queue_fill"`
}

// NewDocument returns the document of the snapshots that the options select. The main
// thread is always among them, unless Cores are given.
func NewDocument(snaps []*perf.Snapshot, o Options) *Document {
	d := &Document{Version: DocumentVersion, Threads: []Recorded{}}
	for _, s := range o.pmds(snaps, true) {
		d.Threads = append(d.Threads, recorded(s, &o))
	}
	return d
}

func recorded(s *perf.Snapshot, o *Options) Recorded {
	f, t := exactFigures(s), &s.Totals
	detailed := t.DetailIterations > 0
	ok, lost := s.Counts[perf.UpcallsOK], s.Counts[perf.UpcallsLost]
	r := Recorded{
		Kind:      "main",
		Name:      s.Name,
		Level:     s.Level.String(),
		State:     s.State.String(),
		Seconds:   known(f.seconds),
		SinceTick: s.Since,
		UntilTick: s.Until,
		NowTick:   s.Now,
		ClockBack: s.ClockBack,
		Packets:   PacketCounts{Rx: t.RxPackets, Tx: t.TxPackets, Drops: t.Drops, RxDrops: t.RxDrops, TxBatches: s.Counts[perf.TxBatches]},
		Datapath: DatapathCounts{
			Passes:          s.DatapathPasses(),
			Recirculations:  s.Counts[perf.Recirc],
			PHWOLHits:       s.Counts[perf.PHWOLHit],
			MFEXOptHits:     s.Counts[perf.MFEXOptHit],
			SimpleMatchHits: s.Counts[perf.SimpleHit],
			EMCHits:         s.Counts[perf.EMCHit],
			SMCHits:         s.Counts[perf.SMCHit],
			MegaflowHits:    s.Counts[perf.MegaflowHit],
			SubtableLookups: s.Counts[perf.SubtableLooks],
			Upcalls:         ok,
			LostUpcalls:     lost,
		},
		Derived: Derived{
			RxPerSecond:       known(f.perSecond(t.RxPackets)),
			TxPerSecond:       known(f.perSecond(t.TxPackets)),
			PassesPerPacket:   known(f.passesPerPacket()),
			LookupsPerHit:     known(f.lookupsPerHit()),
			PacketsPerTxBatch: known(f.packetsPerTxBatch()),
		},
	}
	r.Hz, _ = frequency(s)
	r.Time, _ = wallClock(s, s.Now)
	if r.Since, _ = wallClock(s, s.Since); !s.Cleared.IsZero() {
		r.Since = s.Cleared.UTC() // the same to the nanosecond until the next clear
	}
	for _, c := range s.Counters {
		r.Counters = append(r.Counters, NamedCount(c))
	}
	if s.Kind != perf.PMD {
		return r
	}

	r.Kind = "pmd"
	r.Core, r.NUMA, r.Isolated = new(s.Core), new(s.NUMA), new(s.Isolated)
	r.MaxSleepMicros = new(float64(s.MaxSleep) / float64(time.Microsecond))
	r.Suspicious = suspiciousCounts(s)
	if o.Reports != nil {
		r.Suspicious.Reports = reportCounts(o.Reports(s.Name))
	}
	r.Iterations = &IterationCounts{t.Iterations, t.IdleIterations(), t.BusyIterations, t.SleepIterations, t.DetailIterations}
	r.Cycles = &CycleSums{Wall: s.Wall(), Used: t.Cycles, Idle: t.IdleCycles(), Busy: t.BusyCycles, Sleep: t.Sleep}
	d := &r.Derived
	d.MicrosPerIteration = known(f.usPerIteration())
	d.UsedPercent = known(f.usedPercent())
	d.IdlePercent, d.BusyPercent = known(f.idlePercent()), known(f.busyPercent())
	d.SleepPercent = known(f.sleepPercent())
	d.SleepMicros, d.MicrosPerSleep = known(f.sleepMicros()), known(f.microsPerSleep())
	d.CyclesPerPacket = known(f.cyclesPerPacket())
	if detailed {
		r.Cycles.Upcall = new(t.UpcallCycles)
		r.Packets.RxBatches, r.Packets.FullBatches = new(t.RxBatches), new(t.FullBatches)
		d.CyclesPerUpcall = known(f.cyclesPerUpcall())
		d.MicrosPerUpcall = known(f.cyclesPerUpcall() * f.usPerCycle)
	}
	for _, timer := range s.Timers {
		data := TimerSums{Name: timer.Name, Count: timer.Count, Cycles: timer.Cycles}
		if timer.Count > 0 {
			data.Max, data.MaxIteration = new(timer.Max), new(timer.MaxIteration)
		}
		r.Timers = append(r.Timers, data)
	}
	r.histograms(s, detailed, o.Fine)
	r.gaps(s, o.Fine)
	if t.Iterations > 0 {
		// Of reloads only the longest's time is known, which is enough if it is the
		// only one.
		reload := &s.Gaps[history.Reload]
		reloaded := reload.Count > 1 || reload.Count == 1 && reload.MaxAt > s.Slowest.Start()
		row := iterationRow(s, s.SlowestIteration, &s.Slowest, reloaded)
		r.Slowest = &row
	}
	for i := range s.RxQueues {
		r.RxQueues = append(r.RxQueues, rxQueueData(&s.RxQueues[i]))
	}
	for i := range s.TxQueues {
		r.TxQueues = append(r.TxQueues, queueData(&s.TxQueues[i]))
	}
	if s.Gone != (perf.QueueStats{}) {
		gone := rxQueueData(&s.Gone)
		gone.Queue = nil
		r.Gone = &gone
	}
	r.Usage = usageData(s)
	reloaded := false
	for i := len(s.Iterations) - 1; i >= 0 && len(r.IterationHistory) < o.Iterations; i-- {
		rec := &s.Iterations[i]
		r.IterationHistory = append(r.IterationHistory, iterationRow(s, s.FirstIteration()+uint64(i), rec, reloaded))
		reloaded = reloaded || rec.Flags.After(history.Reload)
	}
	for i := len(s.Millis) - 1; i >= 0 && len(r.MillisecondHistory) < o.Milliseconds; i-- {
		r.MillisecondHistory = append(r.MillisecondHistory, millisecondRow(s, &s.Millis[i]))
	}
	return r
}

// metricKey returns the name of a histogram in JSON.
func metricKey(m histogram.Metric) string {
	return [histogram.NumMetrics]string{"cycles_per_iteration", "packets_per_iteration",
		"cycles_per_packet", "packets_per_batch", "queue_fill_per_iteration",
		"upcalls_per_iteration", "cycles_per_upcall"}[m]
}

func (r *Recorded) histograms(s *perf.Snapshot, detailed, fine bool) {
	if s.Totals.Iterations == 0 {
		return
	}
	r.Histograms = make(map[string]HistogramData)
	for m := range histogram.NumMetrics {
		if m > histogram.PacketsPerIteration && !detailed {
			continue
		}
		h, bins := ovsHistogram(s, m)
		walls := m.Walls()
		data := histogramData(h, fine)
		data.Walls, data.Bins = walls[:], bins[:]
		r.Histograms[metricKey(m)] = data
	}
}

func histogramData(h samples, fine bool) HistogramData {
	data := HistogramData{Count: h.Count(), Sum: h.Sum(), Mean: known(mean(h))}
	if data.Count == 0 {
		return data
	}
	data.Max = new(h.Max())
	for _, p := range []float64{50, 90, 95, 99, 99.9, 99.99, 99.999} {
		data.Percentiles = append(data.Percentiles, Percentile{p, h.Quantile(p / 100)})
	}
	if fine {
		for b := range h.Buckets() {
			data.Fine = append(data.Fine, [2]uint64{b.Hi, b.Count})
		}
	}
	return data
}

func (r *Recorded) gaps(s *perf.Snapshot, fine bool) {
	r.Gaps = make(map[string]GapSums)
	for g := range history.NumGaps {
		sums := &s.Gaps[g]
		r.Cycles.Gaps += sums.Ticks
		data := GapSums{Count: sums.Count, Ticks: sums.Ticks}
		if sums.Count > 0 {
			data.Min, data.Max = new(sums.Min), new(sums.Max)
			data.Mean = known(ratio(float64(sums.Ticks), float64(sums.Count)))
			data.MaxAt, _ = wallClock(s, sums.MaxAt)
		}
		r.Gaps[g.String()] = data
	}
	if s.Gaps[history.Reload].Count > 0 {
		data := histogramData(&s.Reloads, fine)
		r.Reloads = &data
	}
}

func queueData(q *perf.QueueStats) QueueData {
	data := QueueData{Port: q.Port, Queue: new(q.ID), Packets: q.Packets}
	if q.Size > 0 {
		data.Size = new(q.Size)
	}
	if q.Sizes != (perf.Sizes{}) {
		data.Sizes = &SizesData{Multicast: q.Sizes.Multicast, Broadcast: q.Sizes.Broadcast}
		for i, n := range q.Sizes.Classes {
			data.Sizes.Classes = append(data.Sizes.Classes, SizeClass{perf.SizeNames[i], n})
		}
	}
	return data
}

func rxQueueData(q *perf.QueueStats) QueueData {
	data := queueData(q)
	data.BusyCycles, data.IdleCycles = new(q.BusyCycles), new(q.IdleCycles)
	return data
}

func usageData(s *perf.Snapshot) *UsageData {
	u := usageOver(s, UsageSeconds(0))
	if u.Ticks == 0 {
		return nil
	}
	data := &UsageData{
		Ticks: u.Ticks,
		Idle:  percent(u.Idle, u.Ticks),
		Sleep: percent(u.Sleep, u.Ticks),
		Gaps:  percent(u.Gap, u.Ticks),
	}
	if hz, ok := frequency(s); ok {
		data.Seconds = new(float64(u.Ticks) / hz)
	}
	overhead := u.Busy
	for i := range s.RxQueues {
		q := &s.RxQueues[i]
		data.Queues = append(data.Queues, QueueUsage{q.Port, q.ID, percent(u.Queues[i], u.Ticks)})
		overhead -= min(overhead, u.Queues[i])
	}
	data.Overhead = percent(overhead, u.Ticks)
	return data
}

// iterationRow returns a record's row; the queue in it is named only if there was no
// reload since.
func iterationRow(s *perf.Snapshot, number uint64, rec *history.Record, reloaded bool) IterationRow {
	row := IterationRow{
		Iteration: number,
		EndTick:   rec.End,
		Cycles:    rec.Cycles,
		Sleep:     rec.Sleep,
		Rx:        uint64(rec.Rx),
		Tx:        uint64(rec.Tx),
		Drops:     uint64(rec.Drops),
		ClockBack: rec.Flags&history.ClockBack != 0,
	}
	row.Time, _ = wallClock(s, rec.End)
	if rec.Flags&history.Detailed != 0 {
		row.Batches, row.FullBatches = new(uint64(rec.Batches)), new(uint64(rec.Full))
		row.Fill = new(uint64(rec.Fill))
		row.Upcalls, row.UpcallCycles = new(uint64(rec.Upcalls)), new(rec.UpcallCycles)
	}
	if i, ok := rec.Flags.Queue(); ok && !reloaded && i < len(s.RxQueues) {
		row.SlowestPort, row.SlowestQueue = s.RxQueues[i].Port, new(s.RxQueues[i].ID)
	}
	for g := range history.NumGaps {
		if rec.Flags.After(g) {
			row.After = append(row.After, g.String())
		}
	}
	return row
}

func millisecondRow(s *perf.Snapshot, m *history.Milli) MillisecondRow {
	row := MillisecondRow{
		EndTick:      m.End,
		Ticks:        m.Duration,
		Cycles:       m.Cycles,
		BusyCycles:   m.BusyCycles,
		Sleep:        m.Sleep,
		Gaps:         m.Gap,
		Iterations:   uint64(m.Iterations),
		Busy:         uint64(m.BusyIterations),
		Rx:           uint64(m.Rx),
		Tx:           uint64(m.Tx),
		Drops:        uint64(m.Drops),
		Batches:      uint64(m.Batches),
		Upcalls:      uint64(m.Upcalls),
		UpcallCycles: m.UpcallCycles,
		SumFill:      m.SumFill,
		MaxFill:      uint64(m.MaxFill),
	}
	row.Time, _ = wallClock(s, m.End)
	if hz, ok := frequency(s); ok {
		row.RxPerSecond = known(ratio(float64(m.Rx), float64(m.Duration)/hz))
	}
	return row
}

// known returns a pointer to v, or nil if v has no meaning.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
