package history

import "math/bits"

// A Record is one iteration: a pass of the loop over all its rx queues. It fills
// one cache line of 64 bytes, which is all that a pass writes.
//
// Its counts but those of full batches saturate nowhere: a pass that received 2^32 packets would wrap, and
// lasts half a minute at the fastest.
type Record struct {
	End          uint64 // tick at which the pass ended
	Cycles       uint64 // ticks spent in the pass, sleep and the recorder's own work excluded
	UpcallCycles uint64 // ticks of those spent in upcalls
	Sleep        uint64 // ticks slept in the pass

	Rx      uint32 // packets received
	Tx      uint32 // packets sent
	Batches uint32 // rx batches that were not empty
	Upcalls uint32
	Fill    uint32 // highest rx queue fill seen, the batch included
	Drops   uint32 // packets dropped, as the embedder reported
	Full    uint16 // rx batches that were as large as a batch can be, at most 65535
	InRow   uint16 // the most of those in a row that a queue had had by then, from pass to pass
	Flags   Flags
}

// Start returns the tick at which the pass began. If the recorder did its own
// work in mid-pass (before a sleep), the pass begins that much later.
func (r *Record) Start() uint64 { return r.End - r.Cycles - r.Sleep }

// Busy reports whether the pass received or sent anything.
func (r *Record) Busy() bool { return r.Rx|r.Tx != 0 }

// Flags say more of a pass. From the lowest bit on:
//
//	12 bits  1 + the index of the rx queue that took the most time, 0 if unknown
//	 4 bits  kinds of gap between this pass and the one before, a bit each
//	 1 bit   detailed: all fields were recorded, not only the basic ones
//	 1 bit   the clock went backwards in this pass and was held
//	 1 bit   the iteration is suspicious
//	 1 bit   the embedder reported packets that an rx queue's ring dropped
//	 6 bits  1 + the number of the timer that took the longest span, 0 if none
//	 6 bits  the number of bits of the ticks that it took
type Flags uint32

// The parts of Flags.
const (
	queueMask Flags = 1<<12 - 1
	gapShift        = 12
	Detailed  Flags = 1 << 16
	ClockBack Flags = 1 << 17

	Suspicious Flags = 1 << 18

	RxDropped Flags = 1 << 19

	timerShift       = 20
	timerMask  Flags = 1<<6 - 1
	ticksShift       = 26

	// MaxTimers is how many timers can be told apart.
	MaxTimers = int(timerMask)

	// MaxQueues is how many rx queues can be told apart.
	MaxQueues = int(queueMask) - 1
)

// Queue returns the index of the rx queue that took most of the pass, and false if
// that is not known.
func (f Flags) Queue() (int, bool) {
	q := int(f & queueMask)
	return q - 1, q != 0
}

// WithQueue returns f with the slowest queue set to the index q.
func (f Flags) WithQueue(q int) Flags {
	return f&^queueMask | Flags(q+1)&queueMask
}

// WithTimer returns f with the mark of a span that a timer took, if none of more bits
// is there already.
func (f Flags) WithTimer(id int, ticks uint64) Flags {
	n := Flags(min(bits.Len64(ticks), 63))
	if n <= f>>ticksShift || uint(id) >= uint(MaxTimers) {
		return f
	}
	return f&(1<<timerShift-1) | Flags(id+1)<<timerShift | n<<ticksShift
}

// Timer returns the number of the timer that took the longest span of the pass and how
// many ticks that was, right to a third, as only their highest bit is kept; and false if
// no timer took any.
func (f Flags) Timer() (id int, ticks uint64, ok bool) {
	n := f >> ticksShift
	return int(f>>timerShift&timerMask) - 1, 3 << n >> 2, n != 0
}

// After reports whether a gap of kind g lies between this pass and the one before.
func (f Flags) After(g Gap) bool { return f&(1<<(gapShift+g)) != 0 }

// WithGap returns f with the mark of a gap of kind g before the pass.
func (f Flags) WithGap(g Gap) Flags { return f | 1<<(gapShift+g) }

// Gaps returns the marks of gaps alone.
func (f Flags) Gaps() Flags { return f & ((1<<NumGaps - 1) << gapShift) }

// The marks of gaps have four bits.
const _ = uint(4 - NumGaps)

// A Gap is a kind of time that belongs to no pass.
type Gap int

// The kinds of gap.
const (
	Accounting Gap = iota // the recorder summed up its records
	Answering             // the recorder copied a snapshot for a reader
	Reload                // the loop was parked: its polling configuration changed
	Off                   // the level was off
	NumGaps
)

// String returns the kind as reports name it.
func (g Gap) String() string {
	return [NumGaps]string{"accounting", "answering", "reload", "off"}[g]
}
