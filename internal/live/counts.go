package live

import "math"

// Counter is one of the things that are counted from one clear to the next.
type Counter int

// The counters. Lengths are in cycles but for SleepMicros.
const (
	Iterations Counter = iota
	IdleIterations
	BusyIterations
	SleepIterations

	UsedCycles // in passes
	IdleCycles // of those, in passes without packets
	BusyCycles // of those, in passes with packets
	GapCycles  // between passes
	SleepCycles
	SleepMicros // what a text has instead of SleepCycles
	UpcallCycles

	RxPackets
	BusyPackets // received up to the moment that BusyCycles are from
	TxPackets
	Drops
	RxDrops // of rings of rx queues
	RxBatches
	TxBatches

	Passes // of packets through the datapath
	PHWOLHits
	MFEXOptHits
	SimpleMatchHits
	EMCHits
	SMCHits
	MegaflowHits
	Upcalls
	LostUpcalls

	Suspicious // iterations, if the target looks for them

	NumCounters
)

// Counts are the values of the counters, as far as they are known.
type Counts struct {
	values [NumCounters]uint64
	known  [NumCounters]bool
}

func (c *Counts) set(n Counter, v uint64) { c.values[n], c.known[n] = v, true }

// Get returns the value of a counter, NaN if it is not known.
func (c *Counts) Get(n Counter) float64 {
	if !c.known[n] {
		return math.NaN()
	}
	return float64(c.values[n])
}

// sub returns what was counted since old; ok is false if a counter is behind old's.
func (c *Counts) sub(old *Counts) (d Counts, ok bool) {
	for n := range NumCounters {
		if !c.known[n] {
			continue
		}
		before := old.values[n] // 0 if it was not known
		if before > c.values[n] {
			return Counts{}, false
		}
		d.set(n, c.values[n]-before)
	}
	return d, true
}
