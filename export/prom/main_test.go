package prom

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waits that only a defect makes long.
const patience = 60 * time.Second

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// loop is a poll loop that takes it easy.
type loop struct {
	*perf.Recorder
	stall, stop atomic.Bool
	polling     atomic.Pointer[perf.Polling] // to change to, once
	done        sync.WaitGroup
}

func polling(core int) perf.Polling {
	return perf.Polling{
		RxQueues: []perf.Queue{{Port: "p0", ID: core}, {Port: "vhu-\"a\"\\", ID: 0, Size: 1024}},
		TxQueues: []perf.Queue{{Port: "p0", ID: core, Size: 512}},
		Isolated: core == 3,
		MaxSleep: time.Duration(core) * 10 * time.Microsecond,
	}
}

// start starts a loop that is stopped when the test ends.
func start(t testing.TB, g *perf.Registry, core int, level perf.Level) *loop {
	t.Helper()
	r, err := g.New(perf.Config{
		Core: core, NUMA: core % 2, ID: 8 + core, Level: level, Polling: polling(core),
		Counters: []string{"retries"}, Timers: []string{"flush"},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &loop{Recorder: r}
	p.done.Go(func() { p.run(t) })
	t.Cleanup(p.end)
	await(t, "the loop runs", func() bool { return p.State() == perf.Running })
	return p
}

func (p *loop) end() {
	p.stop.Store(true)
	p.done.Wait()
}

func (p *loop) run(t testing.TB) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer p.Close()
	if err := p.Start(); err != nil {
		t.Error(err)
		return
	}
	retries, _ := p.Counter("retries")
	for n := 0; !p.stop.Load(); n++ {
		for p.stall.Load() && !p.stop.Load() {
			time.Sleep(time.Millisecond)
		}
		if change := p.polling.Swap(nil); change != nil {
			p.Park()
			if err := p.Resume(change); err != nil {
				t.Error(err)
			}
		}
		p.pass(n, retries)
		time.Sleep(20 * time.Microsecond)
	}
}

// pass is a pass that sees traffic every other time.
func (p *loop) pass(n int, retries perf.Counter) {
	p.Poll(0)
	if n%2 == 0 {
		p.Batch(32, 40)
		p.RxSizes(0, []uint16{60, 1500})
		p.Count(perf.EMCHit, 30)
		p.Count(perf.MegaflowHit, 1)
		p.Count(perf.SubtableLooks, 2)
		p.Count(retries, 1)
		span := p.StartTimer()
		p.Upcall(p.StopTimer(span), n%4 == 0)
		p.Tx(31, 1)
		p.TxSizes(0, []uint16{60})
		p.Drop(1)
		p.RxDrop(2)
	}
	p.Poll(1)
	p.Batch(0, 3)
	p.End()
}

// gather returns what a strict registry gathers of a collector.
func gather(t testing.TB, c prometheus.Collector) map[string]*dto.MetricFamily {
	t.Helper()
	g := prometheus.NewPedanticRegistry()
	if err := g.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]*dto.MetricFamily)
	for _, f := range families {
		byName[f.GetName()] = f
	}
	return byName
}

// scrape returns what a handler serves of a collector to one that accepts a format.
func scrape(t testing.TB, c prometheus.Collector, o Options, accept string) (body, contentType string) {
	t.Helper()
	g := prometheus.NewPedanticRegistry()
	if err := g.Register(c); err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	req.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	Handler(g, o, nil).ServeHTTP(w, req)
	b, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("status %d, %v: %s", w.Code, err, b)
	}
	return string(b), w.Header().Get("Content-Type")
}

// targetCollector collects targets that were written by hand.
type targetCollector struct {
	*Metrics
	targets []*Target
}

func (c targetCollector) Collect(ch chan<- prometheus.Metric) { c.Metrics.Collect(ch, c.targets...) }

// supervise runs a supervisor of a registry until the test ends.
func supervise(t testing.TB, g *perf.Registry, causes func(*suspicious.Report) []suspicious.Cause) (*suspicious.Supervisor, *suspicious.Reports) {
	t.Helper()
	reports := suspicious.NewReports(128)
	s := suspicious.NewSupervisor(suspicious.Options{
		Sources: func() (sources []suspicious.Source) {
			for _, r := range g.Recorders() {
				sources = append(sources, r)
			}
			return sources
		},
		Sinks:     []suspicious.Sink{reports.Add},
		Causes:    causes,
		PerMinute: -1,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { s.Run(ctx) })
	t.Cleanup(func() { cancel(); done.Wait() })
	return s, reports
}
