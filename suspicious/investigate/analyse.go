package investigate

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/ovslog"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Lengths that decide how a stall is looked at, in us.
const (
	// Shorter stalls may be noise: interrupts, cold caches.
	shortStall = 500
	// A scheduler gives a task that competes for a CPU 3 ms or more at a time (Linux's
	// sched_min_granularity with 2 CPUs and more).
	slice = 3000
	// So long no scheduler lets a task wait for one other.
	stopped = 50_000
	// A length or a frequency that no clock has.
	minHz, maxHz = 1e6, 1e11
)

// few is how many stalls are too few to tell a pattern.
const few = 3

// sums are what is known of a thread when everything has been read.
type sums struct {
	hz        float64 // 0 if not known
	badClock  bool
	usual     [numClasses]uint64 // median cycles of iterations that were not reported
	perPacket uint64             // median
	perUpcall uint64             // median
	perKind   map[Kind]*kindSum  // stalls
	unmarked  uint64             // stalls without a report of their own
	stalled   float64            // us
	longest   float64            // us
	before    beforeSums         // rows before stalls
	vhost     bool               // the fill is that of vhost queues
	capacity  uint64             // of the rx queues, 0 if not known
	rate      float64            // packets per second; 0 if none, negative if not known
	shown     bool               // the rate is from a show text
	shorts    [numClasses]uint64 // stalls shorter than big
	bigs      uint64             // others
	biggest   float64
}

type kindSum struct {
	count uint64
	lost  float64 // us
	rest  uint64  // of count, those that are not in Result.Stalls
}

// beforeSums sum up the iterations just before stalls.
type beforeSums struct {
	rows, busy, full uint64
	packets          uint64
	cycles           uint64
}

// An analysis is under way.
type analysis struct {
	c       *Case
	r       *Result
	threads []*thread
	stalls  []*kept // in the order of r.Stalls
	shorter float64 // threshold in us; +Inf if none

	groups   [][]*kept // stalls at the same instant
	commonBy float64   // how many chance would make
}

// Result says what follows from the evidence. The case is closed then: nothing can be
// added any more.
func (c *Case) Result() *Result {
	a := &analysis{c: c, threads: c.sorted(), r: &Result{
		Version: ResultVersion, From: c.span.from, To: c.span.to, Sources: c.sources,
		Findings: []Finding{}, PMDs: []PMD{}, Stalls: []Stall{}, Thresholds: []Threshold{},
	}}
	for _, t := range a.threads {
		t.flush()
	}
	for _, item := range c.heap {
		c.kept = append(c.kept, item.kept)
	}
	c.merge()
	a.clocks()
	a.thresholds()
	a.sums()
	a.sort()
	a.pick()
	for _, t := range a.threads {
		t.arrival(c.shown)
	}
	a.kinds()
	a.order()
	a.r.Measured = c.shown
	a.r.Notes = c.notes
	slices.SortStableFunc(a.r.Notes, func(x, y Note) int { return x.Time.Compare(y.Time) })
	a.pmds()
	a.counters()
	a.findings()
	return a.r
}

// merge puts reports and rows of the same iterations together that came so far apart that
// they were booked as two.
func (c *Case) merge() {
	type key struct {
		t         *thread
		epoch     int
		iteration uint64
	}
	of := func(k *kept) key { return key{k.thread, k.at.epoch, k.row.Iteration} }
	headers := make(map[key]*kept)
	for _, k := range c.kept {
		if k.has == hasHeader {
			headers[of(k)] = k
		}
	}
	if len(headers) == 0 {
		return
	}
	c.kept = slices.DeleteFunc(c.kept, func(k *kept) bool {
		h := headers[of(k)]
		if h == nil || k.has != hasRow {
			return false
		}
		h.has |= hasRow
		h.row, h.hood = k.row, k.hood
		h.class = h.slot.class()
		if h.head.more == nil {
			h.thread.frequency(h.head.us, h.row.Cycles)
		}
		return true
	})
}

// clocks finds the frequency of each thread's clock: its own, or the one logged, or that
// of any other thread.
func (a *analysis) clocks() {
	any := 0.0
	for _, t := range a.threads {
		if t.hzFrom > 0 {
			t.hz = (t.hzLow + t.hzHigh) / 2
			// A logged frequency is exact, if it can be this thread's.
			if hz := float64(a.c.khz) * 1e3; hz > 0 && hz >= t.hzLow-5e5 && hz <= t.hzHigh+5e5 {
				t.hz = hz
			}
			if any == 0 {
				any = t.hz
			}
		}
	}
	if a.c.khz > 0 && float64(a.c.khz)*1e3 >= minHz {
		any = float64(a.c.khz) * 1e3
	}
	for _, t := range a.threads {
		switch {
		case t.hzFrom > 0:
		case t.absurd > 0:
			t.badClock, t.hz = true, t.absurdHz
		default:
			t.hz = any
			// Without a table only the length itself can be absurd.
			if total := a.c.span.micros(); any == 0 && total > 0 && t.minByCycles > 60e6+10*total {
				t.badClock = true
			}
		}
	}
}

// thresholds finds out above which length an iteration is a stall.
func (a *analysis) thresholds() {
	a.r.Thresholds = slices.Clone(a.c.set)
	slices.SortStableFunc(a.r.Thresholds, func(x, y Threshold) int { return x.Time.Compare(y.Time) })
	a.shorter = math.Inf(1)
	for i := range a.r.Thresholds {
		if s := &a.r.Thresholds[i]; s.On {
			a.shorter = min(a.shorter, float64(s.Micros))
		}
	}
	least := math.Inf(1)
	for _, t := range a.threads {
		if t.minByCycles > 0 && !t.badClock {
			least = min(least, t.minByCycles)
		}
	}
	if least < a.shorter {
		a.shorter = least
		a.r.Thresholds = slices.Insert(a.r.Thresholds, 0, Threshold{On: true, Micros: uint64(least), Inferred: true})
	}
	if a.r.Thresholds == nil {
		a.r.Thresholds = []Threshold{}
	}
}

// micros returns the length of an iteration in us, as it was reported or else from its
// cycles, 0 if it can't be known.
func (t *thread) micros(s *slot) float64 {
	switch {
	case s.has&hasHeader != 0:
		return s.head.us
	case t.hz > 0:
		return float64(s.row.Cycles) / t.hz * 1e6
	}
	return 0
}

func quantile(h *histogram.Fine, q float64) uint64 {
	if h == nil || h.Count() == 0 {
		return 0
	}
	return h.Quantile(q)
}

// usualMicros returns how long the iterations of a class usually take.
func (t *thread) usualMicros(c class) float64 {
	if t.hz == 0 {
		return 0
	}
	v := t.usual[c]
	if v == 0 && c != packets { // what there is
		v = max(t.usual[idle], t.usual[packets])
	}
	return float64(v) / t.hz * 1e6
}

// big is how long a stall must be to be no noise.
func (t *thread) big() float64 {
	return max(shortStall, 10*t.usualMicros(packets))
}

func (a *analysis) sums() {
	for _, t := range a.threads {
		for c := range numClasses {
			if h := t.cycles[c]; h != nil && h.Count() > few {
				t.usual[c] = h.Quantile(0.5)
			}
		}
		t.perPacket = quantile(t.cpp, 0.5)
		t.perUpcall = quantile(t.cpu, 0.5)
		t.perKind = make(map[Kind]*kindSum)
		t.vhost = !t.ours && t.fill.any > 0
	}
}

// pick takes the stalls out of what was kept.
func (a *analysis) pick() {
	for _, k := range a.c.kept {
		t := k.thread
		us := t.micros(&k.slot)
		if k.has&hasHeader == 0 && (t.badClock || us < a.shorter) {
			continue
		}
		a.stalls = append(a.stalls, k)
		if k.has&hasHeader == 0 {
			t.unmarked++
		}
		if t.badClock || k.absurd() {
			continue
		}
		t.note(k.class, us, 1)
		if k.more() != nil && k.more().capacity > 0 {
			t.capacity = k.more().capacity
		}
		if k.has&hasHeader != 0 && k.hood != nil {
			t.before.see(k)
		}
	}
	for _, t := range a.threads {
		t.eachRest(a.shorter, func(c class, us float64, n uint64, unmarked bool) {
			a.r.LeftOut += n
			if unmarked {
				t.unmarked += n
			}
			t.note(c, us, n)
		})
	}
}

// note counts stalls of one length.
func (t *thread) note(c class, us float64, n uint64) {
	if c == fullOnly {
		return
	}
	t.stalled += us * float64(n)
	t.longest = max(t.longest, us)
	if us >= t.big() {
		if c != upcalls {
			t.bigs += n
			t.biggest = max(t.biggest, us)
		}
	} else {
		t.shorts[c] += n
	}
}

// eachRest calls f for the stalls that were not kept, in steps of less than a percent.
func (t *thread) eachRest(shorter float64, f func(c class, us float64, n uint64, unmarked bool)) {
	for c := range numClasses {
		if h := t.restUs[c]; h != nil {
			for b := range h.Buckets() {
				f(c, float64(b.Lo)/2+float64(b.Hi)/2, b.Count, false)
			}
		}
		if h := t.restCycles[c]; h != nil && t.hz > 0 && !t.badClock {
			for b := range h.Buckets() {
				if us := float64(b.Lo) / t.hz * 1e6; us >= shorter {
					f(c, us, b.Count, true)
				}
			}
		}
	}
}

// see sums up the rows older than the stall that are none themselves.
func (b *beforeSums) see(k *kept) {
	for i := range k.hood.rows {
		row := &k.hood.rows[i]
		if row.Iteration >= k.row.Iteration || row.Cycles > k.row.Cycles/2 {
			continue
		}
		b.rows++
		b.packets += row.Packets
		b.cycles += row.Cycles
		if row.Packets > 0 {
			b.busy++
		}
		if row.PacketsPerBatch >= fullBatch {
			b.full++
		}
	}
}

// fullBatch is how many packets Open vSwitch takes from a queue at once at most
// (NETDEV_MAX_BURST).
const fullBatch = 32

// kinds says of each stall what it is put down to.
func (a *analysis) kinds() {
	for _, k := range a.stalls {
		t := k.thread
		if t.badClock || k.absurd() {
			k.kind = Clock
			continue
		}
		us := t.micros(&k.slot)
		k.kind = t.kind(k.class, us, a.shorter)
		switch {
		case k.class == fullOnly || k.head == nil:
		case k.more() != nil && len(k.more().causes) > 0:
			k.kind = causeKind(k.more().causes, k.kind)
		case k.head.said != "":
			k.kind = saidKind(k.head.said, k.kind)
		}
	}
	a.common()
	for _, k := range a.stalls {
		t := k.thread
		us := t.micros(&k.slot)
		k.lost = t.lost(k.class, k.kind, us)
		t.sum(k.kind).count++
		t.sum(k.kind).lost += k.lost
	}
	for _, t := range a.threads {
		t.eachRest(a.shorter, func(c class, us float64, n uint64, _ bool) {
			kind := t.kind(c, us, a.shorter)
			s := t.sum(kind)
			s.count += n
			s.rest += n
			s.lost += t.lost(c, kind, us) * float64(n)
		})
	}
}

func (t *thread) sum(k Kind) *kindSum {
	if t.perKind[k] == nil {
		t.perKind[k] = new(kindSum)
	}
	return t.perKind[k]
}

// lost returns how much of a stall is more than usual.
func (t *thread) lost(c class, k Kind, us float64) float64 {
	if c == fullOnly || k == Clock || t.badClock {
		return 0
	}
	if c == upcalls {
		// Iterations with upcalls may be the usual ones.
		return max(0, us-t.usualMicros(packets))
	}
	return max(0, us-t.usualMicros(c))
}

// kind says what a stall of a class and length is put down to. It knows nothing else of
// the stall, so that it can tell of those that were only counted.
func (t *thread) kind(c class, us, shorter float64) Kind {
	switch c {
	case fullOnly:
		if t.fill.most == 0 || t.fill.count == 0 && t.rows > 0 {
			return LowThreshold
		}
		return QueueFull
	case upcalls:
		return Upcalls
	case rowless:
		// It is what those are whose row is known.
		if up := t.shorts[upcalls]; us < t.big() && up > t.shorts[idle]+t.shorts[packets] {
			return Upcalls
		}
	}
	if us >= stopped {
		return Stopped
	}
	if us < t.big() {
		short := t.shorts[idle] + t.shorts[packets] + t.shorts[rowless]
		switch {
		case c == packets && t.shorts[packets] > few && shorter < 5*t.usualMicros(packets):
			return LowThreshold
		case short > few && 4*short > short+t.bigs:
			if c == packets && t.usual[packets] > 0 {
				return SlowPackets
			}
			return LowThreshold
		}
	}
	if t.bigs <= few && t.biggest < slice {
		return Unexplained
	}
	return LostCPU
}

// causeKind returns the kind of the cause that explains most of a stall.
func causeKind(causes []suspicious.Cause, otherwise Kind) Kind {
	most := slices.MaxFunc(causes, func(x, y suspicious.Cause) int { return cmp.Compare(x.Part, y.Part) })
	return kindOf(most.Kind, otherwise)
}

// saidKind is causeKind for the words of a log, in which that cause comes first.
func saidKind(said string, otherwise Kind) Kind {
	for _, c := range [...]struct {
		words string
		kind  suspicious.CauseKind
	}{
		{"preempted", suspicious.CausePreempted}, {"throttled", suspicious.CauseThrottled}, {"parked by the Go runtime", suspicious.CauseRuntime},
		{"the hypervisor", suspicious.CauseHypervisor}, {"interrupts", suspicious.CauseInterrupts}, {"stopped", suspicious.CauseStopped},
		{"upcalls", suspicious.CauseUpcalls}, {"the loop's own sleep", suspicious.CauseSlept}, {"reload", suspicious.CauseReload},
		{"asleep in the kernel", suspicious.CauseBlocked}, {"blocked", suspicious.CauseBlocked}, {"page faults", suspicious.CauseFaults},
		{"the loop's own work", suspicious.CauseWork},
	} {
		if strings.HasPrefix(said, c.words) {
			return kindOf(c.kind, otherwise)
		}
	}
	return otherwise
}

func kindOf(k suspicious.CauseKind, otherwise Kind) Kind {
	switch k {
	case suspicious.CausePreempted, suspicious.CauseThrottled, suspicious.CauseRuntime, suspicious.CauseHypervisor, suspicious.CauseInterrupts:
		return LostCPU
	case suspicious.CauseStopped:
		return Stopped
	case suspicious.CauseUpcalls:
		return Upcalls
	case suspicious.CauseSlept:
		return Sleep
	case suspicious.CauseReload:
		return Reload
	case suspicious.CauseBlocked, suspicious.CauseFaults:
		return Blocked
	case suspicious.CauseWork:
		return Work
	default:
		return otherwise
	}
}

// sort puts what was kept into the order of their times.
func (a *analysis) sort() {
	slices.SortFunc(a.c.kept, func(x, y *kept) int {
		return cmp.Or(x.at.time.Compare(y.at.time), cmp.Compare(x.thread.core, y.thread.core), cmp.Compare(x.thread.name, y.thread.name),
			cmp.Compare(x.at.epoch, y.at.epoch), cmp.Compare(x.row.Iteration, y.row.Iteration))
	})
}

// order makes the result's stalls.
func (a *analysis) order() {
	for i, k := range a.stalls {
		k.index = i
		a.r.Stalls = append(a.r.Stalls, a.stall(k))
	}
}

func (a *analysis) place(at sighting) Place {
	return Place{a.c.sources[at.source].Name, at.line}
}

func (a *analysis) stall(k *kept) Stall {
	t := k.thread
	s := Stall{
		Thread: t.name, Core: t.core, Epoch: k.at.epoch, Place: a.place(*k.at), Iteration: k.row.Iteration, Time: k.at.time,
		Micros: t.micros(&k.slot), Reported: k.has&hasHeader != 0, Reasons: k.reasons(), Known: k.has&hasRow != 0,
		Kind: k.kind, Lost: k.lost, Culprit: -1, Said: k.said(),
	}
	if s.Known {
		s.Cycles, s.Packets, s.Upcalls, s.Fill = k.row.Cycles, k.row.Packets, k.row.Upcalls, k.row.QueueFill
	}
	hz := t.hz
	if t.badClock {
		hz = 0
	}
	switch {
	case k.more() != nil:
		s.Causes = k.more().causes
		s.Neighborhood = k.more().rows
	case k.hood != nil:
		s.Neighborhood = make([]Row, len(k.hood.rows))
		for i := range k.hood.rows {
			s.Neighborhood[len(k.hood.rows)-1-i] = fromLog(&k.hood.rows[i], hz)
		}
	}
	for i := range s.Neighborhood {
		if s.Neighborhood[i].Iteration == s.Iteration {
			s.Culprit = i
		}
	}
	s.Loss = t.loss(s.Micros, s.Kind)
	return s
}

// fromLog returns a log's row; hz is 0 if it isn't known.
func fromLog(r *ovslog.Row, hz float64) Row {
	row := Row{
		Iteration: r.Iteration, Cycles: r.Cycles, Packets: r.Packets, CyclesPerPacket: r.CyclesPerPacket,
		PacketsPerBatch: r.PacketsPerBatch, Fill: r.QueueFill, Upcalls: r.Upcalls, CyclesPerUpcall: r.CyclesPerUpcall,
	}
	if hz > 0 {
		row.Micros = float64(r.Cycles) / hz * 1e6
	}
	return row
}

// defaultRing is how many packets a rx queue holds unless it was configured otherwise
// (Open vSwitch's n_rxq_desc).
const defaultRing = 2048

// arrival finds the rate at which packets arrive.
func (t *thread) arrival(shown []Measured) {
	t.rate = -1
	for i := range shown {
		if m := &shown[i]; m.Core == t.core && t.core >= 0 && m.RxPackets != nil && m.Seconds > 0 {
			t.rate, t.shown = float64(*m.RxPackets)/m.Seconds, true
			return
		}
	}
	if t.before.rows >= 4 && t.before.cycles > 0 && t.hz > 0 && !t.badClock {
		t.rate = float64(t.before.packets) / (float64(t.before.cycles) / t.hz)
	}
}

// loss estimates what a stall can have cost: what arrived in it, less what the queues
// hold. It returns nil for what stops nobody from receiving.
func (t *thread) loss(us float64, k Kind) *Loss {
	switch {
	case k == QueueFull || k == LowThreshold || k == Clock || t.badClock:
		return nil
	case t.vhost:
		return &Loss{Why: "the queues that it polls are vhost queues: a full ring holds the guest back, which may drop or wait"}
	case t.rate < 0:
		return &Loss{Why: "the rate at which packets arrive isn't known"}
	}
	l := &Loss{Rate: t.rate, Capacity: t.capacity}
	if l.Capacity == 0 {
		l.Capacity, l.Assumed = defaultRing, true
	}
	if t.rate == 0 {
		l.Why = "no packets arrived around it"
	}
	if n := us/1e6*t.rate - float64(l.Capacity); n > 0 {
		l.Packets = uint64(n)
		if !t.shown && 2*t.before.full > t.before.busy {
			l.Why = "that is the rate at which full batches were fetched, so that fewer may have arrived"
		}
	}
	return l
}

func (a *analysis) pmds() {
	for _, t := range a.threads {
		if t.rows+t.reported == 0 {
			continue
		}
		p := PMD{
			Thread: t.name, Core: t.core, From: t.span.from, To: t.span.to, Hz: t.hz, Reported: t.reported, Unreported: t.unmarked,
			Rows: t.rows, Stalled: t.stalled, Longest: t.longest, Dropped: t.dropped, Missing: t.missing, Epochs: t.epochs,
			CyclesPerPacket: t.perPacket, CyclesPerUpcall: t.perUpcall, Usual: max(t.usual[idle], t.usual[packets], t.usual[upcalls]),
			Rate: max(t.rate, 0),
		}
		if span := t.span.micros(); span > 0 && !t.badClock {
			p.Share = min(1, t.stalled/span)
		}
		p.Lengths = a.lengths(t)
		a.r.PMDs = append(a.r.PMDs, p)
	}
}

// lengths returns the histogram of a thread's stalls, in bins of 1, 2, 5, 10 and so on us.
func (a *analysis) lengths(t *thread) *Histogram {
	if t.badClock {
		return nil
	}
	h := &Histogram{Title: "us/stall"}
	for v := uint64(10); v <= 10_000_000; v *= 10 {
		h.Walls = append(h.Walls, v, 2*v, 5*v)
	}
	h.Counts = make([]uint64, len(h.Walls)+1)
	total := uint64(0)
	var exact histogram.Fine
	count := func(us float64, n uint64) {
		i, _ := slices.BinarySearchFunc(h.Walls, us, func(wall uint64, us float64) int { return cmp.Compare(float64(wall), us) })
		h.Counts[i] += n
		total += n
	}
	for i := range a.r.Stalls {
		if s := &a.r.Stalls[i]; a.stalls[i].thread == t && a.stalls[i].class != fullOnly {
			count(s.Micros, 1)
			exact.Add(uint64(s.Micros))
		}
	}
	if total == 0 {
		return nil
	}
	complete := true
	t.eachRest(a.shorter, func(c class, us float64, n uint64, _ bool) {
		if c != fullOnly {
			count(us, n)
			complete = false
		}
	})
	for _, p := range [...]float64{50, 90, 99, 100} {
		if complete {
			h.Percentiles = append(h.Percentiles, Percentile{Percent: p, Value: min(exact.Quantile(p/100), exact.Max())})
		}
	}
	if !complete {
		h.Percentiles = h.Quantiles(50, 90, 99)
	}
	return h
}

// Quantiles returns percentiles as upper bounds: the walls of their bins.
func (h *Histogram) Quantiles(percents ...float64) (ps []Percentile) {
	var total uint64
	for _, n := range h.Counts {
		total += n
	}
	if total == 0 || len(h.Walls) == 0 {
		return nil
	}
	for _, percent := range percents {
		need := uint64(math.Ceil(float64(total) * percent / 100))
		var sum uint64
		for i, n := range h.Counts {
			if sum += n; sum >= need {
				p := Percentile{Percent: percent, Value: h.Walls[min(i, len(h.Walls)-1)], Beyond: i >= len(h.Walls)}
				ps = append(ps, p)
				break
			}
		}
	}
	return ps
}
