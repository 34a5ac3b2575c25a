package perf

import (
	"math"
	"testing"

	"github.com/pmdperf/pmdperf/history"
	"pgregory.net/rapid"
)

// records draws n records: numbers as loops make them, and such as are at an edge of
// what some instruction can hold.
func records(t *rapid.T, n int) []history.Record {
	times := rapid.OneOf(rapid.Uint64Range(0, 300), rapid.Uint64Range(0, 1<<20), rapid.Uint64Range(0, 1<<46),
		rapid.SampledFrom([]uint64{0, 127, 128, 255, 256, 1<<46 - 1, 1 << 46, 1 << 48, 1<<52 - 1, 1 << 52, 1<<53 + 1, 1 << 63, math.MaxUint64}))
	counts := rapid.OneOf(rapid.Just(uint32(0)), rapid.Uint32Range(0, 40), rapid.Uint32Range(0, 1<<26),
		rapid.SampledFrom([]uint32{1023, 1024, 1<<26 - 1, 1 << 26, 1<<31 - 1, 1 << 31, math.MaxUint32}))
	if rapid.Bool().Draw(t, "small times") {
		times = rapid.OneOf(rapid.Uint64Range(0, 300), rapid.Uint64Range(0, 1<<46-1))
	}
	if rapid.Bool().Draw(t, "small counts") {
		counts = rapid.OneOf(rapid.Uint32Range(0, 40), rapid.Uint32Range(0, 1<<26-1))
	}
	recs := make([]history.Record, n)
	for i := range recs {
		recs[i] = history.Record{
			End: times.Draw(t, "end"), Cycles: times.Draw(t, "cycles"), UpcallCycles: times.Draw(t, "upcall cycles"), Sleep: times.Draw(t, "sleep"),
			Rx: counts.Draw(t, "rx"), Tx: counts.Draw(t, "tx"), Batches: counts.Draw(t, "batches"), Upcalls: counts.Draw(t, "upcalls"),
			Fill: counts.Draw(t, "fill"), Drops: counts.Draw(t, "drops"), Full: uint16(counts.Draw(t, "full")), InRow: rapid.Uint16().Draw(t, "in row"), Flags: history.Flags(counts.Draw(t, "flags")),
		}
	}
	return recs
}

// The columns that a machine adds up its own way are those that Go adds up, and the
// lists are, too.
func TestColumnsAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := records(t, rapid.IntRange(1, pending).Draw(t, "n"))
		var got, want columns
		var gotLists, wantLists lists
		got.add(recs, &gotLists)
		want.addGeneric(recs, &wantLists, 0)
		if got != want {
			t.Fatalf("got\n%+v\nwant\n%+v", got, want)
		}
		if gotLists != wantLists {
			t.Fatalf("got\n%v\nwant\n%v", gotLists, wantLists)
		}
	})
}

// The twin does what columns and lists say.
func TestColumns(t *testing.T) {
	recs := []history.Record{
		{End: 9, Cycles: 1000, UpcallCycles: 7, Sleep: 5, Rx: 3, Tx: 2, Batches: 1, Upcalls: 4, Fill: 6, Drops: 8, Full: 1},
		{End: 9, Cycles: 50, Rx: 0, Tx: 1},
		{End: 9, Cycles: 10, Flags: 1},
	}
	want := columns{
		cycles: 1060, upcallCycles: 7, sleep: 5, rx: 3, tx: 3, batches: 1, upcalls: 4, fill: 6, drops: 8, full: 1,
		maxRx: 3, maxTx: 2, maxBatches: 1, maxUpcalls: 4, maxFill: 6, maxDrops: 8, maxFull: 1,
		busy: 2, busyCycles: 1050, anyCycles: 1000 | 50 | 10, slowest: 1000, perPacket: 333, maxPerPacket: 333,
		cyclesBlocks: 1<<3 | 1, perPacketBlocks: 1 << 2,
	}
	var got columns
	var l lists
	got.addGeneric(recs, &l, 0)
	if got != want {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	for i, w := range [][2]uint64{{506, 256 + (333-256)/2}, {50, 5376}, {10, 5376}} {
		if g := [2]uint64{l.cycles[i], l.perPacket[i]}; g != w {
			t.Errorf("record %d: got %v, want %v", i, g, w)
		}
	}
}
