package perf_test

import (
	"context"
	"fmt"

	"github.com/pmdperf/pmdperf/perf"
)

// burst stands for a rx burst of 32 packets at most.
func burst(pass int) (packets, fill int) { return pass % 2 * 32, 0 }

// A poll loop that records itself, and a reader of what it recorded.
func Example() {
	var registry perf.Registry
	rec, err := registry.New(perf.Config{
		Core:  1,
		ID:    8,
		Level: perf.Detailed,
		Polling: perf.Polling{
			RxQueues: []perf.Queue{{Port: "eth0", ID: 0, Size: 1024}},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan bool)
	go func() { // in a real program: perf.Pin(1, 8) first
		defer close(done)
		defer rec.Close()
		rec.Start()
		for pass := range 1000 {
			rec.Poll(0)
			if n, fill := burst(pass); n > 0 {
				rec.Batch(n, fill)
				// ... look up, act, send ...
				rec.Count(perf.EMCHit, uint64(n))
				rec.Tx(n, 1)
			}
			rec.End()
		}
	}()
	<-done
	var s perf.Snapshot
	if err := rec.Snapshot(context.Background(), perf.Want{Iterations: 2}, &s); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Name, s.Totals.Iterations, "iterations,", s.Totals.BusyIterations, "busy")
	fmt.Println(s.Totals.RxPackets, "packets, at most", s.BatchPackets.Max(), "in a batch")
	fmt.Println("last iteration:", s.NextIteration-1, "with", s.Iterations[1].Rx, "packets")
	// Output:
	// pmd-c01/id:8 1000 iterations, 500 busy
	// 16000 packets, at most 32 in a batch
	// last iteration: 999 with 32 packets
}

// A change of what a loop polls: the time between the two is booked as a reload.
func ExampleRecorder_Resume() {
	rec, err := perf.New(perf.Config{Polling: perf.Polling{RxQueues: []perf.Queue{{Port: "eth0"}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	rec.Start()
	rec.Poll(0)
	rec.End()

	rec.Park()
	// ... open eth1, wait for the control thread ...
	err = rec.Resume(&perf.Polling{RxQueues: []perf.Queue{{Port: "eth0"}, {Port: "eth1"}}})
	fmt.Println("resumed:", err)
	rec.Close()

	var s perf.Snapshot
	if err := rec.Snapshot(context.Background(), perf.Want{}, &s); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Reloads.Count(), "reload,", len(s.RxQueues), "queues")
	// Output:
	// resumed: <nil>
	// 1 reload, 2 queues
}
