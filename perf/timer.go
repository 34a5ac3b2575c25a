package perf

import (
	"math"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/perf/tsc"
)

// A Timer measures a span within one pass. Timers nest: the span of an inner timer
// is not part of the outer one's, as it would be counted twice.
type Timer struct {
	start uint64
	outer uint64 // ticks of timers that ended inside the enclosing timer before
}

// StartTimer starts a timer. At level Off it reads no clock.
func (r *Recorder) StartTimer() Timer {
	if r.level == Off {
		return Timer{}
	}
	return r.startTimer(tsc.Now())
}

func (r *Recorder) startTimer(now uint64) Timer {
	t := Timer{start: now, outer: r.inner}
	r.inner = 0
	return t
}

// StopTimer stops the timer started last and returns its ticks, without those of
// timers and sleeps inside it; 0 at level Off.
func (r *Recorder) StopTimer(t Timer) uint64 {
	if t.start == 0 {
		return 0
	}
	return r.stopTimer(t, tsc.Now())
}

func (r *Recorder) stopTimer(t Timer, now uint64) uint64 {
	if now < t.start+r.inner {
		r.hold()
		now = t.start + r.inner
	}
	span := now - t.start
	own := span - r.inner
	r.inner = t.outer + span
	return own
}

// StopNamed stops the timer started last as StopTimer does, and adds it to timer
// id, an index in Config.Timers.
func (r *Recorder) StopNamed(t Timer, id int) uint64 {
	if t.start == 0 {
		return 0
	}
	return r.stopNamed(t, id, tsc.Now())
}

func (r *Recorder) stopNamed(t Timer, id int, now uint64) uint64 {
	own := r.stopTimer(t, now)
	if uint(id) < uint(len(r.sums.timers)) {
		s := &r.sums.timers[id]
		s.Count++
		s.Cycles += own
		if own > s.Max {
			s.Max, s.MaxIteration = own, r.next
		}
		rec := r.record()
		rec.Flags = rec.Flags.WithTimer(id, own)
	}
	return own
}

// SleepBegin says that the loop is about to sleep. The records that wait are
// accounted first, and the rest of an answer is copied, as that costs nothing now. What follows until SleepEnd is sleep
// and no cycles; a queue being polled is charged until here.
func (r *Recorder) SleepBegin() {
	if r.level != Off {
		r.sleepBegin(r.clock())
	}
}

func (r *Recorder) sleepBegin(now uint64) {
	r.stamp(now)
	r.cur = between
	r.account()
	if r.rest.req != nil {
		r.copyRest(math.MaxInt)
		r.arm()
	}
	r.skip(r.clock())
}

// skip takes the time from the last stamp to now out of the pass under way and
// books it as a gap for accounting.
func (r *Recorder) skip(now uint64) {
	now = max(now, r.mark)
	r.gap(history.Accounting, now-r.mark, now)
	r.record().Flags = r.record().Flags.WithGap(history.Accounting)
	d := now - r.mark
	r.start += d
	r.inner += d
	r.mark = now
}

// SleepEnd says that the loop woke up.
func (r *Recorder) SleepEnd() {
	if r.level != Off {
		r.sleepEnd(r.clock())
	}
}

func (r *Recorder) sleepEnd(now uint64) {
	if now < r.mark {
		now = r.hold()
	}
	d := now - r.mark
	r.record().Sleep += d
	r.inner += d
	r.mark = now
}
