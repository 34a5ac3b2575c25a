package perf

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pmdperf/pmdperf/perf/tsc"
	"github.com/pmdperf/pmdperf/suspicious"
)

// Clock returns one instant as a tick and as wall-clock time. Any goroutine may call
// it.
func (r *Recorder) Clock() (ticks uint64, wall time.Time) {
	a := tsc.Take()
	return a.Ticks, a.Wall
}

// ThreadID returns the kernel's number of the thread that called Start or Resume last,
// for probes of why it is slow; 0 before that and on systems other than Linux. Any
// goroutine may call it.
func (r *Recorder) ThreadID() int { return int(r.reader.thread.Load()) }

// TimerNames returns the names of the timers by their number. Any goroutine may call it.
func (r *Recorder) TimerNames() []string { return slices.Clone(r.setup.Timers) }

// Ping asks the owner to end a pass, and changes nothing. It returns nil when the
// owner did, which costs the loop as much as an early accounting, or is parked. Any
// goroutine may call it. It returns a *StalledError if the owner ends no pass before
// ctx ends or, where ctx has no deadline, within a second.
func (r *Recorder) Ping(ctx context.Context) error {
	begun := time.Now()
	err := r.inTurn(ctx, func(ctx context.Context) error {
		_, err := r.ask(ctx, errand{})
		return err
	})
	if _, stalled := errors.AsType[*StalledError](err); err == nil || stalled {
		return err
	}
	// Other readers had all the turns. Where they are being answered, the loop runs.
	if since := r.unanswered(); since > time.Since(begun) {
		return &StalledError{r.setup.Name, since}
	}
	return nil
}

// pollingKept is how many polling configurations are kept for those who look at
// iterations that have passed.
const pollingKept = 8

// publish keeps the rx queues that are polled from the next pass on. The owner calls
// it.
func (r *Recorder) publish(p *Prepared) {
	n := len(p.polled)
	if n == 0 {
		return
	}
	p.polled[n-1].From = r.next
	// One that nothing was polled with leaves no trace.
	if n > 1 && p.polled[n-2].From == r.next {
		p.polled[n-2] = p.polled[n-1]
		n--
	}
	p.polled = p.polled[max(0, n-pollingKept):n]
	r.reader.polled.Store(&p.polled)
}

// Polled returns which rx queues iterations first to last polled, oldest first. The
// numbers in the iterations' flags are indices into the list that was in force. Of
// the lists the last eight are known. Any goroutine may call it; it never waits, and
// what it returns must not be changed.
func (r *Recorder) Polled(first, last uint64) []suspicious.Polled {
	list := *r.reader.polled.Load()
	from, to := 0, len(list)
	for from+1 < to && list[from+1].From <= first {
		from++
	}
	for to > from && list[to-1].From > last {
		to--
	}
	return list[from:to:to]
}
