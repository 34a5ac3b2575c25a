package explain_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/cause"
	"github.com/pmdperf/pmdperf/suspicious/explain"
	"github.com/pmdperf/pmdperf/suspicious/gotrace"
	"github.com/pmdperf/pmdperf/suspicious/ovslog"
)

// A program that watches over all its loops, with everything that there is: the log in
// Open vSwitch's form, the flight record, Go's execution trace beside it, the program's
// own log, the causes, and a watchdog.
func Example() {
	loops := new(perf.Registry) // of which the loops get their recorders

	causes := explain.New(cause.Options{})
	defer causes.Close()
	log := suspicious.NewFile(suspicious.FileConfig{Path: "slow.log"})
	defer log.Close()
	flight := suspicious.NewFile(suspicious.FileConfig{Path: "slow.jsonl"})
	defer flight.Close()
	traces, err := gotrace.Start(gotrace.Config{Path: "slow.jsonl"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer traces.Close()

	supervisor := suspicious.NewSupervisor(suspicious.Options{
		Sources: func() (all []suspicious.Source) {
			for _, r := range loops.Recorders() {
				causes.Watch(r.Name(), r.ThreadID(), r.Core())
				all = append(all, r)
			}
			return all
		},
		Causes: causes.Causes,
		Sinks: []suspicious.Sink{
			ovslog.To(log), suspicious.ToFlightRecord(flight), traces.Add, suspicious.ToLog(slog.Default()),
			func(r *suspicious.Report) { fmt.Println(r.Name, r.Iteration, r.Explanation()) },
		},
	})
	watchdog := &suspicious.Watchdog{
		Threshold: 500 * time.Millisecond,
		Loops: func() (all []suspicious.Pinger) {
			for _, r := range loops.Recorders() {
				all = append(all, r)
			}
			return all
		},
		Examine: causes.Examine,
		Report:  suspicious.StallToLog(slog.Default()),
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { supervisor.Run(ctx) })
	running.Go(func() { watchdog.Run(ctx) })

	// Here the loops run, which have called SetSuspicion on their recorders.

	stop()
	running.Wait()
}
