package ovs

import (
	"slices"
	"strconv"
	"strings"
)

// Labels of OVS 3.1 and, beside them, those that other versions have for the same.
var (
	// Of pmd-perf-show in OVS 2.10.
	oldPerfLabels = map[string]string{
		"Used TSC cycles": "Cycles",
		"idle iterations": "idle",
		"busy iterations": "busy",
	}
	// Of pmd-stats-show: polling cycles up to OVS 2.7, the others up to 2.8.
	oldStatsLabels = map[string]string{
		"idle cycles":                            "polling cycles",
		"avg. subtable lookups per megaflow hit": "avg. subtable lookups per hit",
		"miss with success upcall":               "miss",
		"miss with failed upcall":                "lost",
	}
)

// find returns the row with a label of OVS 3.1.
func (b *PerfBlock) find(label string) *Row {
	if r := b.row(label); r != nil {
		return r
	}
	if old, ok := oldPerfLabels[label]; ok {
		return b.row(old)
	}
	return nil
}

const labelRxPackets = "Rx packets"

// What OVS leaves out of pmd-perf-show where no packet was received: in all versions,
// since 2.11, and since some version from 2.16 to 3.1. In between there is nothing in
// such a block by which one could tell. The MFEX Opt hits were there from 2.16 until 4.0
// removed them.
var (
	rxRows      = []string{"Datapath passes", "EMC hits", "Megaflow hits", "Upcalls", "Lost upcalls"}
	rxRowsSMC   = []string{"SMC hits"}
	rxRowsLater = []string{"PHWOL hits", "Simple Match hits"}
)

// leftOut reports whether the version has a row with that label and left it out because
// no packet was received or sent.
func (b *PerfBlock) leftOut(label string) bool {
	none := func(label string) bool {
		r := b.row(label)
		return r != nil && r.Value == 0
	}
	if label == "Tx batches" {
		return none(labelTxPackets)
	}
	since := func(mark string) bool { return b.Thread.Main || b.row(mark) != nil }
	return none(labelRxPackets) && (slices.Contains(rxRows, label) ||
		slices.Contains(rxRowsSMC, label) && since("Used TSC cycles") ||
		slices.Contains(rxRowsLater, label) && since("sleep iterations"))
}

// isPerf reports whether a text is one of pmd-perf-show.
func isPerf(text string) bool {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimLeft(line, blanks), durationMark) {
			return true
		}
	}
	return false
}

// statsOfPerf returns what pmd-stats-show would have printed beside r, as far as r has
// it.
func statsOfPerf(r *PerfReport) *StatsReport {
	s := &StatsReport{Unread: r.Unread}
	for i := range r.Blocks {
		b := &r.Blocks[i]
		s.Blocks = append(s.Blocks, StatsBlock{Thread: b.Thread, Rows: b.stats()})
	}
	return s
}

// stats returns the rows of pmd-stats-show.
func (b *PerfBlock) stats() (rows []StatsRow) {
	count := func(label string, v uint64, ok bool) {
		if ok {
			rows = append(rows, StatsRow{Label: label, Number: strconv.FormatUint(v, 10)})
		}
	}
	value := func(label, of string) {
		v, ok := b.Value(of)
		count(label, v, ok)
	}
	average := func(label, of, unit string) {
		if f, ok := b.Figure(of, unit); ok {
			rows = append(rows, StatsRow{Label: label, Number: f.Number})
		}
	}
	received, ok := b.Value(labelRxPackets)
	count("packets received", received, ok)
	passes, ok := b.Value("Datapath passes")
	count("packet recirculations", passes-min(passes, received), ok)
	average("avg. datapath passes per packet", "Datapath passes", "passes/pkt")
	value("phwol hits", "PHWOL hits")
	value("mfex opt hits", "MFEX Opt hits")
	value("simple match hits", "Simple Match hits")
	value("emc hits", "EMC hits")
	value("smc hits", "SMC hits")
	value("megaflow hits", "Megaflow hits")
	average("avg. subtable lookups per megaflow hit", "Megaflow hits", "subtbl lookups/hit")
	value("miss with success upcall", "Upcalls")
	value("miss with failed upcall", "Lost upcalls")
	average("avg. packets per output batch", "Tx batches", "pkts/batch")
	return rows
}
