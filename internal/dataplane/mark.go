package dataplane

import (
	"fmt"
	"time"

	"github.com/pmdperf/pmdperf/perf/tsc"
)

// Mark is what a PMD has done since its start, as it was between two passes.
type Mark struct {
	Tick    uint64
	Rx      uint64 // packets received
	Tx      uint64 // sent
	Drops   uint64 // neither
	Missed  uint64 // that found its receive queues full
	Batches uint64 // sent
	Slept   int64  // how often its thread left its core to sleep; 0 where that is not known
	Taken   int64  // how often it was taken off it
}

// Away returns how often the thread left its core.
func (n Mark) Away() int64 { return n.Slept + n.Taken }

// Sub returns what was done from m to n, with n's tick less m's.
func (n Mark) Sub(m Mark) Mark {
	return Mark{
		n.Tick - m.Tick, n.Rx - m.Rx, n.Tx - m.Tx, n.Drops - m.Drops, n.Missed - m.Missed, n.Batches - m.Batches,
		n.Slept - m.Slept, n.Taken - m.Taken,
	}
}

// Marks returns a mark of every PMD, each at the end of the pass under way.
func (f *Forwarder) Marks() ([]Mark, error) {
	req := &request{kind: wantMark, marks: make([]Mark, len(f.pmds))}
	return req.marks, f.ask(req)
}

// SetRate changes how many packets a second the generators of every port in memory
// make: see Config.Rate.
func (f *Forwarder) SetRate(pps float64) error {
	if hz := tsc.System().Hz(); !(pps >= 0 && pps < hz) {
		return fmt.Errorf("rate %v: choose 0 (unlimited) to the clock's %.0f ticks a second", pps, hz)
	}
	return f.ask(&request{kind: wantRate, rate: pps / float64(min(f.cfg.Queues, f.cfg.Flows))})
}

// SetStats changes Config.Stats.
func (f *Forwarder) SetStats(mode StatsMode) error {
	return f.ask(&request{kind: wantStats, stats: mode})
}

// SetPath changes Config.FlushInterval and Config.SendAtOnce.
func (f *Forwarder) SetPath(flush time.Duration, atOnce bool) error {
	return f.ask(&request{kind: wantPath, flush: tsc.System().Ticks(flush), atOnce: atOnce})
}

// ask gives a request to all PMDs and waits until they have served it.
func (f *Forwarder) ask(r *request) error {
	f.control.Lock()
	defer f.control.Unlock()
	if err := f.runs(); err != nil {
		return err
	}
	f.post(r)
	await(len(f.pmds), r.done.Load)
	return nil
}

// Threads returns the numbers of the PMDs' threads, 0 where there are none. It may be
// called after Start.
func (f *Forwarder) Threads() []int {
	tids := make([]int, len(f.pmds))
	for i, p := range f.pmds {
		tids[i] = p.tid
	}
	return tids
}

// mark fills in m.
func (p *pmd) mark(m *Mark) {
	*m = Mark{Tick: tsc.Now(), Batches: p.flushed}
	for i := range p.tally {
		t := &p.tally[i]
		m.Rx += t.rx
		m.Tx += t.tx
		m.Drops += t.drops
	}
	for _, q := range p.queues {
		m.Missed += q.port.Missed(q.queue)
	}
	m.Slept, m.Taken, _ = switches()
}

// away returns how often the calling thread left its core since it began, with or
// without the times that it slept; -1 where that is not known.
func away(sleeps bool) int64 {
	slept, taken, ok := switches()
	switch {
	case !ok:
		return -1
	case sleeps:
		return slept + taken
	}
	return taken
}

// pace sets the rate of the queues in memory, in packets a second and queue.
func (p *pmd) pace(pps float64) {
	for _, q := range p.queues {
		if m, ok := q.port.(*memPort); ok {
			m.queues[q.queue].generator.pace(pps, tsc.System().Hz())
		}
	}
}

// Generate returns how many packets a second the generator of a port in memory as c
// describes it makes while nobody does anything with them, in the fastest millisecond of
// some. It takes about as long as d.
func Generate(c Config, d time.Duration) (pps float64, err error) {
	c.Rate = 0
	if err := c.Validate(); err != nil {
		return 0, err
	}
	if c.Profile == ProfileIdle {
		return 0, nil
	}
	c = c.withDefaults()
	p, err := newMemPort("mem0", &c, true)
	if err != nil {
		return 0, err
	}
	b := NewBatch(NewPool(Burst))
	for begun := time.Now(); pps == 0 || time.Since(begun) < d; {
		n, began := 0, tsc.Now()
		took := time.Duration(0)
		for took < time.Millisecond {
			for range 64 {
				p.RxBurst(0, b)
				n += b.Len()
				b.Release()
			}
			took = tsc.System().Duration(tsc.Now() - began)
		}
		pps = max(pps, float64(n)/took.Seconds())
	}
	return pps, nil
}

// Cores returns the cores that this process may run PMDs on, in ascending order.
func Cores() []int { return usableCores() }
