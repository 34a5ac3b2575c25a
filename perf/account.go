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
// and at most 64.
func (r *Recorder) addRow(recs []history.Record) {
	s, l := &r.sums, &r.lists
	var c columns
	c.add(recs, l)
	n := uint64(len(recs))
	if c.slowest > s.slowest.Cycles {
		for i := range recs {
			if recs[i].Cycles > s.slowest.Cycles {
				s.slowest, s.slowestIteration = recs[i], r.accounted+uint64(i)
			}
		}
	}
	r.accounted += n
	slept := uint64(0)
	if c.sleep != 0 {
		for i := range recs {
			if recs[i].Sleep != 0 {
				slept++
			}
		}
	}

	t := &s.totals
	t.Iterations += n
	t.BusyIterations += c.busy
	t.SleepIterations += slept
	t.Cycles += c.cycles
	t.BusyCycles += c.busyCycles
	t.Sleep += c.sleep
	t.RxPackets += c.rx
	t.TxPackets += c.tx
	t.Drops += c.drops

	m := s.millis.Open()
	m.End = recs[n-1].End
	m.Duration += m.End - s.until
	m.Cycles += c.cycles
	m.BusyCycles += c.busyCycles
	m.Sleep += c.sleep
	m.Gap = m.Duration - m.Cycles - m.Sleep
	m.Iterations += uint32(n)
	m.BusyIterations += uint32(c.busy)
	m.Rx += uint32(c.rx)
	m.Tx += uint32(c.tx)
	m.Drops += uint32(c.drops)
	s.until = m.End

	s.cycles.Note(c.cycles, c.slowest, c.cyclesBlocks)
	if r.level == Detailed {
		t.DetailIterations += n
		t.RxBatches += c.batches
		t.FullBatches += c.full
		t.UpcallCycles += c.upcallCycles
		m.Batches += uint32(c.batches)
		m.Upcalls += uint32(c.upcalls)
		m.UpcallCycles += c.upcallCycles
		m.SumFill += c.fill
		s.cyclesPerPacket.Note(c.perPacket, c.maxPerPacket, c.perPacketBlocks)
		m.MaxFill = max(m.MaxFill, c.maxFill)
	}
	r.tally(recs, &c)
}

// tally adds records to the histograms. Where all small integers are small, as nearly
// always, all histograms are written in one loop: to add to a counter that was added to
// just before takes a while, in which the others are added to.
func (r *Recorder) tally(recs []history.Record, c *columns) {
	s, l := &r.sums, &r.lists
	if r.level == Detailed && c.maxRx < histogram.SmallExact && c.maxFill < histogram.SmallExact {
		packets, fill := s.packets.Exact(), s.queueFill.Exact()
		for k := range recs {
			rec, i := &recs[k], l.cycles[uint(k)%pending]
			packets[rec.Rx%histogram.SmallExact]++
			fill[rec.Fill%histogram.SmallExact]++
			if s.cycles.AddIndexed(cyclesBinner, i) {
				s.cycles.AddBeyond(cyclesBinner, i, rec.Cycles)
			}
			i = l.perPacket[uint(k)%pending]
			if s.cyclesPerPacket.AddIndexed(cyclesPerPacketBinner, i) {
				s.cyclesPerPacket.AddBeyond(cyclesPerPacketBinner, i, divide(rec.Cycles, rec.Rx))
			}
		}
		s.packets.Note(uint64(c.maxRx))
		s.queueFill.Note(uint64(c.maxFill))
	} else {
		for k := range recs {
			rec, i := &recs[k], l.cycles[uint(k)%pending]
			s.packets.Add(uint64(rec.Rx))
			if s.cycles.AddIndexed(cyclesBinner, i) {
				s.cycles.AddBeyond(cyclesBinner, i, rec.Cycles)
			}
			if r.level != Detailed {
				continue
			}
			s.queueFill.Add(uint64(rec.Fill))
			i = l.perPacket[uint(k)%pending]
			if s.cyclesPerPacket.AddIndexed(cyclesPerPacketBinner, i) {
				s.cyclesPerPacket.AddBeyond(cyclesPerPacketBinner, i, divide(rec.Cycles, rec.Rx))
			}
		}
	}
	if r.level != Detailed {
		return
	}
	if c.upcalls == 0 {
		s.upcalls.AddN(0, uint64(len(recs)))
	} else {
		for i := range recs {
			s.upcalls.Add(uint64(recs[i].Upcalls))
		}
	}
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
	if len(r.goneRx)+len(r.goneTx) > 0 {
		r.queues = nil
	}
	r.gone, r.goneRx, r.goneTx = rxQueue{}, nil, nil
	r.nowhere = rxQueue{}
}

// numCounts returns how many counters there are.
func (r *Recorder) numCounts() int { return NumBuiltin + len(r.setup.Counters) }
