package prom_test

import (
	"fmt"
	"log"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pmdperf/pmdperf/export/prom"
	"github.com/pmdperf/pmdperf/perf"
)

// A program that embeds recorders serves them to Prometheus.
func Example() {
	var recorders perf.Registry // of the program's poll loops
	metrics := prometheus.NewRegistry()
	if err := metrics.Register(prom.NewCollector(&recorders, prom.CollectorOptions{})); err != nil {
		log.Fatal(err)
	}
	http.Handle("/metrics", prom.Handler(metrics, prom.Options{}, nil))
	// ... http.ListenAndServe("127.0.0.1:9200", nil)
}

// What is known of other programs' threads becomes metrics by the same names.
func ExampleMetrics() {
	thread := &prom.Thread{NUMA: 0, Core: 1}
	thread.Set(prom.RxPackets, 4711)
	thread.Set(prom.RxqEnabled, 1, "eth0", "0")
	target := &prom.Target{Labels: []string{"host1"}, Up: true, Threads: []*prom.Thread{thread}}

	m := prom.New(prom.Options{Labels: []string{"target"}})
	ch := make(chan prometheus.Metric, 10)
	m.Collect(ch, target)
	fmt.Println(len(ch), "metrics")
	// Output: 3 metrics
}
