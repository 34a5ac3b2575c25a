package perf

import (
	"math"

	"github.com/pmdperf/pmdperf/history"
)

// pieceSize is how many rows and records of the histories an answer copies between two
// passes. A pass waits less for it than for the sums.
const pieceSize = 128

// rest is what is still to be copied of an answer: the rows of milliseconds and the
// records from, each before the end. They stay in the rings for much longer than it takes.
type rest struct {
	req             *request // nil if there is nothing
	millis, noMilli uint64
	its, noIt       uint64
}

// serve does at the end of a pass what need not be done in every pass: it accounts
// the records that wait, and answers a reader, at most once a millisecond. The time
// that takes is booked as gaps.
//
//go:noinline
func (r *Recorder) serve(now uint64) {
	copying := r.rest.req != nil
	asked := !copying && r.request.Load() != nil && now >= r.answerAfter
	regular := r.next%pending == 0
	account := asked || regular || r.ring.At(r.next-1).Cycles > r.limit
	if !account && !copying {
		return
	}
	accounted := now
	if account {
		// An early accounting disarms the trigger until the next regular one: with a low
		// threshold there would be one in every pass.
		r.limit = math.MaxUint64
		if regular {
			r.limit = r.detector.Limit()
		}
		r.settle()
		accounted = max(r.clock(), now)
	}
	end := accounted
	if copying {
		r.copyRest(pieceSize)
		end = max(r.clock(), accounted)
	} else if asked {
		// A reader that gave up may have taken its request back.
		if req := r.request.Swap(nil); req != nil {
			r.answer(req, now, pieceSize)
			end = max(r.clock(), accounted)
			r.answerAfter = end + r.milliTicks
		}
	}
	r.arm()
	// Booked only now: a snapshot ends with the last pass.
	flags := history.Flags(0)
	if account {
		r.gap(history.Accounting, accounted-now, accounted)
		flags = flags.WithGap(history.Accounting)
	}
	if end != accounted {
		r.gap(history.Answering, end-accounted, end)
		flags = flags.WithGap(history.Answering)
	}
	r.start, r.mark = end, end
	r.record().Flags = r.flags | flags
}

// arm says which passes serve is called after: those beyond the limit, or all of them
// while there is something to copy.
func (r *Recorder) arm() {
	r.trip = min(r.limit, math.MaxUint64-1) + 1
	if r.rest.req != nil {
		r.trip = 0
	}
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
	r.answer(req, now, math.MaxInt)
	end := max(r.clock(), now)
	r.answerAfter = end + r.milliTicks
	if r.level != Off {
		r.gap(history.Off, end-r.start, end)
		r.begin(end)
		*r.record() = history.Record{Flags: r.flags | r.record().Flags.Gaps().WithGap(history.Off)}
	}
}

// answer does what a reader asks for, but of the histories it copies no more than so many
// rows and records. Nothing waits to be accounted; now is the tick at which a clear takes
// effect. The owner calls it between two passes, or a reader while the owner is parked.
func (r *Recorder) answer(req *request, now uint64, most int) {
	if req.clear {
		r.clear(now)
		r.start = now
	}
	if req.setLevel {
		r.setLevel(req.level)
	}
	if req.suspicion != nil {
		r.detector.Set(*req.suspicion, r.setup.hz, &r.ring, r.next)
		r.limit = r.detector.Limit()
		r.arm()
	}
	if req.usual != 0 {
		r.detector.SetUsual(req.usual)
	}
	if req.into != nil {
		req.short = !r.copyTo(req.into, req.want, now)
	}
	r.rest.req = req
	r.copyRest(most)
}

// copyRest copies up to so many rows and records of an answer's histories, and ends the
// answer after the last of them.
func (r *Recorder) copyRest(most int) {
	c := &r.rest
	s := c.req.into
	if n := min(uint64(most), c.noMilli-c.millis); n > 0 {
		s.Millis = r.sums.millis.AppendRows(s.Millis, c.millis, c.millis+n)
		c.millis += n
		most -= int(n)
	}
	if n := min(uint64(most), c.noIt-c.its); n > 0 {
		s.Iterations = r.ring.Append(s.Iterations, c.its, c.its+n)
		c.its += n
	}
	if c.millis == c.noMilli && c.its == c.noIt {
		req := c.req
		r.rest = rest{}
		r.reader.asked.Store(0)
		req.done.Store(true)
	}
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
// false if they have not. The histories are left to copyRest.
func (r *Recorder) copyTo(s *Snapshot, want Want, now uint64) bool {
	queues := len(r.rx)
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
	for i := range r.rx {
		s.RxQueues = append(s.RxQueues, r.rx[i].stats())
	}
	gone := r.gone
	for i := range r.goneRx {
		gone.add(r.goneRx[i])
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
	s.Iterations, s.Millis = s.Iterations[:0], s.Millis[:0]
	r.rest.its, r.rest.noIt = r.next-recorded, r.next
	r.rest.millis, r.rest.noMilli = sums.millis.Last(min(want.Millis, cap(s.Millis)))
	s.OpenMilli = *sums.millis.Open()
	return true
}

func (q *rxQueue) stats() QueueStats {
	return QueueStats{Queue: q.Queue, Packets: q.packets, BusyCycles: q.cycles[1], IdleCycles: q.cycles[0], Sizes: q.sizes.sum()}
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
