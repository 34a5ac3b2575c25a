package perf

import (
	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/history"
)

// sums are what accounting adds records to. They belong to the owner, or to a
// reader while the owner is parked.
type sums struct {
	since uint64 // tick of the last clear
	until uint64 // end of the last record accounted

	totals    Totals
	gaps      [history.NumGaps]GapStats
	reloads   histogram.Fine
	clockBack uint64
	timers    []TimerStats

	cycles          histogram.Binned
	packets         histogram.Small
	cyclesPerPacket histogram.Binned
	queueFill       histogram.Small
	upcalls         histogram.Small
	cyclesPerUpcall histogram.Binned

	slowest          history.Record
	slowestIteration uint64

	millis   history.Millis
	milliEnd uint64 // tick from which on a pass that ends completes the open row
	cleared  uint64 // first iteration after the last clear
}

// account adds the records that wait to the sums. They are at most 64 and lie
// side by side, as they are accounted whenever the number of the next is a multiple
// of 64.
func (r *Recorder) account() {
	s := &r.sums
	for recs := r.ring.Span(r.accounted, r.next); len(recs) > 0; {
		// Those that belong to the open millisecond row, and perhaps complete it.
		n := len(recs)
		cut := recs[n-1].End >= s.milliEnd
		if cut {
			for n = 1; recs[n-1].End < s.milliEnd; n++ {
			}
		}
		if r.detector.On() {
			r.detector.Look(recs[:n], r.accounted, s.until)
		}
		r.addRow(recs[:min(n, pending)])
		if cut {
			s.millis.Cut()
			s.milliEnd = s.until + r.milliTicks
		}
		recs = recs[n:]
	}
	if r.detector.On() {
		r.detector.Advance(&r.ring, r.accounted)
	}
}

// settle accounts what waits, between two passes. Only then do the cycles of queues,
// which every stamp adds to, agree with those of passes, so that an interval of
// usage can end.
func (r *Recorder) settle() {
	r.account()
	if r.sums.until >= r.usage.end {
		r.usage.cut(r)
	}
}

// addRow adds records that belong to one millisecond row to the sums: at least one
// and at most 64. Every sum has a loop that keeps it in a register; what goes into a
// histogram is put side by side first.
func (r *Recorder) addRow(recs []history.Record) {
	s := &r.sums
	cycles, perPacket := &r.scratch[0], &r.scratch[1]
	received := uint(0)
	for i := range recs {
		rec := &recs[i]
		c, n := rec.Cycles, rec.Rx
		cycles[uint(i)%pending] = c
		s.packets.Add(uint64(n))
		perPacket[received%pending] = divide(c, max(n, 1))
		received += uint(notZero(n))
	}
	var busyCycles, busy, rx, tx, sleep, slept, drops uint64
	for i := range recs {
		rec := &recs[i]
		b := notZero(rec.Rx | rec.Tx)
		busyCycles += rec.Cycles & -b
		busy += b
		rx += uint64(rec.Rx)
		tx += uint64(rec.Tx)
		if rec.Sleep|uint64(rec.Drops) != 0 {
			sleep += rec.Sleep
			if rec.Sleep != 0 {
				slept++
			}
			drops += uint64(rec.Drops)
		}
	}
	n := uint64(len(recs))
	sum, top := s.cycles.AddAll(cyclesBinner, cycles[:n])
	if top > s.slowest.Cycles {
		for i := range recs {
			if recs[i].Cycles > s.slowest.Cycles {
				s.slowest, s.slowestIteration = recs[i], r.accounted+uint64(i)
			}
		}
	}
	r.accounted += n

	t := &s.totals
	t.Iterations += n
	t.BusyIterations += busy
	t.SleepIterations += slept
	t.Cycles += sum
	t.BusyCycles += busyCycles
	t.Sleep += sleep
	t.RxPackets += rx
	t.TxPackets += tx
	t.Drops += drops

	m := s.millis.Open()
	m.End = recs[n-1].End
	m.Duration += m.End - s.until
	m.Cycles += sum
	m.BusyCycles += busyCycles
	m.Sleep += sleep
	m.Gap = m.Duration - m.Cycles - m.Sleep
	m.Iterations += uint32(n)
	m.BusyIterations += uint32(busy)
	m.Rx += uint32(rx)
	m.Tx += uint32(tx)
	m.Drops += uint32(drops)
	s.until = m.End

	if r.level == Detailed {
		s.cyclesPerPacket.AddAll(cyclesPerPacketBinner, perPacket[:received])
		r.addDetails(recs, m)
	}
}

// notZero returns 1 if v is not 0, without a branch.
func notZero(v uint32) uint64 { return (uint64(v) + 1<<32 - 1) >> 32 }

// addDetails adds what is recorded at level Detailed only.
func (r *Recorder) addDetails(recs []history.Record, m *history.Milli) {
	fill, upcalls := &r.scratch[0], &r.scratch[1]
	var batches, full, sumUpcalls, upcallCycles, sumFill uint64
	for i := range recs {
		rec := &recs[i]
		batches += uint64(rec.Batches)
		full += uint64(rec.Full)
		f, u := uint64(rec.Fill), uint64(rec.Upcalls)
		sumFill += f
		fill[uint(i)%pending] = f
		sumUpcalls += u
		upcalls[uint(i)%pending] = u
		upcallCycles += rec.UpcallCycles
	}
	n := uint64(len(recs))
	t := &r.sums.totals
	t.DetailIterations += n
	t.RxBatches += batches
	t.FullBatches += full
	t.UpcallCycles += upcallCycles
	m.Batches += uint32(batches)
	m.Upcalls += uint32(sumUpcalls)
	m.UpcallCycles += upcallCycles
	m.SumFill += sumFill
	// Mostly there is no upcall, and few kinds of queue tell their fill.
	if sumFill == 0 {
		r.sums.queueFill.AddZeros(n)
	} else {
		r.sums.queueFill.AddAll(fill[:n])
		for _, f := range fill[:n] {
			m.MaxFill = max(m.MaxFill, uint32(f))
		}
	}
	if sumUpcalls == 0 {
		r.sums.upcalls.AddZeros(n)
	} else {
		r.sums.upcalls.AddAll(upcalls[:n])
	}
}

// divide returns n / d. A division of floats takes a few cycles where one of 64-bit
// integers takes up to ninety. It is exact below 2^53: there the distance of n/d to
// the next whole number above is at least 1/d, which is more than what rounding to 53
// bits can bridge. More ticks than that, a month of them, count as so many.
func divide(n uint64, d uint32) uint64 {
	return uint64(int64(float64(int64(min(n, 1<<53))) / float64(int64(d))))
}

// gap books ticks that belong to no pass and ended at the tick end.
func (r *Recorder) gap(kind history.Gap, ticks, end uint64) {
	g := &r.sums.gaps[kind]
	if g.Count == 0 || ticks < g.Min {
		g.Min = ticks
	}
	if g.Count == 0 || ticks > g.Max {
		g.Max, g.MaxAt = ticks, end
	}
	g.Count++
	g.Ticks += ticks
	if kind == history.Reload {
		r.sums.reloads.Add(ticks)
	}
}

// clear forgets all sums and begins anew at the tick now, where the last pass
// ended. What it zeroes is what was written since the last clear, so that it costs
// no more than copying it. Nothing may wait to be accounted.
func (r *Recorder) clear(now uint64) {
	r.usage.keep(r)
	s := &r.sums
	s.since, s.until = now, now
	s.totals = Totals{}
	s.gaps = [history.NumGaps]GapStats{}
	s.reloads.Reset()
	s.clockBack = 0
	for i := range s.timers {
		s.timers[i] = TimerStats{}
	}
	s.cycles.Reset()
	s.packets.Reset()
	s.cyclesPerPacket.Reset()
	s.queueFill.Reset()
	s.upcalls.Reset()
	s.cyclesPerUpcall.Reset()
	r.batchPackets.Reset()
	s.slowest, s.slowestIteration = history.Record{}, 0
	s.millis.Reset()
	s.milliEnd = now + r.milliTicks
	s.cleared = r.next
	r.detector.ResetCounts()
	clear(r.counts[:r.numCounts()])
	clear(r.countsBefore[:r.numCounts()])
	for i := range r.rx {
		q := &r.rx[i]
		*q = rxQueue{Queue: q.Queue}
	}
	for i := range r.tx {
		q := &r.tx[i]
		*q = txQueue{Queue: q.Queue}
	}
	r.gone, r.goneRx, r.goneTx = rxQueue{}, nil, nil
}

// numCounts returns how many counters there are.
func (r *Recorder) numCounts() int { return NumBuiltin + len(r.setup.Counters) }
