package prom

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
)

// CollectorOptions describe a collector. The zero value is usable.
type CollectorOptions struct {
	Options // Labels must be empty

	// Supervisor counts the reports of suspicious iterations; nil leaves them out.
	Supervisor *suspicious.Supervisor
	// Reports are where exemplars come from; nil leaves them out.
	Reports *suspicious.Reports
	// Timeout is how long a scrape waits for loops to end a pass, 0 for 250 ms. One that
	// doesn't is called stalled, and its last values are shown.
	Timeout time.Duration
}

// defaultTimeout is longer than a thread that shares its core is usually off it, and
// short beside the timeouts of scrapers.
const defaultTimeout = 250 * time.Millisecond

// A Collector collects the metrics of the recorders of a registry for a
// prometheus.Registry. It keeps a snapshot of every recorder, some 300 KiB each, so that
// a scrape allocates none. Any goroutine may call its methods; scrapes at the same time
// follow one another.
type Collector struct {
	metrics  *Metrics
	registry *perf.Registry
	options  CollectorOptions

	mu          sync.Mutex
	kept        map[*perf.Recorder]*kept
	shared      *perf.Snapshot // of the main thread
	sharedSince uint64         // tick of its last clear, and the time of that
	sharedTime  time.Time
}

// kept is the last snapshot of a recorder.
type kept struct {
	snapshot perf.Snapshot
	filled   bool
	err      error // of the last attempt
}

// NewCollector returns a collector of the recorders of g, as they come and go.
func NewCollector(g *perf.Registry, o CollectorOptions) *Collector {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	o.Labels = nil
	return &Collector{metrics: New(o.Options), registry: g, options: o, kept: make(map[*perf.Recorder]*kept)}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) { c.metrics.Describe(ch) }

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	recorders := c.registry.Recorders()
	c.look(recorders)
	target := &Target{Up: true}
	exemplars := c.exemplars()
	for _, r := range recorders {
		t := c.thread(r)
		for _, e := range exemplars[r.Name()] {
			if e.Time.After(t.Created) {
				t.Exemplars = append(t.Exemplars, e)
			}
		}
		target.Threads = append(target.Threads, t)
	}
	if c.registry.HasShared() {
		target.Threads = append(target.Threads, c.mainThread())
	}
	c.metrics.Collect(ch, target)
}

// look takes snapshots of all recorders at the same time, and forgets those that went.
func (c *Collector) look(recorders []*perf.Recorder) {
	for r := range c.kept {
		if !slices.Contains(recorders, r) {
			delete(c.kept, r)
		}
	}
	for _, r := range recorders {
		if c.kept[r] == nil {
			c.kept[r] = new(kept)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.options.Timeout)
	defer cancel()
	perf.Each(ctx, recorders, func(ctx context.Context, r *perf.Recorder) error {
		k := c.kept[r]
		k.err = r.Snapshot(ctx, perf.Want{}, &k.snapshot)
		k.filled = k.filled || k.err == nil
		return nil
	})
}

// thread returns what is known of a recorder.
func (c *Collector) thread(r *perf.Recorder) *Thread {
	k := c.kept[r]
	t := &Thread{NUMA: r.NUMA(), Core: r.Core()}
	_, stalled := errors.AsType[*perf.StalledError](k.err)
	t.setBool(Stalled, stalled)
	t.Set(Info, 1, r.Name())
	if k.filled {
		t.fill(&k.snapshot)
	}
	if s := c.options.Supervisor; s != nil {
		t.setReports(s.Counts(r.Name()))
	}
	t.setSwitches(r.ThreadID())
	return t
}

// mainThread returns what is known of the main thread.
func (c *Collector) mainThread() *Thread {
	if c.shared == nil {
		c.shared = new(perf.Snapshot)
	}
	c.registry.Shared().Snapshot(c.shared)
	if c.sharedTime.IsZero() || c.shared.Since != c.sharedSince {
		// Once for every clear: by another pair of the clocks it would differ a little.
		c.sharedSince, c.sharedTime = c.shared.Since, c.shared.Time(c.shared.Since)
	}
	c.shared.Cleared = c.sharedTime
	t := &Thread{Main: true}
	t.fill(c.shared)
	return t
}

// mostExemplars is how many of a PMD's last suspicious iterations are exemplars.
const mostExemplars = 16

// exemplars returns the last suspicious iterations by the name of their PMD, the newest
// last.
func (c *Collector) exemplars() map[string][]Exemplar {
	if c.options.Reports == nil {
		return nil
	}
	of := make(map[string][]Exemplar)
	for _, r := range c.options.Reports.Last() {
		if list := of[r.Name]; len(list) < mostExemplars {
			of[r.Name] = append(list, Exemplar{r.Iteration, r.ID, r.Culprit().Cycles, r.Time})
		}
	}
	for _, list := range of {
		slices.Reverse(list)
	}
	return of
}
