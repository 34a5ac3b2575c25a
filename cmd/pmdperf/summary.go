package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/history"
)

// summarize writes what pmd-perf-show has no place for: the slowest iteration, the
// percentiles, and the time between iterations, with the recorder's own part in it.
func summarize(w io.Writer, r *ovs.Recorded) {
	fmt.Fprintf(w, "%s, beyond pmd-perf-show:\n", r.Name)
	if r.Slowest == nil || r.Cycles == nil || r.Hz == 0 {
		fmt.Fprintf(w, "  No iteration was recorded at level %s.\n", r.Level)
		return
	}
	us := func(ticks uint64) float64 { return float64(ticks) / r.Hz * 1e6 }
	share := func(ticks uint64) float64 { return 100 * float64(ticks) / float64(max(r.Cycles.Wall, 1)) }

	slow := r.Slowest
	fmt.Fprintf(w, "  Slowest iteration: %d, %.1f us, ended %s", slow.Iteration, us(slow.Cycles), slow.Time.Format("15:04:05.000000"))
	if slow.SlowestQueue != nil {
		fmt.Fprintf(w, ", most of it at %s queue %d", slow.SlowestPort, *slow.SlowestQueue)
	}
	fmt.Fprintf(w, ", %d packets received, %d sent", slow.Rx, slow.Tx)
	if len(slow.After) > 0 {
		fmt.Fprintf(w, ", after %s", strings.Join(slow.After, " and "))
	}
	fmt.Fprintln(w)

	h := r.Histograms["cycles_per_iteration"]
	fmt.Fprint(w, "  Iterations (us):")
	for _, p := range h.Percentiles {
		switch p.Percent {
		case 50, 99, 99.9, 99.99:
			fmt.Fprintf(w, " p%g %.2f,", p.Percent, us(p.Value))
		}
	}
	if h.Max != nil {
		fmt.Fprintf(w, " max %.2f", us(*h.Max))
	}
	fmt.Fprintln(w)

	fmt.Fprintf(w, "  %-14s %10s %14s %12s %12s\n", "Gaps", "count", "total us", "max us", "% of time")
	for kind := range history.NumGaps {
		g := r.Gaps[kind.String()]
		var longest uint64
		if g.Max != nil {
			longest = *g.Max
		}
		fmt.Fprintf(w, "  - %-12s %10d %14.1f %12.1f %12.3f\n", kind, g.Count, us(g.Ticks), us(longest), share(g.Ticks))
	}
	own := r.Gaps[history.Accounting.String()].Ticks + r.Gaps[history.Answering.String()].Ticks
	fmt.Fprintf(w, "  Recorder's own work between iterations: %.2f %% of the time\n", share(own))
}
