package perf

import (
	"github.com/pmdperf/pmdperf/histogram"
)

// reference is the algorithm that a recorder is usually built as, to measure ours
// against: all histograms are updated in every pass, bins are searched from the
// lowest wall on, the records of the pass and of the millisecond are structs that
// are zeroed and added to field by field, and each poll of an rx queue is timed by a
// clock reading before and one after it.
type reference struct {
	walls [histogram.NumMetrics]histogram.Walls
	bins  [histogram.NumMetrics][histogram.NumBins]uint64

	start, milliEnd uint64
	counters        [16]uint64
	totals          refSums
	current         refSums
	queueBusy       uint64
	its             [1000]refSums
	ms              [1000]refSums
	it, milli       int
}

type refSums struct {
	tick, iterations, cycles, busyCycles, packets, batches, upcalls, upcallCycles, fill uint64
}

func newReference() *reference {
	r := new(reference)
	for m := range r.walls {
		r.walls[m] = histogram.Metric(m).Walls()
	}
	r.milliEnd = 2_500_000
	return r
}

func (r *reference) add(m histogram.Metric, v uint64) {
	i := 0
	for i < len(r.walls[m]) && v > r.walls[m][i] {
		i++
	}
	r.bins[m][i]++
}

// polled books the time of the poll of a queue that returned packets.
func (r *reference) polled(began, ended, rx uint64) {
	if rx > 0 {
		r.queueBusy += ended - began
	}
}

func (r *reference) batch(n, fill uint64) {
	r.current.packets += n
	r.current.batches++
	r.current.fill = max(r.current.fill, fill)
	r.add(histogram.PacketsPerBatch, n)
}

func (r *reference) end(now, rx, tx uint64) {
	c := &r.current
	c.tick = now
	c.cycles = now - r.start
	r.start = now
	c.packets = rx
	r.counters[0] += rx
	r.counters[1] += tx
	if rx+tx > 0 {
		r.counters[2] += c.cycles
		c.busyCycles = c.cycles
	} else {
		r.counters[3] += c.cycles
		r.counters[4]++
	}
	r.counters[5]++
	r.add(histogram.CyclesPerIteration, c.cycles)
	r.add(histogram.PacketsPerIteration, rx)
	r.counters[6] += c.upcallCycles
	if rx > 0 {
		r.add(histogram.CyclesPerPacket, c.cycles/rx)
	}
	r.add(histogram.UpcallsPerIteration, c.upcalls)
	r.add(histogram.QueueFill, c.fill)
	for _, to := range []*refSums{&r.totals, &r.ms[r.milli]} {
		to.iterations++
		to.cycles += c.cycles
		to.busyCycles += c.busyCycles
		to.packets += c.packets
		to.batches += c.batches
		to.upcalls += c.upcalls
		to.upcallCycles += c.upcallCycles
		to.fill += c.fill
	}
	r.its[r.it] = *c
	if r.it++; r.it == len(r.its) {
		r.it = 0
	}
	*c = refSums{}
	if now > r.milliEnd {
		r.ms[r.milli].tick = now
		if r.milli++; r.milli == len(r.ms) {
			r.milli = 0
		}
		r.ms[r.milli] = refSums{}
		r.milliEnd = now + 2_500_000
	}
}
