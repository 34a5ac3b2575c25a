package prom

// A Metric is a family of metrics. The names, labels and units of all are in
// docs/metrics.md.
type Metric int

// The metrics that a [Thread] can have. A value's unit is that in the metric's name,
// and what its labels are is in the comment. Those marked with an M are also of the main
// thread, where their name begins with ovs_main_thread instead of ovs_pmd.
const (
	Info     Metric = iota // name
	Level                  // level: one of 1, the others 0
	Stalled                // whether the loop completes no iteration
	TSCHertz               // ticks in a second
	Isolated
	MaxSleepSeconds
	MeasuredSeconds // M; since the last clear

	Iterations // state: busy, idle and, part of these, sleep
	Cycles     // state: busy, idle, sleep, and the kinds of gap
	UsedCycles // busy and idle
	CycleShare // state: busy or idle; of the used cycles, where Cycles are not known
	SleepSeconds

	RxPackets       // M
	TxPackets       // M
	DroppedPackets  // M
	RxRingDrops     //
	RxBatches       //
	FullRxBatches   //
	TxBatches       // M
	DatapathPasses  // M
	Recirculations  // M
	LookupHits      // M; cache: phwol, mfex_opt, simple_match, emc, smc, megaflow
	SubtableLookups // M
	Upcalls         // M; whose flow was installed
	LostUpcalls     // M; whose flow was not

	// The histograms, for SetHistogram. Those of cycles also make one of seconds, where
	// the thread's Hz is known.
	IterationCycles
	IterationPackets
	PacketCycles
	BatchPackets
	QueueFillPackets
	IterationUpcalls
	UpcallCycles
	ReloadSeconds // of values in ticks

	IterationSeconds // made of IterationCycles
	PacketSeconds    // made of PacketCycles
	UpcallSeconds    // made of UpcallCycles

	Gaps             // kind
	GapSeconds       // kind
	LongestGap       // kind
	OverheadSeconds  // the recorder's own work
	LongestIteration // in seconds

	SuspiciousWatched // whether iterations are compared with thresholds now
	SuspiciousTotal
	SuspiciousByReason // reason
	SuspiciousByCause  // cause
	SuspiciousMerged
	SuspiciousNotCaptured
	SuspiciousReported
	SuspiciousHeldBack

	ClockBackwards
	ContextSwitches // kind: voluntary, involuntary
	UserEvents      // event
	TimerSpans      // timer
	TimerSeconds    // timer

	RxqEnabled       // interface, rxq
	RxqUsage         // interface, rxq
	RxqPackets       // interface, rxq
	RxqCycles        // interface, rxq, state: busy or idle
	RxqRingSize      // interface, rxq
	RxqSizes         // interface, rxq, bytes
	RxqCasts         // interface, rxq, to: multicast or broadcast
	TxqPackets       // interface, txq
	TxqRingSize      // interface, txq
	TxqSizes         // interface, txq, bytes
	TxqCasts         // interface, txq, to
	Overhead         // share of time of what is busy, but in no queue
	UsageSeconds     // over which RxqUsage and Overhead were measured
	numMetrics   int = iota
)

// kind is the type of a family.
type kind uint8

const (
	counter kind = iota
	gauge
	cycles  // histogram of ticks in Open vSwitch's bins
	counts  // histogram of small integers in Open vSwitch's bins
	seconds // histogram of durations on the grid
)

// String returns the type as Prometheus names it.
func (k kind) String() string {
	return [...]string{"counter", "gauge", "histogram", "histogram", "histogram"}[k]
}

// family describes a metric.
type family struct {
	name   string // without what it begins with
	kind   kind
	help   string
	labels []string // besides numa and cpu
	main   bool     // whether the main thread has it too
}

// lasting reports whether a metric counts on through a clear, so that the time of the
// clear is not when it was created.
func (m Metric) lasting() bool {
	switch m {
	case SuspiciousReported, SuspiciousHeldBack, SuspiciousByCause, ContextSwitches:
		return true
	}
	return false
}

// What the names of families begin with.
const (
	prefixPMD  = "ovs_pmd_"
	prefixMain = "ovs_main_thread_"
)

func l(labels ...string) []string { return labels }

var families = [numMetrics]family{
	Info:            {"info", gauge, "The PMD thread's name; always 1.", l("name"), false},
	Level:           {"level", gauge, "How much is recorded: 1 for the level in force, 0 for the others.", l("level"), false},
	Stalled:         {"stalled", gauge, "1 while the thread completes no iteration; its other values are then the last known ones.", nil, false},
	TSCHertz:        {"tsc_hertz", gauge, "Cycles in a second of the time stamp counter, as used for all seconds.", nil, false},
	Isolated:        {"cpu_isolated", gauge, "1 if the thread polls only queues that were pinned to it.", nil, false},
	MaxSleepSeconds: {"max_sleep_seconds", gauge, "Longest sleep of the thread in an iteration when it has little to do.", nil, false},
	MeasuredSeconds: {"measured_seconds", gauge, "Time since the last clear, from which on all counters count.", nil, true},

	Iterations:   {"iterations_total", counter, "Iterations of the poll loop: busy ones received or sent packets, idle ones did not. Both may sleep: those that did are counted as sleep besides.", l("state"), false},
	Cycles:       {"cycles_total", counter, "Cycles by what they were spent on; all states together are the time that passed.", l("state"), false},
	UsedCycles:   {"used_cycles_total", counter, "Cycles in iterations, busy and idle, without sleep.", nil, false},
	CycleShare:   {"used_cycles_ratio", gauge, "Share of the used cycles since the last clear, to 0.001, where the exact cycles by state are not known.", l("state"), false},
	SleepSeconds: {"sleep_seconds_total", counter, "Time that the thread slept because it had little to do.", nil, false},

	RxPackets:       {"rx_packets_total", counter, "Packets received.", nil, true},
	TxPackets:       {"tx_packets_total", counter, "Packets sent.", nil, true},
	DroppedPackets:  {"dropped_packets_total", counter, "Packets that the thread dropped or that a transmit queue did not take.", nil, true},
	RxRingDrops:     {"rx_ring_dropped_packets_total", counter, "Packets that rings of receive queues dropped as they were full, where the program reports it.", nil, false},
	RxBatches:       {"rx_batches_total", counter, "Receive batches that were not empty; level detailed only.", nil, false},
	FullRxBatches:   {"full_rx_batches_total", counter, "Receive batches as large as can be, after which the queue may have held more; level detailed only.", nil, false},
	TxBatches:       {"tx_batches_total", counter, "Transmit batches.", nil, true},
	DatapathPasses:  {"datapath_passes_total", counter, "Passes of packets through the datapath: received and recirculated ones.", nil, true},
	Recirculations:  {"recirculations_total", counter, "Further passes of packets through the datapath.", nil, true},
	LookupHits:      {"lookup_hits_total", counter, "Datapath passes whose flow was found, by where it was found.", l("cache"), true},
	SubtableLookups: {"subtable_lookups_total", counter, "Subtables looked into for megaflow hits.", nil, true},
	Upcalls:         {"upcalls_total", counter, "Upcalls whose flow was installed.", nil, true},
	LostUpcalls:     {"lost_upcalls_total", counter, "Upcalls whose flow was not installed; their packets may have been forwarded all the same.", nil, true},

	IterationCycles:  {"iteration_cycles", cycles, "Cycles of an iteration, without sleep.", nil, false},
	IterationPackets: {"iteration_packets", counts, "Packets received in an iteration.", nil, false},
	PacketCycles:     {"packet_cycles", cycles, "Cycles for each packet received, one value for an iteration that received any; level detailed only.", nil, false},
	BatchPackets:     {"batch_packets", counts, "Packets in a receive batch; level detailed only.", nil, false},
	QueueFillPackets: {"queue_fill_packets", counts, "Packets in the fullest receive queue that an iteration found; level detailed only.", nil, false},
	IterationUpcalls: {"iteration_upcalls", counts, "Upcalls in an iteration; level detailed only.", nil, false},
	UpcallCycles:     {"upcall_cycles", cycles, "Cycles of an upcall; level detailed only.", nil, false},
	ReloadSeconds:    {"reload_duration_seconds", seconds, "Time that the thread was parked while its polling configuration changed.", nil, false},
	IterationSeconds: {"iteration_duration_seconds", seconds, "Time of an iteration, without sleep.", nil, false},
	PacketSeconds:    {"packet_duration_seconds", seconds, "Time for each packet received, one value for an iteration that received any; level detailed only.", nil, false},
	UpcallSeconds:    {"upcall_duration_seconds", seconds, "Time of an upcall; level detailed only.", nil, false},

	Gaps:             {"gaps_total", counter, "Spans of time between iterations that belong to none.", l("kind"), false},
	GapSeconds:       {"gap_seconds_total", counter, "Time between iterations that belongs to none.", l("kind"), false},
	LongestGap:       {"longest_gap_seconds", gauge, "Longest gap since the last clear.", l("kind"), false},
	OverheadSeconds:  {"recorder_seconds_total", counter, "Time that the recorder took for itself between iterations.", nil, false},
	LongestIteration: {"longest_iteration_seconds", gauge, "Longest iteration since the last clear, without sleep.", nil, false},

	SuspiciousWatched:     {"suspicious_watched", gauge, "1 if iterations are compared with thresholds.", nil, false},
	SuspiciousTotal:       {"suspicious_iterations_total", counter, "Iterations that exceeded a threshold.", nil, false},
	SuspiciousByReason:    {"suspicious_iterations_by_reason_total", counter, "The same by threshold; one that exceeded several counts for each.", l("reason"), false},
	SuspiciousByCause:     {"suspicious_iterations_by_cause_total", counter, "Suspicious iterations that were reported, by the cause that explains most of their time.", l("cause"), false},
	SuspiciousMerged:      {"suspicious_iterations_merged_total", counter, "Suspicious iterations that were kept in the neighborhood of another, with no report of their own.", nil, false},
	SuspiciousNotCaptured: {"suspicious_iterations_not_captured_total", counter, "Suspicious iterations for which no memory was free.", nil, false},
	SuspiciousReported:    {"suspicious_iterations_reported_total", counter, "Suspicious iterations that were reported to logs and flight records.", nil, false},
	SuspiciousHeldBack:    {"suspicious_iterations_held_back_total", counter, "Suspicious iterations whose report the rate limit held back.", nil, false},

	ClockBackwards:  {"clock_backwards_total", counter, "Times that the clock went backwards and was held.", nil, false},
	ContextSwitches: {"context_switches_total", counter, "Times that the thread's core went to another task: because it waited (voluntary), or in the middle of its work (involuntary).", l("kind"), false},
	UserEvents:      {"user_events_total", counter, "Counters of the program's own.", l("event"), false},
	TimerSpans:      {"timer_spans_total", counter, "Spans that timers of the program's own measured.", l("timer"), false},
	TimerSeconds:    {"timer_seconds_total", counter, "Time of those spans, without nested ones.", l("timer"), false},

	RxqEnabled:   {"rxq_enabled", gauge, "1 if the receive queue is polled.", l("interface", "rxq"), false},
	RxqUsage:     {"rxq_usage_ratio", gauge, "Share of the thread's time that the receive queue took lately.", l("interface", "rxq"), false},
	RxqPackets:   {"rxq_packets_total", counter, "Packets received from the queue.", l("interface", "rxq"), false},
	RxqCycles:    {"rxq_cycles_total", counter, "Cycles of polling the queue: with what its packets took (busy), or in vain (idle).", l("interface", "rxq", "state"), false},
	RxqRingSize:  {"rxq_ring_packets", gauge, "Packets that the receive queue can hold.", l("interface", "rxq"), false},
	RxqSizes:     {"rxq_sized_packets_total", counter, "Packets received by size in bytes; only where the program records sizes.", l("interface", "rxq", "bytes"), false},
	RxqCasts:     {"rxq_cast_packets_total", counter, "Packets received for several; only where the program records sizes.", l("interface", "rxq", "to"), false},
	TxqPackets:   {"txq_packets_total", counter, "Packets sent on the queue; only where the program records sizes.", l("interface", "txq"), false},
	TxqRingSize:  {"txq_ring_packets", gauge, "Packets that the transmit queue can hold.", l("interface", "txq"), false},
	TxqSizes:     {"txq_sized_packets_total", counter, "Packets sent by size in bytes; only where the program records sizes.", l("interface", "txq", "bytes"), false},
	TxqCasts:     {"txq_cast_packets_total", counter, "Packets sent to several; only where the program records sizes.", l("interface", "txq", "to"), false},
	Overhead:     {"overhead_ratio", gauge, "Share of the thread's time lately that was busy, but in no queue.", nil, false},
	UsageSeconds: {"usage_window_seconds", gauge, "Time over which the usage of queues and the overhead are measured.", nil, false},
}
