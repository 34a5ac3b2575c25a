package perf

import (
	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/history"
)

// columns are sums over records, with what else of them has to be known.
//
// The fields up to any have the order of those of history.Record, of which assembly
// adds up 32 bytes at a time.
type columns struct {
	_                           uint64 // assembly adds up the ends too
	cycles, upcallCycles, sleep uint64

	rx, tx, batches, upcalls, fill, drops, full uint64
	_                                           uint64 // and flags

	maxRx, maxTx, maxBatches, maxUpcalls, maxFill, maxDrops, maxFull uint32
	_                                                                uint32

	busy, busyCycles uint64 // of records that received or sent
	anyCycles        uint64 // all or-ed
	slowest          uint64 // most cycles
	perPacket        uint64 // sum of cycles / packets, of records that received
	maxPerPacket     uint64

	// The histogram.FineBlocks of cycles and of cycles / packets.
	cyclesBlocks, perPacketBlocks uint64
}

// lists are each record's buckets in the histograms of cycles and of cycles / packets.
type lists struct {
	cycles, perPacket [pending]uint64
}

// addGeneric adds records to c, of which i were added before. Every loop has as many sums
// as registers hold.
func (c *columns) addGeneric(recs []history.Record, l *lists, i int) {
	c.addCycles(recs, l, i)
	var tx, busy, busyCycles, upcallCycles, sleep uint64
	maxTx := c.maxTx
	for k := range recs {
		rec := &recs[k]
		b := notZero(rec.Rx | rec.Tx)
		busyCycles += rec.Cycles & -b
		busy += b
		tx += uint64(rec.Tx)
		maxTx = max(maxTx, rec.Tx)
		upcallCycles += rec.UpcallCycles
		sleep += rec.Sleep
	}
	c.busy += busy
	c.busyCycles += busyCycles
	c.tx += tx
	c.maxTx = maxTx
	c.upcallCycles += upcallCycles
	c.sleep += sleep

	var batches, upcalls, fill, drops, full uint64
	maxBatches, maxUpcalls, maxFill, maxDrops, maxFull := c.maxBatches, c.maxUpcalls, c.maxFill, c.maxDrops, c.maxFull
	for k := range recs {
		rec := &recs[k]
		batches += uint64(rec.Batches)
		maxBatches = max(maxBatches, rec.Batches)
		upcalls += uint64(rec.Upcalls)
		maxUpcalls = max(maxUpcalls, rec.Upcalls)
		fill += uint64(rec.Fill)
		maxFill = max(maxFill, rec.Fill)
		drops += uint64(rec.Drops)
		maxDrops = max(maxDrops, rec.Drops)
		full += uint64(rec.Full)
		maxFull = max(maxFull, uint32(rec.Full))
	}
	c.batches += batches
	c.upcalls += upcalls
	c.fill += fill
	c.drops += drops
	c.full += full
	c.maxBatches, c.maxUpcalls, c.maxFill, c.maxDrops, c.maxFull = maxBatches, maxUpcalls, maxFill, maxDrops, maxFull
}

// addCycles is addGeneric for cycles, and cycles per packet.
func (c *columns) addCycles(recs []history.Record, l *lists, i int) {
	var cycles, rx, blocks uint64
	anyCycles, slowest, maxRx := c.anyCycles, c.slowest, c.maxRx
	for k := range recs {
		n, at := recs[k].Cycles, uint(i+k)%pending
		cycles += n
		anyCycles |= n
		slowest = max(slowest, n)
		rx += uint64(recs[k].Rx)
		maxRx = max(maxRx, recs[k].Rx)
		index := histogram.FineIndex(n)
		l.cycles[at] = uint64(index)
		blocks |= histogram.FineBlock(index)
	}
	c.cycles += cycles
	c.anyCycles, c.slowest = anyCycles, slowest
	c.rx += rx
	c.maxRx = maxRx
	c.cyclesBlocks |= blocks

	var perPacket uint64
	blocks, most := 0, c.maxPerPacket
	for k := range recs {
		rx, at := recs[k].Rx, uint(i+k)%pending
		some := -notZero(rx) // all ones if there were packets
		n := divide(recs[k].Cycles, max(rx, 1)) & some
		perPacket += n
		most = max(most, n)
		index := histogram.FineIndex(n)
		l.perPacket[at] = uint64(index) | histogram.FineNone&^some
		blocks |= histogram.FineBlock(index) & some
	}
	c.perPacket += perPacket
	c.maxPerPacket = most
	c.perPacketBlocks |= blocks
}

// notZero returns 1 if v is not 0, without a branch.
func notZero(v uint32) uint64 { return (uint64(v) + 1<<32 - 1) >> 32 }

// divide returns n / d. A division of floats takes a few cycles where one of 64-bit
// integers takes up to ninety. It is exact below 2^53: there the distance of n/d to
// the next whole number above is at least 1/d, which is more than what rounding to 53
// bits can bridge. More ticks than that, a month of them, count as so many.
func divide(n uint64, d uint32) uint64 {
	return uint64(int64(float64(int64(min(n, 1<<53))) / float64(int64(d))))
}
