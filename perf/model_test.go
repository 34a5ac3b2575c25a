package perf

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/suspicious"
	"pgregory.net/rapid"
)

// model is a recorder as one would write it without a thought of cost: it keeps
// every pass and every gap since the last clear and sums up when asked.
type model struct {
	t   *rapid.T
	r   *Recorder
	hz  float64
	now uint64

	// What the recorder's own readings of the clock were since the last look.
	readings []uint64

	level   Level
	running bool
	queues  []Queue
	batch   int

	since, until uint64 // until: all before it is booked
	next         uint64
	first        uint64 // first iteration since the clear
	passes       []pass // all since the clear
	records      []history.Record
	gaps         [history.NumGaps][]gapSpan
	back         uint64
	counts       [256]uint64
	timers       []TimerStats
	upcalls      []uint64 // cycles of each, at level Detailed
	batches      []uint64 // packets of each, at level Detailed
	queueStats   map[Queue]*QueueStats
	txStats      map[Queue]*QueueStats
	answerAfter  uint64

	// Millisecond rows and usage intervals, kept as the rule says.
	millis   []history.Milli
	open     history.Milli
	milliEnd uint64
	rowsFrom uint64 // end of the last pass in a row
	usageEnd uint64
	usage    []Usage
	usageNow Usage
	usageQ   map[Queue]uint64

	p    pass // under way
	mark uint64
	cur  int // -1 none yet, -2 between, else the queue
	got  int // packets since the last stamp
	long uint64
	slow int

	// The answer under way, if any: what is to be copied of the histories, and what
	// compares all of it in the end.
	asked *request
	rest  int
	check func()

	rxDrops uint64
	rows    map[Queue]fullRow // of what was polled; see polled

	elsewhere uint64 // packets of no queue
	longest   int    // bits of the ticks of the longest span of a timer in the pass
}

// fullRow is full batches in a row, the last of them in pass in, when there had been at
// packets.
type fullRow struct {
	n  uint16
	in uint64
	at uint64
}

// packets returns how many there have been of what is being polled.
func (m *model) packets() uint64 {
	n := m.elsewhere
	if m.cur >= 0 {
		n = m.queueStats[m.queues[m.cur]].Packets
	}
	return n + uint64(m.got)
}

// polled names what is being polled, also if it is no queue.
func (m *model) polled() Queue {
	if m.cur < 0 {
		return Queue{}
	}
	return m.queues[m.cur]
}

type pass struct {
	rec    history.Record
	detail bool
}

type gapSpan struct{ from, to uint64 }

func newModel(t *rapid.T, cfg Config) *model {
	m := &model{t: t, hz: 1e6, now: 1 << 40, running: false}
	r, err := newRecorder(cfg, m.hz, m.clock)
	if err != nil {
		t.Fatal(err)
	}
	m.r = r
	m.level = cfg.Level
	m.batch = r.setup.BatchSize
	m.queueStats, m.txStats = map[Queue]*QueueStats{}, map[Queue]*QueueStats{}
	m.usageQ = map[Queue]uint64{}
	m.queues = cfg.Polling.RxQueues
	for _, q := range m.queues {
		m.queueStats[q] = &QueueStats{Queue: q}
	}
	for _, q := range cfg.Polling.TxQueues {
		m.txStats[q] = &QueueStats{Queue: q}
	}
	m.timers = make([]TimerStats, len(cfg.Timers))
	m.usageEnd = m.now + uint64(m.hz*UsageInterval.Seconds())
	m.clear(m.now)
	m.readings = nil
	return m
}

// clock is the recorder's clock: it advances a little at each reading.
func (m *model) clock() uint64 {
	m.now += rapid.Uint64Range(0, 50).Draw(m.t, "clock")
	m.readings = append(m.readings, m.now)
	return m.now
}

// advance lets time pass: from nothing to beyond 2^32 ticks.
func (m *model) advance() uint64 {
	m.now += rapid.Uint64Range(0, 1<<34).Draw(m.t, "ticks") >> rapid.UintRange(0, 34).Draw(m.t, "shift")
	return m.now
}

// stampTime is a reading of the clock by the loop, which may go backwards.
func (m *model) stampTime() uint64 {
	now := m.advance()
	if rapid.IntRange(0, 30).Draw(m.t, "back?") == 0 {
		now -= rapid.Uint64Range(0, 1000).Draw(m.t, "back")
	}
	return now
}

func (m *model) clear(now uint64) {
	m.since, m.until, m.rowsFrom = now, now, now
	m.first = m.next
	m.passes, m.batches, m.upcalls = nil, nil, nil
	m.gaps = [history.NumGaps][]gapSpan{}
	m.back, m.rxDrops = 0, 0
	m.rows, m.elsewhere = map[Queue]fullRow{}, 0
	m.counts = [256]uint64{}
	for i := range m.timers {
		m.timers[i] = TimerStats{}
	}
	for q := range m.queueStats {
		m.queueStats[q] = &QueueStats{Queue: q}
	}
	for q := range m.txStats {
		m.txStats[q] = &QueueStats{Queue: q}
	}
	m.millis, m.open = nil, history.Milli{}
	m.milliEnd = now + uint64(m.hz/1000)
}

// begin begins a pass.
func (m *model) begin(now uint64, flags history.Flags) {
	if m.level == Detailed {
		flags |= history.Detailed
	}
	m.p = pass{rec: history.Record{Flags: flags}, detail: m.level == Detailed}
	m.until, m.mark = now, now
	m.cur, m.got, m.long, m.slow, m.longest = -1, 0, 0, 0, 0
}

// held notes that the clock went backwards.
func (m *model) held() {
	m.back++
	m.p.rec.Flags |= history.ClockBack
	m.answerAfter = min(m.answerAfter, m.mark)
}

// spend charges the time up to now to what is being polled.
func (m *model) spend(now uint64) {
	if now < m.mark {
		m.held()
		now = m.mark
	}
	d := now - m.mark
	m.mark = now
	if m.cur >= 0 {
		q := m.queueStats[m.queues[m.cur]]
		if m.got > 0 {
			q.Packets += uint64(m.got)
			q.BusyCycles += d
			m.usageQ[m.queues[m.cur]] += d
		} else {
			q.IdleCycles += d
		}
	} else {
		m.elsewhere += uint64(m.got)
	}
	m.got = 0
	if d > m.long {
		m.long = d
		m.slow = max(m.cur, -1) + 1
	}
}

// finish ends the pass; start is where it began, gaps inside taken out.
func (m *model) finish(now uint64) {
	m.spend(now)
	rec := &m.p.rec
	rec.End = m.mark
	rec.Cycles = m.mark - m.until - rec.Sleep
	if m.slow > 0 {
		rec.Flags = rec.Flags.WithQueue(m.slow - 1)
	}
	m.passes = append(m.passes, m.p)
	m.records = append(m.records, *rec)
	m.next++
	// The row.
	o := &m.open
	o.End = rec.End
	o.Duration += rec.End - m.rowsFrom
	o.Cycles += rec.Cycles
	o.Sleep += rec.Sleep
	o.Gap += rec.End - m.rowsFrom - rec.Cycles - rec.Sleep
	o.UpcallCycles += rec.UpcallCycles
	o.SumFill += uint64(rec.Fill)
	o.Iterations++
	o.Rx += rec.Rx
	o.Tx += rec.Tx
	o.Batches += rec.Batches
	o.Upcalls += rec.Upcalls
	o.Drops += rec.Drops
	o.MaxFill = max(o.MaxFill, rec.Fill)
	u := &m.usageNow
	u.Ticks += rec.End - m.rowsFrom
	u.Sleep += rec.Sleep
	u.Gap += rec.End - m.rowsFrom - rec.Cycles - rec.Sleep
	if rec.Rx+rec.Tx != 0 {
		o.BusyIterations++
		o.BusyCycles += rec.Cycles
		u.Busy += rec.Cycles
	} else {
		u.Idle += rec.Cycles
	}
	m.rowsFrom = rec.End
	if rec.End >= m.milliEnd {
		m.millis = append(m.millis, m.open)
		m.open = history.Milli{}
		m.milliEnd = rec.End + uint64(m.hz/1000)
	}
}

// settle ends an interval of usage that is complete.
func (m *model) settle() {
	if m.rowsFrom < m.usageEnd {
		return
	}
	for _, q := range m.queues {
		m.usageNow.Queues = append(m.usageNow.Queues, m.usageQ[q])
	}
	m.usage = append(m.usage, m.usageNow)
	m.usageNow, m.usageQ = Usage{}, map[Queue]uint64{}
	m.usageEnd = m.rowsFrom + uint64(m.hz*UsageInterval.Seconds())
}

// record returns whether the loop's calls are recorded.
func (m *model) on() bool { return m.running && m.level != Off }

// doPass draws one pass and feeds it to both.
func (m *model) doPass() {
	t, r := m.t, m.r
	if !m.running {
		return // a parked owner calls nothing
	}
	for range rapid.IntRange(0, 6).Draw(t, "calls") {
		switch rapid.SampledFrom([]string{"poll", "pollend", "batch", "batch", "tx", "drop", "rx drop", "count", "upcall", "timer", "sleep", "size"}).Draw(t, "call") {
		case "poll":
			q := rapid.IntRange(-1, len(m.queues)).Draw(t, "queue")
			if !m.on() {
				r.Poll(q)
				continue
			}
			if m.cur != -1 {
				now := m.stampTime()
				m.spend(now)
				r.stamp(now)
			}
			r.cur = q + firstCur
			if m.cur = q; q < 0 || q >= len(m.queues) {
				m.cur = -2
			}
		case "pollend":
			if !m.on() {
				r.PollEnd()
				continue
			}
			now := m.stampTime()
			m.spend(now)
			m.cur = -2
			r.stamp(now)
			r.cur = between
		case "batch":
			n := rapid.OneOf(rapid.IntRange(-1, 40), rapid.IntRange(0, 3000), rapid.IntRange(0, 1<<20)).Draw(t, "n")
			fill := rapid.OneOf(rapid.IntRange(-1, 40), rapid.IntRange(0, 1<<20)).Draw(t, "fill")
			r.Batch(n, fill)
			if !m.on() {
				continue
			}
			n, fill = max(n, 0), max(fill, 0)
			m.p.rec.Rx += uint32(n)
			m.got += n
			if m.p.detail {
				m.p.rec.Fill = max(m.p.rec.Fill, uint32(fill))
				if n > 0 {
					m.p.rec.Batches++
					m.batches = append(m.batches, uint64(n))
					row := m.rows[m.polled()]
					if n >= m.batch {
						if row.in+1 < m.next || row.at != m.packets()-uint64(n) {
							row.n = 0
						}
						row.n++
						row.in, row.at = m.next, m.packets()
						m.p.rec.Full++
						m.p.rec.InRow = max(m.p.rec.InRow, row.n)
					}
					m.rows[m.polled()] = row
				}
			}
		case "tx":
			n, b := rapid.IntRange(-1, 100).Draw(t, "n"), rapid.IntRange(-1, 5).Draw(t, "b")
			r.Tx(n, b)
			if m.on() {
				m.p.rec.Tx += uint32(max(n, 0))
				m.counts[TxBatches] += uint64(max(b, 0))
			}
		case "drop":
			n := rapid.IntRange(-1, 100).Draw(t, "n")
			r.Drop(n)
			if m.on() {
				m.p.rec.Drops += uint32(max(n, 0))
			}
		case "rx drop":
			n := rapid.IntRange(-1, 100).Draw(t, "n")
			r.RxDrop(n)
			if m.on() && n > 0 {
				m.p.rec.Flags |= history.RxDropped
				m.rxDrops += uint64(n)
			}
		case "count":
			c := Counter(rapid.IntRange(0, NumBuiltin+1).Draw(t, "counter"))
			n := rapid.Uint64Range(0, 1<<40).Draw(t, "n")
			r.Count(c, n)
			if m.on() {
				m.counts[c] += n
			}
		case "upcall":
			cycles, ok := rapid.Uint64Range(0, 1<<36).Draw(t, "cycles"), rapid.Bool().Draw(t, "ok")
			r.Upcall(cycles, ok)
			if m.on() {
				if ok {
					m.counts[UpcallsOK]++
				} else {
					m.counts[UpcallsLost]++
				}
				if m.p.detail {
					m.p.rec.Upcalls++
					m.p.rec.UpcallCycles += cycles
					m.upcalls = append(m.upcalls, cycles)
				}
			}
		case "timer":
			if m.on() {
				m.timer(0)
			} else if got := r.StopNamed(r.StartTimer(), 0); m.level == Off && got != 0 {
				t.Fatalf("a timer measured %d while off", got)
			}
		case "sleep":
			if !m.on() {
				r.SleepBegin()
				r.SleepEnd()
				continue
			}
			m.sleep()
		case "size":
			q := rapid.IntRange(-1, len(m.queues)).Draw(t, "queue")
			sizes := rapid.SliceOfN(rapid.Uint16(), 0, 600).Draw(t, "sizes")
			multi, broad := rapid.IntRange(-1, 3).Draw(t, "multicast"), rapid.IntRange(-1, 3).Draw(t, "broadcast")
			rx := rapid.Bool().Draw(t, "rx")
			stats := m.txStats[Queue{Port: "tx"}]
			if rx {
				r.RxSizes(q, sizes)
				r.RxCasts(q, multi, broad)
				if q < 0 || q >= len(m.queues) {
					continue
				}
				stats = m.queueStats[m.queues[q]]
			} else {
				r.TxSizes(0, sizes)
				r.TxCasts(0, multi, broad)
				r.TxSizes(1, sizes) // no such queue
			}
			if m.level == Off {
				continue
			}
			if !rx {
				stats.Packets += uint64(len(sizes))
			}
			stats.Sizes.Multicast += uint64(max(multi, 0))
			stats.Sizes.Broadcast += uint64(max(broad, 0))
			for _, s := range sizes {
				c := slices.IndexFunc([]uint16{63, 64, 127, 255, 511, 1023, 1518, 65535}, func(hi uint16) bool { return s <= hi })
				stats.Sizes.Classes[c]++
			}
		}
	}
	m.end()
}

// timer nests timers at random and returns the time that it took in all.
func (m *model) timer(depth int) (span uint64) {
	t, r := m.t, m.r
	start := m.advance()
	tm := r.startTimer(start)
	var inner uint64
	for depth < 3 && rapid.Bool().Draw(t, "nest") {
		m.advance()
		if rapid.Bool().Draw(t, "sleep inside") {
			inner += m.sleep()
		} else {
			inner += m.timer(depth + 1)
		}
	}
	end := m.advance()
	// A sleep may have begun before the timer did, by a clock that went backwards.
	raw := end
	if end < start+inner {
		m.held()
		end = start + inner
	}
	own := end - start - inner
	id := rapid.IntRange(-1, len(m.timers)).Draw(t, "timer")
	if got := r.stopNamed(tm, id, raw); got != own {
		t.Fatalf("timer %d: %d ticks, want %d", id, got, own)
	}
	if id >= 0 && id < len(m.timers) {
		s := &m.timers[id]
		s.Count++
		s.Cycles += own
		if own > s.Max {
			s.Max, s.MaxIteration = own, m.next
		}
		if n := bits.Len64(own); n > m.longest {
			m.longest = n
			m.p.rec.Flags = m.p.rec.Flags.WithTimer(id, own)
		}
	}
	return end - start
}

// sleep sleeps and returns the ticks from its beginning to its end.
func (m *model) sleep() uint64 {
	now := m.stampTime()
	m.spend(now)
	from := m.mark
	m.cur = -2
	m.readings = nil
	m.r.sleepBegin(now)
	if len(m.readings) != 1 {
		m.t.Fatalf("%d clock readings at the beginning of a sleep", len(m.readings))
	}
	// The accounting is taken out of the pass.
	d := max(m.readings[0], m.mark) - m.mark
	m.gap(history.Accounting, m.mark, m.mark+d)
	m.p.rec.Flags = m.p.rec.Flags.WithGap(history.Accounting)
	m.until += d
	m.mark += d
	if m.asked != nil {
		m.copied(math.MaxInt)
	}
	end := m.stampTime()
	m.r.sleepEnd(end)
	if end < m.mark {
		m.held()
		end = m.mark
	}
	m.p.rec.Sleep += end - m.mark
	m.mark = end
	return end - from
}

func (m *model) gap(kind history.Gap, from, to uint64) {
	m.gaps[kind] = append(m.gaps[kind], gapSpan{from, to})
}

// end ends the pass, with the accounting and answering that the rules foresee.
func (m *model) end() {
	r := m.r
	if !m.on() {
		return
	}
	now := m.stampTime()
	req := r.request.Load()
	m.finish(now)
	m.readings = nil
	r.end(now)
	m.served(req, pieceSize)
}

// served is what follows on the end of a pass: the accounting and answering that the
// rules foresee. Of histories up to most rows and records are copied.
func (m *model) served(req *request, most int) {
	now := m.mark
	copying := m.asked != nil
	due := !copying && req != nil && now >= m.answerAfter
	account := m.next%pending == 0 || due
	want := 0
	if account {
		want++
	}
	if due || copying {
		want++
	}
	if len(m.readings) != want {
		m.t.Fatalf("%d clock readings after pass %d, want %d (request %v)", len(m.readings), m.next-1, want, req != nil)
	}
	flags := history.Flags(0)
	if account {
		flags = flags.WithGap(history.Accounting)
		m.settle()
	}
	if due {
		m.apply(req, now, most)
	} else if copying {
		m.copied(most)
	}
	if account {
		acc := max(m.readings[0], now)
		m.gap(history.Accounting, now, acc)
		now = acc
	}
	if due || copying {
		ans := max(m.readings[want-1], now)
		if ans != now {
			flags = flags.WithGap(history.Answering)
			m.gap(history.Answering, now, ans)
		}
		now = ans
		if due {
			m.answerAfter = now + uint64(m.hz/1000)
		}
	}
	m.begin(now, flags)
}

// apply does a request's errand to the model. Of the histories most rows and records are
// copied now.
func (m *model) apply(req *request, at uint64, most int) {
	if req.clear {
		m.clear(at)
		m.until = at
	}
	if req.setLevel {
		m.level = req.level
	}
	m.asked, m.rest, m.check = req, 0, func() {}
	if req.into != nil {
		if m.on() && !req.clear {
			m.until = at
		}
		m.check = m.compare(req.into, req.want, at)
		m.rest = min(req.want.Iterations, int(m.next-m.first)) + min(req.want.Millis, len(m.millis))
	}
	m.copied(most)
}

// copied says that up to most rows and records were copied.
func (m *model) copied(most int) {
	m.rest -= min(m.rest, most)
	if done := m.asked.done.Load(); done != (m.rest == 0) {
		m.t.Fatalf("the answer is done: %v, with %d rows to be copied", done, m.rest)
	}
	if m.rest == 0 {
		m.check()
		m.asked = nil
	}
}

// post posts an errand, which is answered at the end of a pass.
func (m *model) post(e errand) *request {
	if e.into != nil {
		e.into.room(e.want, 8, 2, 2)
	}
	req := &request{errand: e}
	m.r.request.Store(req)
	return req
}

// ask posts an errand and runs passes until it is answered.
func (m *model) ask(e errand) {
	r := m.r
	req := m.post(e)
	switch {
	case !m.running:
		m.readings = nil
		was := m.level
		if !r.answerParked() {
			m.t.Fatal("a parked owner's reader did not answer itself")
		}
		at := max(m.readings[0], m.until)
		m.apply(req, at, math.MaxInt)
		if (was == Off) != (m.level == Off) && r.started {
			// What was until now was of the one kind, what follows is of the other.
			kind := history.Reload
			if was == Off {
				kind = history.Off
			}
			m.gap(kind, m.until, at)
			m.p.rec.Flags = m.p.rec.Flags.WithGap(kind)
			m.until = at
		}
	case m.level == Off:
		m.now = max(m.now, m.answerAfter)
		m.readings = nil
		r.End()
		at := max(m.readings[0], m.until)
		m.apply(req, at, math.MaxInt)
		end := max(m.readings[1], at)
		m.answerAfter = end + uint64(m.hz/1000)
		if m.level != Off {
			m.gap(history.Off, m.until, end)
			m.begin(end, m.p.rec.Flags.Gaps().WithGap(history.Off))
		}
	default:
		for !req.done.Load() {
			m.doPass()
			if m.asked != nil && rapid.IntRange(0, 4).Draw(m.t, "park amid an answer") == 0 {
				m.park()
				m.resume(nil, nil)
			}
		}
	}
}

func (m *model) park() {
	m.readings = nil
	under := m.cur != -1 || m.p.rec.Rx != 0 || m.p.rec.Tx != 0 || m.p.rec.Batches != 0 || m.p.rec.Upcalls != 0 ||
		m.p.rec.UpcallCycles != 0 || m.p.rec.Sleep != 0 || m.p.rec.Fill != 0 || m.p.rec.Drops != 0
	if m.on() && under {
		m.readings = nil
		now := m.advance()
		m.finish(now)
		m.settle()
		// Park reads the clock once, then ends the pass with that.
		m.r.park(now, Parked)
		m.served(nil, math.MaxInt)
	} else {
		if m.on() {
			m.settle()
		}
		m.r.park(m.advance(), Parked)
		if m.asked != nil {
			m.copied(math.MaxInt)
		}
	}
	m.running = false
}

func (m *model) resume(p *Polling, prepared *Prepared) {
	m.advance()
	m.readings = nil
	started := m.r.started
	err := error(nil)
	if prepared == nil {
		err = m.r.Resume(p)
	} else {
		err = m.r.ResumeWith(prepared)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	if p != nil {
		for _, q := range p.RxQueues {
			if m.queueStats[q] == nil {
				m.queueStats[q] = &QueueStats{Queue: q}
			}
		}
		for q := range m.queueStats {
			if !slices.Contains(p.RxQueues, q) {
				delete(m.usageQ, q)
			}
		}
		for i := range m.usage {
			var queues []uint64
			for _, q := range p.RxQueues {
				n := uint64(0)
				if j := slices.Index(m.queues, q); j >= 0 {
					n = m.usage[i].Queues[j]
				}
				queues = append(queues, n)
			}
			m.usage[i].Queues = queues
		}
		m.queues = p.RxQueues
		delete(m.rows, Queue{})
		m.elsewhere = 0
	}
	m.running = true
	now := max(m.readings[0], m.until)
	switch {
	case !started:
		m.clear(now)
		m.usageEnd = now + uint64(m.hz*UsageInterval.Seconds())
		m.usageNow, m.usageQ = Usage{}, map[Queue]uint64{}
		if m.level == Off {
			m.until = now
			return
		}
		m.begin(now, 0)
	case m.level == Off:
	default:
		m.gap(history.Reload, m.until, now)
		m.begin(now, m.p.rec.Flags.Gaps().WithGap(history.Reload))
	}
}

// compare returns what compares a snapshot with what the model sums up now.
func (m *model) compare(s *Snapshot, want Want, now uint64) func() {
	t := m.t
	var w Snapshot
	w.Level = m.level
	w.Since, w.Until, w.Now = m.since, m.until, now
	w.ClockBack = m.back
	w.Totals.RxDrops = m.rxDrops
	copy(w.Counts[:], m.counts[:])
	w.Counters = []NamedCount{{Count: m.counts[NumBuiltin]}, {Count: m.counts[NumBuiltin+1]}}
	w.Timers = slices.Clone(m.timers)
	for k := range m.gaps {
		g := &w.Gaps[k]
		for i, span := range m.gaps[k] {
			d := span.to - span.from
			if i == 0 || d < g.Min {
				g.Min = d
			}
			if i == 0 || d > g.Max {
				g.Max, g.MaxAt = d, span.to
			}
			g.Count++
			g.Ticks += d
			if history.Gap(k) == history.Reload {
				w.Reloads.Add(d)
			}
		}
	}
	cyclesBins := histogram.NewBinner(histogram.CyclesPerIteration.Walls())
	for i, p := range m.passes {
		rec := p.rec
		w.Totals.Iterations++
		w.Totals.Cycles += rec.Cycles
		w.Totals.Sleep += rec.Sleep
		w.Totals.RxPackets += uint64(rec.Rx)
		w.Totals.TxPackets += uint64(rec.Tx)
		w.Totals.Drops += uint64(rec.Drops)
		if rec.Rx+rec.Tx > 0 {
			w.Totals.BusyIterations++
			w.Totals.BusyCycles += rec.Cycles
		}
		if rec.Sleep > 0 {
			w.Totals.SleepIterations++
		}
		w.Cycles.Add(cyclesBins, rec.Cycles)
		w.Packets.Add(uint64(rec.Rx))
		if rec.Cycles > w.Slowest.Cycles {
			w.Slowest, w.SlowestIteration = rec, m.first+uint64(i)
		}
		if p.detail {
			w.Totals.DetailIterations++
			w.Totals.RxBatches += uint64(rec.Batches)
			w.Totals.FullBatches += uint64(rec.Full)
			w.Totals.UpcallCycles += rec.UpcallCycles
			w.QueueFill.Add(uint64(rec.Fill))
			w.Upcalls.Add(uint64(rec.Upcalls))
			if rec.Rx > 0 {
				w.CyclesPerPacket.Add(cyclesPerPacketBinner, rec.Cycles/uint64(rec.Rx))
			}
		}
	}
	for _, n := range m.batches {
		w.BatchPackets.Add(n)
	}
	for _, c := range m.upcalls {
		w.CyclesPerUpcall.Add(cyclesPerUpcallBinner, c)
	}
	for _, q := range m.queues {
		w.RxQueues = append(w.RxQueues, *m.queueStats[q])
	}
	for _, q := range m.txStats {
		w.TxQueues = append(w.TxQueues, *q)
	}
	for q, s := range m.queueStats {
		if slices.Contains(m.queues, q) {
			continue
		}
		g := &w.Gone
		g.Packets += s.Packets
		g.BusyCycles += s.BusyCycles
		g.IdleCycles += s.IdleCycles
		for i := range s.Sizes.Classes {
			g.Sizes.Classes[i] += s.Sizes.Classes[i]
		}
		g.Sizes.Multicast += s.Sizes.Multicast
		g.Sizes.Broadcast += s.Sizes.Broadcast
	}
	w.Usage = slices.Clone(m.usage[max(0, len(m.usage)-UsageIntervals):])
	w.NextIteration = m.next
	w.Suspicion = suspicious.Default()
	n := min(want.Iterations, int(m.next-m.first))
	w.Iterations = m.records[len(m.records)-n:]
	w.Millis = m.millis[max(0, len(m.millis)-want.Millis):]
	w.OpenMilli = m.open

	return func() {
		s.settle()
		if diff := cmp.Diff(&w, s, cmpopts.EquateEmpty(), equal[histogram.Fine](), equal[histogram.Binned](), equal[histogram.Small](),
			cmpopts.IgnoreUnexported(Snapshot{}), cmpopts.IgnoreFields(Snapshot{}, "Anchor")); diff != "" {
			t.Fatalf("snapshot of iteration %d (-want +got):\n%s", w.NextIteration, diff)
		}
		// The identity that nothing hides from.
		var gaps uint64
		for _, g := range s.Gaps {
			gaps += g.Ticks
		}
		if s.Wall() != s.Totals.Cycles+s.Totals.Sleep+gaps {
			t.Fatalf("wall %d, cycles %d + sleep %d + gaps %d", s.Wall(), s.Totals.Cycles, s.Totals.Sleep, gaps)
		}
	}
}

// equal compares big arrays by ==, where going through them by reflection would
// take seconds.
func equal[T comparable]() cmp.Option { return cmp.Comparer(func(a, b T) bool { return a == b }) }

// Every snapshot of a random trace equals what the naive model sums up.
func TestRecorderAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := func(i int) Queue { return Queue{Port: fmt.Sprint("port", i), ID: i, Size: 1024} }
		m := newModel(t, Config{
			Level:     Level(rapid.IntRange(0, 2).Draw(t, "level")),
			BatchSize: 32,
			Counters:  []string{"one", "two"}, Timers: []string{"parse", "send"},
			Polling: Polling{RxQueues: []Queue{q(0), q(1), q(2)}, TxQueues: []Queue{{Port: "tx"}}},
		})
		snap := new(Snapshot)
		polling := func() *Polling {
			perm := rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "queues")
			p := &Polling{TxQueues: []Queue{{Port: "tx"}}}
			for _, i := range perm[:rapid.IntRange(0, 4).Draw(t, "n")] {
				p.RxQueues = append(p.RxQueues, q(i))
			}
			return p
		}
		// One that was prepared, maybe long ago, maybe used before.
		var next *Polling
		var prepared *Prepared
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch step := rapid.SampledFrom([]string{"passes", "passes", "passes", "snapshot", "clear", "level", "park", "resume", "prepare", "wait"}).Draw(t, "step"); step {
			case "passes":
				for range rapid.IntRange(1, 80).Draw(t, "passes") {
					m.doPass()
				}
			case "wait":
				m.advance()
			case "snapshot":
				m.ask(errand{into: snap, want: Want{rapid.IntRange(0, 300).Draw(t, "it"), rapid.IntRange(0, 300).Draw(t, "ms")}})
			case "clear":
				m.ask(errand{clear: true, into: snap})
			case "level":
				m.ask(errand{setLevel: true, level: Level(rapid.IntRange(0, 2).Draw(t, "level"))})
			case "park":
				if m.running {
					m.park()
				}
			case "resume":
				if m.running {
					continue
				}
				switch how := rapid.IntRange(0, 2).Draw(t, "reconfigure"); {
				case !m.r.started || how == 0:
					m.resume(nil, nil)
				case how == 1 && prepared != nil:
					m.resume(next, prepared)
				default:
					m.resume(polling(), nil)
				}
			case "prepare":
				var err error
				next = polling()
				if prepared, err = m.r.Prepare(next); err != nil {
					t.Fatal(err)
				}
			}
		}
		m.ask(errand{into: snap, want: Want{1000, 1000}})
	})
}
