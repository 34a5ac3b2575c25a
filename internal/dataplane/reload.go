package dataplane

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/perf/tsc"
)

// request is what the control goroutine asks of the PMDs. A PMD that has served it
// says so in done; it wakes nobody.
type request struct {
	kind    requestKind
	reports []report // by PMD
	marks   []Mark   // by PMD
	rate    float64  // packets a second and port
	stats   StatsMode
	flush   uint64 // ticks
	atOnce  bool
	reload  *reload
	done    atomic.Int32
}

type requestKind uint8

const (
	wantReport requestKind = iota
	wantMark
	wantRate
	wantStats
	wantPath
	wantReload
	wantStop
)

// ReloadScheme is how PMDs change what they poll.
type ReloadScheme string

// The schemes, the best first. But for the last, the control goroutine prepares
// everything in advance.
const (
	// ReloadHandover: every PMD changes by itself. A queue that moves is polled by the PMD
	// that gets it as soon as the other has let go of it; no PMD waits for another.
	ReloadHandover ReloadScheme = "handover"

	// ReloadBusy: all PMDs stop polling and wait busily until all have.
	ReloadBusy ReloadScheme = "busy"

	// ReloadBlocking: all PMDs stop polling and sleep until the control goroutine, which
	// prepares everything meanwhile, wakes them.
	ReloadBlocking ReloadScheme = "blocking"
)

func (s ReloadScheme) known() bool {
	return s == ReloadHandover || s == ReloadBusy || s == ReloadBlocking
}

// reload is a change of what the PMDs poll.
type reload struct {
	scheme   ReloadScheme
	queues   [][]rxQueue      // by PMD
	prepared []*perf.Prepared // the same for the recorders
	polling  []perf.Polling   // the same, not prepared: ReloadBlocking
	hold     time.Duration    // to wait between the last poll and the first one
	parked   atomic.Int32     // PMDs that poll nothing any more
	wake     chan struct{}    // closed when all are parked: ReloadBlocking
	stage    []stage          // by PMD
	out      Reloaded         // every PMD fills in its own part
}

// handing is the part of a receive queue that PMDs see of each other's: who lets go of
// the queue writes left and then sets free.
type handing struct {
	left   uint64 // tick at which it was polled last
	missed uint64 // packets that found the queue full, as the recorders were told
	free   atomic.Bool
	_      [40]byte
}

// stage is how far a PMD has got in a reload. It looks whether its thread left its
// core in the pass before the reload and in the pass after, so that the looking is
// not in the gap.
type stage uint8

const (
	notBegun stage = iota
	looked
	polling
)

// Reloaded says how long a reload kept from polling. Times are in ticks.
type Reloaded struct {
	// Threads are the times between the last pass of a PMD under the old
	// configuration and its first one under the new, by PMD.
	Threads []uint64

	// Queues are the times between the last pass that polled a receive queue under
	// the old configuration and the first one under the new, whichever PMD made them.
	// This is what a queue has to have room for. The order is that of ports and queues.
	Queues []uint64

	// Away says how often the thread of a PMD was off its core from the pass before the
	// reload to the one after, by PMD; -1 where the system doesn't tell. That it sleeps
	// by the scheme ReloadBlocking does not count.
	Away []int64
}

// WasAway reports whether any thread was off its core meanwhile.
func (r *Reloaded) WasAway() bool {
	return slices.ContainsFunc(r.Away, func(n int64) bool { return n > 0 })
}

// report is what a PMD tells about itself.
type report struct {
	tally    []tally  // by port
	missed   []uint64 // by queue, of those that this PMD polls
	injected []uint64 // by injection
	gaps     GapSummary
}

// GapSummary sums up how long queues were not polled around reloads, from the end
// of the last pass under the old configuration to the beginning of the first one
// under the new, whichever PMD made it.
type GapSummary struct {
	Count         uint64
	Min, Max, Sum uint64 // ticks
}

func (g *GapSummary) add(ticks uint64) {
	if g.Count == 0 || ticks < g.Min {
		g.Min = ticks
	}
	g.Count++
	g.Max = max(g.Max, ticks)
	g.Sum += ticks
}

func (g *GapSummary) merge(o GapSummary) {
	if o.Count == 0 {
		return
	}
	if g.Count == 0 || o.Min < g.Min {
		g.Min = o.Min
	}
	g.Count += o.Count
	g.Max = max(g.Max, o.Max)
	g.Sum += o.Sum
}

// serve does what the control goroutine wants. It reports whether the loop is to
// end.
func (p *pmd) serve() (end bool) {
	r := p.request.Swap(nil)
	if r == nil { // withdrawn in between
		return false
	}
	switch r.kind {
	case wantReport:
		p.report(&r.reports[p.index])
	case wantMark:
		p.mark(&r.marks[p.index])
	case wantRate:
		p.pace(r.rate)
	case wantStats:
		p.stats.mode = r.stats
	case wantPath:
		p.flushAll()
		p.flushTicks, p.sendAtOnce = r.flush, r.atOnce
	case wantReload:
		if !p.advance(r.reload) {
			p.request.Store(r) // look again after the next pass
			return false
		}
	case wantStop:
		p.drain()
		end = true
	}
	r.done.Add(1)
	return end
}

// report copies the PMD's counts into r.
func (p *pmd) report(r *report) {
	copy(r.tally, p.tally)
	copy(r.injected, p.injected)
	clear(r.missed)
	for _, q := range p.queues {
		r.missed[q.number] = q.port.Missed(q.queue)
	}
	r.gaps = p.gaps
}

// advance takes the next step of a reload and reports whether it was the last.
func (p *pmd) advance(r *reload) (done bool) {
	if p.awaited != 0 {
		p.take(r)
	}
	switch r.stage[p.index] {
	case notBegun:
		r.out.Away[p.index] = away(r.scheme != ReloadBlocking)
		r.stage[p.index] = looked
	case looked:
		p.reload(r)
		r.stage[p.index] = polling
	case polling:
		if p.awaited != 0 {
			return false
		}
		if before := r.out.Away[p.index]; before >= 0 {
			r.out.Away[p.index] = away(r.scheme != ReloadBlocking) - before
		}
		return true
	}
	return false
}

// reload changes to what r says. It may leave queues awaited that other PMDs poll
// still.
func (p *pmd) reload(r *reload) {
	p.flushAll()
	p.rec.Park()
	left := tsc.Now()
	for _, q := range p.queues {
		q.handing.left = left
		q.handing.free.Store(true)
	}
	r.parked.Add(1)
	switch r.scheme {
	case ReloadBusy:
		for int(r.parked.Load()) < len(r.queues) {
			relax()
		}
	case ReloadBlocking:
		<-r.wake
	}
	if r.hold > 0 {
		until := left + tsc.System().Ticks(r.hold)
		for tsc.Now() < until {
			relax()
		}
	}
	p.queues = r.queues[p.index]
	p.awaited = len(p.queues)
	// Parked above, and Prepare or Open has checked the queues.
	if r.scheme == ReloadBlocking {
		_ = p.rec.Resume(&r.polling[p.index])
	} else {
		_ = p.rec.ResumeWith(r.prepared[p.index])
	}
	r.out.Threads[p.index] = p.take(r) - left
}

// take takes the awaited queues that are free, and returns the time.
func (p *pmd) take(r *reload) (now uint64) {
	now = tsc.Now()
	for i := range p.queues {
		q := &p.queues[i]
		if !q.awaited || !q.handing.free.Load() {
			continue
		}
		q.handing.free.Store(false)
		q.awaited = false
		p.awaited--
		now = tsc.Now() // after left was written
		gap := max(now, q.handing.left) - q.handing.left
		r.out.Queues[q.number] = gap
		p.gaps.add(gap)
	}
	return now
}

// relax passes some time in a busy wait. Since it calls a function and is not
// inlined, it checks the stack when it begins, which is where the Go runtime can
// stop a thread: without, a PMD that waits for one stopped would stop the runtime
// for good.
//
//go:noinline
func relax() { tsc.Now() }

// drain lets nothing more arrive and runs passes until every queue is empty and
// everything received was sent or dropped.
func (p *pmd) drain() {
	p.maxSleep, p.schedule.next, p.flushTicks = 0, 0, 0
	for _, q := range p.queues {
		q.port.Quiesce(q.queue)
	}
	for {
		p.pass()
		if p.moved == 0 && p.drained() {
			return
		}
	}
}

func (p *pmd) drained() bool {
	for _, q := range p.queues {
		if !q.port.Drained(q.queue) {
			return false
		}
	}
	return true
}
