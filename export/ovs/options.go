package ovs

import (
	"cmp"
	"slices"

	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
)

// Options say what of the snapshots goes into a report, like the options of
// pmd-perf-show. The zero value is the command without options: every PMD, with
// histograms, without histories.
type Options struct {
	Cores        []int // only the PMDs of these cores, all if nil (-pmd)
	NoHistograms bool  // leave the histograms out (-nh)
	Iterations   int   // rows of the iteration history (-it)
	Milliseconds int   // rows of the millisecond history (-ms)
	// MainThread adds the block of the main thread to pmd-perf-show, which OVS
	// prints since 4.0. It is left out where Cores are given.
	MainThread bool
	// Fine adds the fine ranges of the histograms to a [Document].
	Fine bool
	// Reports tells what became of the reports of the PMD of that name, for a [Document];
	// nil leaves that out.
	Reports func(name string) suspicious.ReportCounts
	// Extra are columns of the histories that the original doesn't have.
	Extra Extra
}

// Extra are columns that stand after the original's in the histories. What is absent
// in them is a dash. Without any the layout is the original's.
type Extra struct {
	WallClock bool // when the pass or row ended, in UTC with microseconds
	Tx        bool // packets sent
	Slept     bool // how long the pass or row slept, in us
	Lasted    bool // how long the row really lasted, in us; millisecond history only
	Queue     bool // the rx queue that took the most of the pass; iteration history only
	Mark      bool // what lay between the pass and the one before: "reload"; iteration history only
}

// pmds returns the snapshots that the options select in the order in which OVS prints
// them: PMDs by core, and the main thread last.
func (o *Options) pmds(snaps []*perf.Snapshot, mainThread bool) []*perf.Snapshot {
	var sel []*perf.Snapshot
	for _, s := range snaps {
		if s.Kind == perf.Main && mainThread && o.Cores == nil ||
			s.Kind == perf.PMD && (o.Cores == nil || slices.Contains(o.Cores, s.Core)) {
			sel = append(sel, s)
		}
	}
	slices.SortStableFunc(sel, func(a, b *perf.Snapshot) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Core, b.Core))
	})
	return sel
}

// threadOf returns the heading of a snapshot's block.
func threadOf(s *perf.Snapshot) Thread {
	if s.Kind == perf.Main {
		return MainThread()
	}
	return Thread{NUMA: s.NUMA, Core: s.Core}
}
