package suspicious_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
)

// A program starts one supervisor for all its loops. Sinks may also be
// suspicious.ToLog, suspicious.ToFlightRecord and Reports.Add.
func ExampleSupervisor() {
	recorder, err := perf.New(perf.Config{Core: 2, Level: perf.Detailed, Polling: perf.Polling{RxQueues: []perf.Queue{{Port: "eth0", ID: 1}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	settings := suspicious.Settings{On: true, Before: 2, After: 1, Limits: suspicious.Limits{QueueFill: 500}}
	if err := recorder.SetSuspicion(context.Background(), settings); err != nil {
		fmt.Println(err)
		return
	}

	supervisor := suspicious.NewSupervisor(suspicious.Options{
		Sources: func() []suspicious.Source { return []suspicious.Source{recorder} },
		Sinks: []suspicious.Sink{func(r *suspicious.Report) {
			queue, _ := r.SlowestQueue(r.Iteration)
			fmt.Printf("core %d: iteration %d with %d others: %v, most of it at %s queue %d\n",
				r.Core, r.Iteration, len(r.Records)-1, r.Reasons, queue.Port, queue.ID)
		}},
	})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { supervisor.Run(ctx) })

	// This would be the loop's thread.
	if err := recorder.Start(); err != nil {
		fmt.Println(err)
	}
	for n := range 5 {
		recorder.Poll(0)
		recorder.Batch(32, 130*n)
		recorder.End()
	}
	recorder.Close()

	stop()
	running.Wait()
	// Output:
	// core 2: iteration 4 with 2 others: queue_fill, most of it at eth0 queue 1
}
