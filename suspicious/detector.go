package suspicious

import (
	"math"
	"math/bits"

	"github.com/pmdperf/pmdperf/history"
)

// copyAtOnce is how many records a capture takes over at a time, so that no pass
// waits long for it.
const copyAtOnce = 64

// Counts are what a detector counted.
type Counts struct {
	Iterations  uint64             // suspicious iterations
	ByReason    [NumReasons]uint64 // an iteration counts for each of its reasons
	Merged      uint64             // of them, those in the neighborhood of another
	NotCaptured uint64             // of them, those for which no capture was free
}

// A Detector finds suspicious iterations. It belongs to the owner of the records, but
// for Take and Release.
type Detector struct {
	on     bool
	extend bool
	before uint64
	after  uint64
	limits thresholds
	oldest uint64 // first iteration that a neighborhood may have; off: none
	counts Counts

	// What rings dropped in the iterations that were not looked at yet, at most 64, by
	// their number.
	rxDrops [64]struct{ iteration, packets uint64 }

	settings Settings
	current  *capture // whose neighborhood the last iteration may be in, or nil
	captures []capture
	taken    int // of captures: where Take looks next; the supervisor's
}

// New returns a detector that is off, with memory for the given number of events
// that wait for the supervisor.
func New(captures int) *Detector {
	return &Detector{captures: make([]capture, captures), settings: Default(), oldest: math.MaxUint64}
}

// Set changes the settings, which must be right, between two passes: next is the
// number of the next iteration, of hz ticks a second. A neighborhood that is not
// complete ends with what is there.
func (d *Detector) Set(s Settings, hz float64, ring *history.Ring, next uint64) {
	d.Flush(ring, next)
	d.settings = s
	d.on, d.extend = s.On, s.Extend
	d.before, d.after = uint64(s.Before), uint64(s.After)
	d.limits = s.thresholds(hz)
	if !s.On {
		// A neighborhood never has iterations of before it was switched on.
		d.oldest = math.MaxUint64
	} else if d.oldest == math.MaxUint64 {
		d.oldest = next
	}
}

// On reports whether the detector is on.
func (d *Detector) On() bool { return d.on }

// Settings returns the settings.
func (d *Detector) Settings() Settings { return d.settings }

// Counts returns what was counted since the last ResetCounts.
func (d *Detector) Counts() Counts { return d.counts }

// ResetCounts sets the counts to nothing.
func (d *Detector) ResetCounts() { d.counts = Counts{} }

// Limit returns the ticks of an iteration above which it is suspicious by itself.
func (d *Detector) Limit() uint64 {
	if !d.on {
		return math.MaxUint64
	}
	return min(d.limits[Cycles], d.limits[PollGap], d.limits[Adaptive])
}

// SetUsual says, between two passes, how many ticks an iteration takes at most as a
// rule.
func (d *Detector) SetUsual(ticks uint64) {
	if d.settings.Adaptive == 0 {
		return
	}
	hi, lo := bits.Mul64(ticks, uint64(d.settings.Adaptive))
	if hi != 0 {
		lo = math.MaxUint64
	}
	d.limits[Adaptive] = lo
}

// RxDropped says that rings dropped packets, in iteration n, the one under way.
func (d *Detector) RxDropped(n, packets uint64) {
	s := &d.rxDrops[n%uint64(len(d.rxDrops))]
	if s.iteration != n {
		s.iteration, s.packets = n, 0
	}
	s.packets += packets
}

// Look looks at the records of iterations first, first+1 and so on; end is the tick at
// which the iteration before them ended.
//
// Every iteration gets a few compares that hardly ever succeed and let through a
// little more than what is suspicious; found compares exactly.
func (d *Detector) Look(recs []history.Record, first, end uint64) {
	l := &d.limits
	anyTime := min(l[Cycles], l[PollGap], l[Adaptive])
	anyUpcalls := l[Upcalls]
	if l[CyclesPerUpcall] != math.MaxUint64 {
		anyUpcalls = 0
	}
	perPacket := min(l[CyclesPerPacket], math.MaxInt32+1)
	for i := range recs {
		rec := &recs[i]
		took := rec.Cycles + rec.Sleep
		gap := rec.End - end - took
		end = rec.End
		// With no packet the product is 2^63 at least, as the threshold is then taken
		// 2^32 times.
		packets := uint64(rec.Rx-1) + 1
		if took > anyTime || gap > l[Gap] || rec.Cycles > perPacket*packets || uint64(rec.Fill) > l[QueueFill] ||
			uint64(rec.Upcalls) > anyUpcalls || rec.Flags&history.RxDropped != 0 || uint64(rec.Drops) > l[Drops] || uint64(rec.InRow) > l[FullBatches] {
			d.found(rec, first+uint64(i), gap)
		}
	}
}

// average returns total / n rounded up, so that it is above a limit just if total is
// above n times the limit, and 0 for no n.
func average(total uint64, n uint32) uint64 {
	if n == 0 {
		return 0
	}
	return total/uint64(n) + min(total%uint64(n), 1)
}

// found deals with iteration n if it is suspicious: gap is the time before it.
//
//go:noinline
func (d *Detector) found(rec *history.Record, n, gap uint64) {
	var e Event
	e.Iteration = n
	e.Values = [NumReasons]uint64{
		Cycles: rec.Cycles, PollGap: rec.Cycles + rec.Sleep, QueueFill: uint64(rec.Fill), Upcalls: uint64(rec.Upcalls),
		CyclesPerPacket: average(rec.Cycles, rec.Rx), CyclesPerUpcall: average(rec.UpcallCycles, rec.Upcalls),
		FullBatches: uint64(rec.InRow), Drops: uint64(rec.Drops), Gap: gap, Adaptive: rec.Cycles,
	}
	if s := &d.rxDrops[n%uint64(len(d.rxDrops))]; rec.Flags&history.RxDropped != 0 && s.iteration == n {
		e.Values[RxDrops] = s.packets
	}
	for r := range NumReasons {
		if e.Values[r] > d.limits[r] {
			e.Reasons |= 1 << r
			e.Thresholds[r] = d.limits[r]
			d.counts.ByReason[r]++
		} else {
			e.Values[r] = 0
		}
	}
	if e.Reasons == 0 {
		return
	}
	rec.Flags |= history.Suspicious
	d.counts.Iterations++

	first := max(min(n, d.oldest), n-min(n, d.before))
	// One that is complete belongs to the supervisor.
	if c := d.current; c != nil && c.state.Load() == filling && first <= c.last {
		d.counts.Merged++
		c.merge(Mark{n, e.Reasons})
		if d.extend {
			c.last = min(max(c.last, n+d.after), c.event.First+MaxRecords-1)
		}
		return
	}
	d.current = nil
	for i := range d.captures {
		if c := &d.captures[i]; c.state.Load() == free {
			c.begin(&e, first, n+d.after)
			d.current = c
			return
		}
	}
	d.counts.NotCaptured++
}

// Advance copies what captures want of the records before iteration end, at most 64
// each.
func (d *Detector) Advance(ring *history.Ring, end uint64) {
	for i := range d.captures {
		if c := &d.captures[i]; c.state.Load() == filling {
			c.advance(ring, end, copyAtOnce)
		}
	}
}

// Flush completes all captures with the records that there are before iteration end.
func (d *Detector) Flush(ring *history.Ring, end uint64) {
	for i := range d.captures {
		if c := &d.captures[i]; c.state.Load() == filling {
			c.last = min(c.last, end-1)
			c.advance(ring, end, MaxRecords)
		}
	}
	d.current = nil
}

// Take returns an event that is complete, or nil. One goroutine at a time may call
// it, not necessarily the owner. The event is the caller's until Release.
func (d *Detector) Take() *Event {
	for range d.captures {
		c := &d.captures[d.taken%len(d.captures)]
		if c.state.Load() == complete {
			return &c.event
		}
		d.taken++
	}
	return nil
}

// Release gives back the event that Take returned last.
func (d *Detector) Release() {
	c := &d.captures[d.taken%len(d.captures)]
	d.taken++
	c.state.Store(free)
}
