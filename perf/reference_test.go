package perf

import (
	"github.com/pmdperf/pmdperf/histogram"
)

// reference is the algorithm that a recorder is usually built as, to measure ours
// against. Open vSwitch's does all of this in every pass: the record of the pass is
// zeroed when it begins; every histogram is added to when it ends, the bin searched from
// the lowest wall on; the record is added field by field to that of the millisecond and
// copied into the history, and the slot behind it is zeroed. Each poll of an rx queue is
// timed by a clock reading before and one after it. The widths of the fields are Open
// vSwitch's.
//
// What it does besides is left out, to ours' disadvantage: it times every send, too, and
// looks at another clock every four microseconds to see whether a millisecond is over.
type reference struct {
	start, last uint64
	counters    [16]uint64
	iterations  uint64
	current     refRecord
	totals      refRecord
	histograms  [histogram.NumMetrics]refHistogram
	queue       [2]uint64
	milliEnd    uint64
	its         [1000]refRecord
	ms          [1000]refRecord
	it, milli   int
}

type refRecord struct {
	at, cycles, busyCycles                        uint64 // of a millisecond: iterations, cycles, ...
	packets, upcalls, upcallCycles, batches, fill uint32
}

func (r *refRecord) add(o *refRecord) {
	r.at += o.at
	r.cycles += o.cycles
	r.busyCycles += o.busyCycles
	r.packets += o.packets
	r.upcalls += o.upcalls
	r.upcallCycles += o.upcallCycles
	r.batches += o.batches
	r.fill += o.fill
}

type refHistogram struct {
	walls [histogram.NumBins - 1]uint32
	bins  [histogram.NumBins]uint64
}

func (h *refHistogram) add(v uint32) {
	for i := range h.walls {
		if v <= h.walls[i] {
			h.bins[i]++
			return
		}
	}
	h.bins[histogram.NumBins-1]++
}

func newReference() *reference {
	r := new(reference)
	for m := range r.histograms {
		for i, w := range histogram.Metric(m).Walls() {
			r.histograms[m].walls[i] = uint32(w)
		}
	}
	r.milliEnd = 2_500_000
	return r
}

// begin begins a pass.
func (r *reference) begin() {
	r.iterations++
	r.current = refRecord{}
	r.start = r.last
}

// polled books the time of the poll of a queue that returned packets.
func (r *reference) polled(began, ended, rx uint64) {
	if rx > 0 {
		r.queue[0] += ended - began
	}
}

// received records a batch.
func (r *reference) received(n, fill uint32) {
	r.counters[0] += uint64(n)
	r.current.batches++
	r.histograms[histogram.PacketsPerBatch].add(n)
	if fill > r.current.fill {
		r.current.fill = fill
	}
}

// end ends a pass at the tick now.
func (r *reference) end(now uint64, rx, tx uint32) {
	c := &r.current
	r.last = now
	cycles := now - r.start
	c.at = r.iterations
	c.cycles = cycles
	c.packets = rx
	if rx+tx > 0 {
		r.counters[1] += cycles
	} else {
		r.counters[2] += cycles
	}
	r.histograms[histogram.CyclesPerIteration].add(uint32(cycles))
	r.histograms[histogram.PacketsPerIteration].add(rx)
	r.counters[3] += uint64(c.upcallCycles)
	if rx > 0 {
		r.histograms[histogram.CyclesPerPacket].add(uint32(cycles / uint64(rx)))
	}
	r.histograms[histogram.UpcallsPerIteration].add(c.upcalls)
	if c.upcalls > 0 {
		r.histograms[histogram.CyclesPerUpcall].add(c.upcallCycles / c.upcalls)
	}
	r.histograms[histogram.QueueFill].add(c.fill)

	ms := &r.ms[r.milli]
	ms.at++
	ms.cycles += cycles
	if rx > 0 {
		ms.busyCycles += cycles
	}
	ms.packets += rx
	ms.upcalls += c.upcalls
	ms.upcallCycles += c.upcallCycles
	ms.batches += c.batches
	ms.fill += c.fill

	r.its[r.it] = *c
	if r.it++; r.it == len(r.its) {
		r.it = 0
	}
	r.its[r.it] = refRecord{}
	if now > r.milliEnd {
		r.totals.add(ms)
		if r.milli++; r.milli == len(r.ms) {
			r.milli = 0
		}
		r.ms[r.milli] = refRecord{}
		r.milliEnd = now + 2_500_000
	}
}
