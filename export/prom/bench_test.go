package prom

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/perf"
)

// drive runs the loops of recorders in turn on one thread, until the test ends.
func drive(t testing.TB, g *perf.Registry, n int) {
	t.Helper()
	var loops []*loop
	for core := range n {
		r, err := g.New(perf.Config{Core: core, ID: core, Level: perf.Detailed, Polling: polling(core), Counters: []string{"retries"}})
		if err != nil {
			t.Fatal(err)
		}
		loops = append(loops, &loop{Recorder: r})
	}
	var stop atomic.Bool
	var running sync.WaitGroup
	running.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		retries, _ := loops[0].Counter("retries")
		for _, p := range loops {
			defer p.Close()
			if err := p.Start(); err != nil {
				t.Error(err)
			}
		}
		for pass := 0; !stop.Load(); pass++ {
			for _, p := range loops {
				p.pass(pass, retries)
			}
		}
	})
	t.Cleanup(func() { stop.Store(true); running.Wait() })
	await(t, "the last loop runs", func() bool { return loops[n-1].State() == perf.Running })
}

// BenchmarkBudget measures a scrape of 64 recorders: until the metrics are gathered and
// written as text, the fastest of all since others share the machine, and the median of
// how long an owner answers for it.
func BenchmarkBudget(b *testing.B) {
	const recorders = 64
	g := new(perf.Registry)
	drive(b, g, recorders)
	registry := prometheus.NewRegistry()
	c := NewCollector(g, CollectorOptions{Timeout: patience})
	registry.MustRegister(c)
	text := expfmt.NewEncoder(io.Discard, expfmt.NewFormat(expfmt.TypeTextPlain))
	scrape := func() {
		families, err := registry.Gather()
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range families {
			if err := text.Encode(f); err != nil {
				b.Fatal(err)
			}
		}
	}
	// What the answer to the scrape before cost each owner.
	before := make(map[*perf.Recorder]perf.GapStats)
	var owner []float64
	note := func() {
		for r, k := range c.kept {
			now, was := k.snapshot.Gaps[history.Answering], before[r]
			if now.Count == was.Count+1 {
				owner = append(owner, float64(now.Ticks-was.Ticks)/r.Hz()*1e6)
			}
			before[r] = now
		}
	}
	scrape()
	note()
	b.Run(fmt.Sprintf("scrape of %d recorders/ms", recorders), func(b *testing.B) {
		fastest := patience
		for b.Loop() {
			began := time.Now()
			scrape()
			fastest = min(fastest, time.Since(began))
			note()
		}
		b.ReportMetric(float64(fastest)/1e6, "cost")
		b.ReportMetric(50, "budget")
	})
	b.Run("owner's time for a scrape/us", func(b *testing.B) {
		for b.Loop() {
			scrape()
			note()
		}
		slices.Sort(owner)
		b.ReportMetric(owner[len(owner)/2], "cost")
		b.ReportMetric(6, "budget")
	})
}
