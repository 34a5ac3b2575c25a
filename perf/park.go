package perf

import (
	"errors"
	"fmt"
	"math"
	"runtime"
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
	if r.rest.req != nil {
		r.copyRest(math.MaxInt)
		r.arm()
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
// Resume waits for a reader that is copying, and allocates for new queues; where the
// time of a reload counts, use ResumeWith.
func (r *Recorder) Resume(p *Polling) error {
	if err := r.unpark(); err != nil {
		return err
	}
	var err error
	if p != nil {
		if err = p.check(); err == nil {
			r.configure(r.plan(p))
		} else {
			err = fmt.Errorf("polling configuration: %w", err)
		}
	}
	r.resumed(r.clock())
	return err
}

// ResumeWith is Resume with a polling configuration that was prepared. What is left to
// do for it is copying: no search, no check and no allocation. If the configuration was
// changed, or the recorder cleared, since it was prepared, that is done again here.
func (r *Recorder) ResumeWith(p *Prepared) error {
	if err := r.unpark(); err != nil {
		return err
	}
	if p.base != r.queues {
		p = r.plan(&p.polling)
	}
	r.configure(p)
	r.resumed(r.clock())
	return nil
}

// unpark takes the recorder back from its readers.
func (r *Recorder) unpark() error {
	for !r.state.CompareAndSwap(uint32(Parked), uint32(Running)) {
		switch State(r.state.Load()) {
		case Running:
			return errors.New("the recorder is running: park it first")
		case Closed:
			return errors.New("the recorder is closed")
		}
		pause()
	}
	r.reader.thread.Store(int32(threadID()))
	return nil
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
