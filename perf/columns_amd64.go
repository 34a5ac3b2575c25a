//go:build !purego

//lint:file-ignore U1000 some constants are there for assembly, which reads them in go_asm.h

package perf

import (
	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/history"
	"golang.org/x/sys/cpu"
)

// What assembly needs to know of histogram.
const (
	fineShift  = histogram.FineShift
	fineBias   = histogram.FineBias
	fineLinear = histogram.FineLinear
	fineNone   = histogram.FineNone
	fineBlock  = 7 // bits of an index that are not its block's
)

// The assembly works on as many records at once.
const wide = 4

// Its limits: 64 numbers of 26 bits have a sum of 32 bits, and 64 of 46 bits one that a
// float64 holds exactly.
const (
	maxCount  = 1<<26 - 1
	maxCycles = 1<<46 - 1
)

// hasAVX2 is set once, by what the processor and the kernel say.
var hasAVX2 = cpu.X86.HasAVX2

// add adds records to c, which is empty.
func (c *columns) add(recs []history.Record, l *lists) {
	n := 0
	if hasAVX2 && len(recs) >= wide {
		n = len(recs) &^ (wide - 1)
		addAVX2(c, l, &recs[0], n)
		most := max(c.maxRx, c.maxTx, c.maxBatches, c.maxUpcalls, c.maxFill, c.maxDrops, c.maxFull)
		if most > maxCount || c.anyCycles > maxCycles {
			*c, n = columns{}, 0
		}
	}
	c.addGeneric(recs[n:], l, n)
}

// addAVX2 adds n records to c, which is empty; n is a multiple of 4 and not 0.
//
//go:noescape
func addAVX2(c *columns, l *lists, recs *history.Record, n int)
