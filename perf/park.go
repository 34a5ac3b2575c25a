package perf

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/pmdperf/pmdperf/history"
)

// copying is the state in which a reader has borrowed a parked owner's memory. It
// is never shown.
const copying State = Closed + 1

// Start begins the first pass. A recorder records nothing before it, and time
// counts from it.
func (r *Recorder) Start() error { return r.Resume(nil) }

// Park ends the pass under way, if anything was done in it, and hands the recorder
// to its readers: they copy from it without the owner's help until Resume. An owner
// parks around whatever blocks it for long, above all a change of its polling
// configuration. The time between two polls is booked as a reload.
func (r *Recorder) Park() { r.park(r.clock(), Parked) }

// Close parks for good. Deferred by the loop's function, it also keeps what a loop
// recorded that ends in a panic.
func (r *Recorder) Close() {
	if State(r.state.Load()) == Running {
		r.park(r.clock(), Closed)
		return
	}
	// From parked; a reader that copies puts back the state that it found.
	for !r.state.CompareAndSwap(uint32(Parked), uint32(copying)) {
		if State(r.state.Load()) == Closed {
			return
		}
		pause()
	}
	r.detector.Flush(&r.ring, r.next)
	r.state.Store(uint32(Closed))
}

func (r *Recorder) park(now uint64, to State) {
	if State(r.state.Load()) != Running {
		return
	}
	if r.level != Off {
		if r.underWay() {
			r.end(now)
		}
		r.settle()
	}
	if to == Closed {
		r.detector.Flush(&r.ring, r.next)
	}
	// A reader who gave up can't answer itself, and must not be owed an answer for as
	// long as the loop is parked.
	if req := r.request.Swap(nil); req != nil {
		r.answerIdle(req, r.start)
	}
	r.state.Store(uint32(to))
}

// underWay reports whether anything was recorded in the pass under way.
func (r *Recorder) underWay() bool {
	return r.cur != noneYet || *r.record() != (history.Record{Flags: r.record().Flags})
}

// Resume ends the time that began with Park and begins a pass. If p is not nil it
// is the polling configuration from now on: a queue of the same port and number
// keeps what was recorded of it. An error says what is wrong with p, which is then
// left unused, or that the recorder is closed.
//
// Resume waits for a reader that is copying, and allocates for new queues.
func (r *Recorder) Resume(p *Polling) error {
	for !r.state.CompareAndSwap(uint32(Parked), uint32(Running)) {
		switch State(r.state.Load()) {
		case Running:
			return errors.New("the recorder is running: park it first")
		case Closed:
			return errors.New("the recorder is closed")
		}
		pause()
	}
	var err error
	if p != nil {
		if err = p.check(); err == nil {
			r.configure(p)
		} else {
			err = fmt.Errorf("polling configuration: %w", err)
		}
	}
	r.resumed(r.clock())
	return err
}

// pause gives a reader that copies the chance to finish.
func pause() {
	runtime.Gosched()
	time.Sleep(10 * time.Microsecond)
}

func (r *Recorder) resumed(now uint64) {
	now = max(now, r.start)
	// The gap has what came before the loop was parked in it, too.
	flags := r.flags | r.record().Flags.Gaps()
	switch {
	case !r.started:
		r.started = true
		r.clear(now)
		r.usage.begin(r)
	case r.level == Off:
		// The level was off, or was switched off meanwhile; that gap goes on.
		return
	default:
		r.gap(history.Reload, now-r.start, now)
		flags = flags.WithGap(history.Reload)
	}
	if r.level == Off {
		r.start = now
		r.cur = between
		return
	}
	r.begin(now)
	*r.record() = history.Record{Flags: flags}
}

// remembered is how many queues that are no longer polled keep their own sums, so that
// one that comes back goes on where it was.
const remembered = 64

// configure makes p the polling configuration.
func (r *Recorder) configure(p *Polling) {
	old := r.queues()
	had := slices.Concat(old, r.goneRx)
	from := make([]int, len(p.RxQueues))
	all := make([]rxQueue, firstQueue+len(p.RxQueues))
	rx := all[firstQueue:]
	for i, q := range p.RxQueues {
		from[i] = -1
		if j := slices.IndexFunc(had, func(o rxQueue) bool { return o.same(q) }); j >= 0 {
			rx[i] = had[j]
			if j < len(old) {
				from[i] = j
			}
		}
		rx[i].Queue = q
	}
	gone := slices.DeleteFunc(had, func(o rxQueue) bool { return slices.ContainsFunc(p.RxQueues, o.same) })
	for len(gone) > remembered {
		r.gone.add(&gone[len(gone)-1])
		gone = gone[:len(gone)-1]
	}
	r.goneRx = gone

	hadTx := slices.Concat(r.tx, r.goneTx)
	tx := make([]txQueue, len(p.TxQueues))
	for i, q := range p.TxQueues {
		if j := slices.IndexFunc(hadTx, func(o txQueue) bool { return o.same(q) }); j >= 0 {
			tx[i] = hadTx[j]
		}
		tx[i].Queue = q
	}
	goneTx := slices.DeleteFunc(hadTx, func(o txQueue) bool { return slices.ContainsFunc(p.TxQueues, o.same) })
	r.goneTx = goneTx[:min(len(goneTx), remembered)]
	r.rx, r.tx = all, tx
	r.usage.poll(r, from)
	r.setup.Polling = *p
	r.reader.queues.Store(uint32(max(len(p.RxQueues), len(p.TxQueues))))
	r.publish(p)
}

func (q *rxQueue) add(o *rxQueue) {
	q.busy += o.busy
	q.idle += o.idle
	q.packets += o.packets
	sizes := o.sizes.sum()
	for i, n := range sizes.Classes {
		q.sizes.sums.Classes[i] += n
	}
	q.sizes.sums.Multicast += sizes.Multicast
	q.sizes.sums.Broadcast += sizes.Broadcast
}
