package pmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/pmdperf/pmdperf/perf/tsc"
)

// clockAnswer is what pmdperf/clock answers.
type clockAnswer struct {
	Source   string  `json:"source"` // "tsc", "cntvct" or "monotonic"
	Hz       float64 `json:"tsc_hz"` // with which ticks are turned into time
	Exact    bool    `json:"exact"`  // stated by processor, firmware or hypervisor, not measured
	Measured float64 `json:"measured_hz"`
	// Probes are what looks for the causes of slow iterations.
	Probes []string `json:"probes"`
}

func clock(_ context.Context, cl *call) (answer, error) {
	c := tsc.System()
	probes := []string{}
	if cl.Probes != nil {
		probes = append(probes, cl.Probes()...)
	}
	return &clockAnswer{string(c.Source()), c.Hz(), c.Exact(), c.Measure(), probes}, nil
}

func (a *clockAnswer) json() any { return a }

func (a *clockAnswer) write(w io.Writer) {
	origin := "measured at start"
	if a.Exact {
		origin = "stated by the processor or the system"
	}
	probes := " none"
	if len(a.Probes) > 0 {
		probes = "\n  " + strings.Join(a.Probes, "\n  ")
	}
	fmt.Fprintf(w, "source: %s\nfrequency: %.0f Hz, %s\nmeasured since start: %.0f Hz (%+.2f ppm)\nprobes:%s\n",
		a.Source, a.Hz, origin, a.Measured, (a.Measured/a.Hz-1)*1e6, probes)
}
