package ovs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/pmdperf/pmdperf/perf"
)

// BuildStats returns the report that pmd-stats-show would print. Of the options only
// Cores counts; without it the main thread is there too.
func BuildStats(snaps []*perf.Snapshot, o Options) *StatsReport {
	r := &StatsReport{}
	for _, s := range o.pmds(snaps, true) {
		r.Blocks = append(r.Blocks, StatsBlock{threadOf(s), statsRows(s)})
	}
	return r
}

func statsRows(s *perf.Snapshot) []StatsRow {
	f, t := exactFigures(s), &s.Totals
	count := func(label string, n uint64) StatsRow {
		return StatsRow{Label: label, Number: strconv.FormatUint(n, 10)}
	}
	average := func(label string, v float64) StatsRow { return StatsRow{Label: label, Number: fixed(v, 2)} }
	ok, lost := s.Counts[perf.UpcallsOK], s.Counts[perf.UpcallsLost]
	rows := []StatsRow{
		count("packets received", t.RxPackets),
		count("packet recirculations", s.Counts[perf.Recirc]),
		average("avg. datapath passes per packet", f.passesPerPacket()),
		count("phwol hits", s.Counts[perf.PHWOLHit]),
		count("mfex opt hits", s.Counts[perf.MFEXOptHit]),
		count("simple match hits", s.Counts[perf.SimpleHit]),
		count("emc hits", s.Counts[perf.EMCHit]),
		count("smc hits", s.Counts[perf.SMCHit]),
		count("megaflow hits", s.Counts[perf.MegaflowHit]),
		average("avg. subtable lookups per megaflow hit", f.lookupsPerHit()),
		count("miss with success upcall", ok),
		count("miss with failed upcall", lost),
		average("avg. packets per output batch", f.packetsPerTxBatch()),
	}
	if s.Kind != perf.PMD || t.Cycles == 0 {
		return rows
	}
	rows = append(rows,
		StatsRow{"idle cycles", strconv.FormatUint(t.IdleCycles(), 10), fixed(f.idlePercent(), 2) + "%"},
		StatsRow{"processing cycles", strconv.FormatUint(t.BusyCycles, 10), fixed(f.busyPercent(), 2) + "%"})
	if t.RxPackets == 0 {
		return rows
	}
	return append(rows,
		StatsRow{"avg cycles per packet", fixed(ratio(float64(t.Cycles), float64(t.RxPackets)), 2),
			fmt.Sprintf("%d/%d", t.Cycles, t.RxPackets)},
		StatsRow{"avg processing cycles per packet", fixed(f.cyclesPerPacket(), 2),
			fmt.Sprintf("%d/%d", t.BusyCycles, t.RxPackets)})
}

// UsageSeconds returns the time over which pmd-rxq-show shows the usage when asked for
// so many seconds: whole intervals of 5 s, 60 s at most, and 60 s for 0 or less.
func UsageSeconds(wanted int) int {
	const step = int(perf.UsageInterval / time.Second)
	const most = step * perf.UsageIntervals
	if wanted <= 0 || wanted > most {
		return most
	}
	return (wanted + step - 1) / step * step
}

// BuildRxq returns the report that pmd-rxq-show would print for the usage over the last
// seconds, see [UsageSeconds]. Of the options only Cores counts. A share is one of the
// cycles that really passed: of less time than wanted if the loop hasn't run so long, and
// not known before the first 5 s are over.
func BuildRxq(snaps []*perf.Snapshot, seconds int, o Options) *RxqReport {
	r := &RxqReport{}
	for _, s := range o.pmds(snaps, false) {
		r.Seconds = UsageSeconds(seconds)
		isolated := s.Isolated
		b := RxqBlock{Thread: threadOf(s), Isolated: &isolated}
		u := usageOver(s, r.Seconds)
		overhead := u.Busy
		for i := range s.RxQueues {
			q := &s.RxQueues[i]
			b.Queues = append(b.Queues, RxqQueue{Port: q.Port, Queue: q.ID, Enabled: true, Usage: share(u.Queues[i], u.Ticks)})
			overhead -= min(overhead, u.Queues[i])
		}
		slices.SortFunc(b.Queues, func(x, y RxqQueue) int {
			return cmp.Or(cmp.Compare(x.Port, y.Port), cmp.Compare(x.Queue, y.Queue))
		})
		if len(b.Queues) > 0 {
			o := share(overhead, u.Ticks)
			b.Overhead = &o
		}
		r.Blocks = append(r.Blocks, b)
	}
	return r
}

// usageOver sums up the usage of the last so many seconds.
func usageOver(s *perf.Snapshot, seconds int) perf.Usage {
	n := seconds / int(perf.UsageInterval/time.Second)
	sum := perf.Usage{Queues: make([]uint64, len(s.RxQueues))}
	for _, u := range s.Usage[max(0, len(s.Usage)-n):] {
		sum.Ticks += u.Ticks
		sum.Busy += u.Busy
		sum.Idle += u.Idle
		sum.Sleep += u.Sleep
		sum.Gap += u.Gap
		for i := range min(len(u.Queues), len(sum.Queues)) {
			sum.Queues[i] += u.Queues[i]
		}
	}
	return sum
}

// share returns a in percent of b, which is not known if b is 0.
func share(a, b uint64) Usage {
	if b == 0 {
		return Usage{}
	}
	return Usage{true, int(math.RoundToEven(percent(a, b)))}
}

// BuildSleep returns the report that pmd-sleep-show would print, defaultSleep being the
// longest sleep of PMDs that have no value of their own. Of the options only Cores
// counts.
func BuildSleep(snaps []*perf.Snapshot, defaultSleep time.Duration, o Options) *SleepReport {
	r := &SleepReport{}
	micros := func(d time.Duration) *uint64 {
		us := uint64(max(0, d).Microseconds())
		return &us
	}
	for _, s := range o.pmds(snaps, false) {
		r.Default = micros(defaultSleep)
		r.Blocks = append(r.Blocks, SleepBlock{threadOf(s), micros(s.MaxSleep)})
	}
	return r
}
