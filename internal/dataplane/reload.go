package dataplane

import (
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
	reload  *reload
	done    atomic.Int32
}

type requestKind uint8

const (
	wantReport requestKind = iota
	wantReload
	wantStop
)

// reload is a change of what the PMDs poll, prepared in advance.
type reload struct {
	pmds    int
	queues  [][]rxQueue    // by PMD
	polling []perf.Polling // the same for the recorders
	hold    time.Duration  // to wait between the last poll and the first one
	parked  atomic.Int32   // PMDs that poll nothing any more
	wake    chan struct{}  // closed when all are parked; nil = they wait for each other
}

// report is what a PMD tells about itself.
type report struct {
	tally    []tally  // by port
	missed   []uint64 // by port, of the queues that this PMD polls
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
	case wantReload:
		p.reload(r.reload)
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
		r.missed[q.in] += q.port.Missed(q.queue)
	}
	r.gaps = p.gaps
}

// reload stops polling, waits until all PMDs have, and polls what r says.
func (p *pmd) reload(r *reload) {
	p.flushAll()
	p.rec.Park()
	left := tsc.Now()
	for _, q := range p.queues {
		*q.left = left
	}
	r.parked.Add(1)
	if r.wake != nil {
		<-r.wake
	} else {
		for int(r.parked.Load()) < r.pmds {
			relax()
		}
	}
	if r.hold > 0 {
		until := left + tsc.System().Ticks(r.hold)
		for tsc.Now() < until {
			relax()
		}
	}
	p.queues = r.queues[p.index]
	_ = p.rec.Resume(&r.polling[p.index]) // parked above, and Open has checked the queues
	now := tsc.Now()
	for _, q := range p.queues {
		if *q.left != 0 && now > *q.left {
			p.gaps.add(now - *q.left)
		}
	}
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
