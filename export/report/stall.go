package report

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Stall is an iteration that took too long, or is suspicious for another reason.
type Stall struct {
	Thread    int       // index into Page.Threads
	End       time.Time // when it ended; zero if unknown
	Micros    float64   // how long it took
	Iteration uint64
	Reasons   []string // why it was logged
	Causes    []Cause  // why it took so long, the one that explains most first
	Rows      []Row    // its neighborhood, oldest first; empty if that is lost
	Culprit   int      // index of its own row, or -1
	Source    string   // where it was found, "ovs-vswitchd.log:17"
}

// Cause is what was seen to have taken a part of a stall.
type Cause struct {
	Title    string
	Micros   float64
	Percent  float64 // of the stall
	How      string  // it is known
	Evidence string
}

// Row is an iteration of a neighborhood. What a log doesn't tell is 0.
type Row struct {
	Iteration       uint64
	Cycles          uint64
	SleepMicros     float64 // slept besides
	Rx, Tx, Drops   uint64  // packets
	CyclesPerPacket uint64
	PacketsPerBatch uint64
	Fill            uint64 // of the fullest rx queue
	Upcalls         uint64
	CyclesPerUpcall uint64
	Note            string // the queue that took most of it, say
}

// byTime compares stalls: those of unknown time come last.
func byTime(a, b *Stall) int {
	if a.End.IsZero() != b.End.IsZero() {
		if a.End.IsZero() {
			return 1
		}
		return -1
	}
	return cmp.Or(a.End.Compare(b.End), cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Iteration, b.Iteration))
}

// order returns the indices of the stalls in the order of time.
func order(stalls []Stall) []int {
	all := make([]int, len(stalls))
	for i := range all {
		all[i] = i
	}
	slices.SortStableFunc(all, func(a, b int) int { return byTime(&stalls[a], &stalls[b]) })
	return all
}

// longest returns the indices of the n longest stalls, the longest first.
func longest(stalls []Stall, among []int, n int) []int {
	all := slices.Clone(among)
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(known(stalls[b].Micros), known(stalls[a].Micros)) })
	return all[:min(n, len(all))]
}

// known makes a length of one that may be no number.
func known(micros float64) float64 {
	if math.IsNaN(micros) || micros < 0 {
		return 0
	}
	return min(micros, math.MaxFloat64)
}
