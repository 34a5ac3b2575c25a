package perf

import (
	"math"

	"github.com/pmdperf/pmdperf/history"
)

// serve does at the end of a pass what need not be done in every pass: it accounts
// the records that wait, and answers a reader, at most once a millisecond. The time
// that takes is booked as gaps.
//
//go:noinline
func (r *Recorder) serve(now uint64) {
	asked := r.request.Load() != nil && now >= r.answerAfter
	if !asked && r.next%pending != 0 && r.ring.At(r.next-1).Cycles <= r.trip {
		return
	}
	// An early accounting disarms the trigger until the next regular one: with a low
	// threshold there would be one in every pass.
	r.trip = math.MaxUint64
	if r.next%pending == 0 {
		r.trip = r.detector.Limit()
	}
	r.settle()
	accounted := max(r.clock(), now)
	end := accounted
	if asked {
		// A reader that gave up may have taken its request back.
		if req := r.request.Swap(nil); req != nil {
			r.answer(req, now)
			end = max(r.clock(), accounted)
			r.answerAfter = end + r.milliTicks
		}
	}
	// Booked only now: a snapshot ends with the last pass.
	r.gap(history.Accounting, accounted-now, accounted)
	flags := history.Flags(0).WithGap(history.Accounting)
	if end != accounted {
		r.gap(history.Answering, end-accounted, end)
		flags = flags.WithGap(history.Answering)
	}
	r.start, r.mark = end, end
	r.record().Flags = r.flags | flags
}

// serveOff answers a reader while the level is off.
//
//go:noinline
func (r *Recorder) serveOff() {
	now := r.clock()
	if now < r.answerAfter && r.answerAfter-now <= r.milliTicks {
		return // and not if the clock went far back
	}
	now = max(now, r.start)
	req := r.request.Swap(nil)
	if req == nil {
		return
	}
	r.answer(req, now)
	end := max(r.clock(), now)
	r.answerAfter = end + r.milliTicks
	if r.level != Off {
		r.gap(history.Off, end-r.start, end)
		r.begin(end)
		*r.record() = history.Record{Flags: r.flags | r.record().Flags.Gaps().WithGap(history.Off)}
	}
}

// answer does what a reader asks for. Nothing waits to be accounted; now is the
// tick at which a clear takes effect. The owner calls it between two passes, or a
// reader while the owner is parked.
func (r *Recorder) answer(req *request, now uint64) {
	if req.clear {
		r.clear(now)
		r.start = now
	}
	if req.setLevel {
		r.setLevel(req.level)
	}
	if req.suspicion != nil {
		r.detector.Set(*req.suspicion, r.setup.hz, &r.ring, r.next)
		r.trip = r.detector.Limit()
	}
	if req.into != nil {
		req.short = !r.copyTo(req.into, req.want, now)
	}
	r.reader.asked.Store(0)
	req.done.Store(true)
}

// setLevel changes the level between two passes. While the level is off the loop
// goes on to count; what it counts is thrown away when the level changes again.
func (r *Recorder) setLevel(l Level) {
	n := r.numCounts()
	switch {
	case l == Off && r.level != Off:
		copy(r.countsBefore[:n], r.counts[:n])
		r.cur = between
		r.detector.Flush(&r.ring, r.next)
	case l != Off && r.level == Off:
		copy(r.counts[:n], r.countsBefore[:n])
	}
	r.level = l
	r.flags = 0
	if l == Detailed {
		r.flags = history.Detailed
	}
}

// copyTo copies what is wanted into s, whose slices must have the room; it returns
// false if they have not.
func (r *Recorder) copyTo(s *Snapshot, want Want, now uint64) bool {
	queues := len(r.queues())
	if cap(s.RxQueues) < queues || cap(s.TxQueues) < len(r.tx) || cap(s.usage) < queues*UsageIntervals {
		return false
	}
	sums := &r.sums
	s.Level, s.Isolated, s.MaxSleep = r.level, r.setup.Polling.Isolated, r.setup.Polling.MaxSleep
	s.Since, s.Until, s.Now = sums.since, r.start, now
	s.Totals, s.Gaps, s.ClockBack = sums.totals, sums.gaps, sums.clockBack
	sums.reloads.CopyTo(&s.Reloads)

	counts := &r.counts
	if r.level == Off {
		counts = &r.countsBefore
	}
	copy(s.Counts[:], counts[:])
	for i := range s.Counters {
		s.Counters[i].Count = counts[NumBuiltin+i]
	}
	for i := range s.Timers {
		name := s.Timers[i].Name
		s.Timers[i] = sums.timers[i]
		s.Timers[i].Name = name
	}

	sums.cycles.CopyTo(&s.Cycles)
	sums.packets.CopyTo(&s.Packets)
	sums.cyclesPerPacket.CopyTo(&s.CyclesPerPacket)
	r.batchPackets.CopyTo(&s.BatchPackets)
	sums.queueFill.CopyTo(&s.QueueFill)
	sums.upcalls.CopyTo(&s.Upcalls)
	sums.cyclesPerUpcall.CopyTo(&s.CyclesPerUpcall)
	s.Suspicious, s.Suspicion = r.detector.Counts(), r.detector.Settings()
	s.Slowest, s.SlowestIteration = sums.slowest, sums.slowestIteration

	s.RxQueues = s.RxQueues[:0]
	for i := range r.queues() {
		s.RxQueues = append(s.RxQueues, r.queues()[i].stats())
	}
	gone := r.gone
	for i := range r.goneRx {
		gone.add(&r.goneRx[i])
	}
	s.Gone = gone.stats()
	s.TxQueues = s.TxQueues[:0]
	for i := range r.tx {
		q := &r.tx[i]
		s.TxQueues = append(s.TxQueues, QueueStats{Queue: q.Queue, Packets: q.packets, Sizes: q.sizes.sum()})
	}
	r.usage.copyTo(s)

	s.NextIteration = r.next
	recorded := min(r.next-sums.cleared, history.RingSize-1, uint64(max(0, want.Iterations)), uint64(cap(s.Iterations)))
	s.Iterations = r.ring.Append(s.Iterations[:0], r.next-recorded, r.next)
	s.Millis = sums.millis.Append(s.Millis[:0], min(want.Millis, cap(s.Millis)))
	s.OpenMilli = *sums.millis.Open()
	return true
}

func (q *rxQueue) stats() QueueStats {
	return QueueStats{Queue: q.Queue, Packets: q.packets, BusyCycles: q.busy, IdleCycles: q.idle, Sizes: q.sizes.sum()}
}

// copyTo copies the complete intervals into s, oldest first.
func (u *usageIntervals) copyTo(s *Snapshot) {
	s.Usage, s.usage = s.Usage[:0], s.usage[:0]
	for n := u.done - min(u.done, UsageIntervals); n != u.done; n++ {
		row := &u.ring[n%UsageIntervals]
		first := len(s.usage)
		s.usage = append(s.usage, row.queues...)
		s.Usage = append(s.Usage, Usage{row.ticks, row.busy, row.idle, row.sleep, row.gap, s.usage[first:]})
	}
}
