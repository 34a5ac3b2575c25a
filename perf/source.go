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
func (r *Recorder) publish(p *Polling) {
	queues := make([]suspicious.Queue, len(p.RxQueues))
	for i, q := range p.RxQueues {
		queues[i] = suspicious.Queue{Port: q.Port, ID: q.ID, Size: q.Size}
	}
	var kept []suspicious.Polled
	if list := r.reader.polled.Load(); list != nil {
		kept = slices.Clone(*list)
	}
	if n := len(kept); n > 0 && slices.Equal(kept[n-1].Queues, queues) {
		return
	}
	kept = append(kept, suspicious.Polled{From: r.next, Queues: queues})
	// One that nothing was polled with leaves no trace.
	if n := len(kept); n > 1 && kept[n-2].From == r.next {
		kept = slices.Delete(kept, n-2, n-1)
	}
	kept = kept[max(0, len(kept)-pollingKept):]
	r.reader.polled.Store(&kept)
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
