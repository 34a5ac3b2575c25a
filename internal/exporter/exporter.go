package exporter

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/pmdperf/pmdperf/export/prom"
	"github.com/pmdperf/pmdperf/perf/tsc"
)

// Options describe an exporter.
type Options struct {
	// Targets are whom to ask, as ovs-appctl's -t has it: absolute paths of sockets, or
	// names of programs with a pidfile. Each is the value of its label.
	Targets []string
	// Timeout is how long to wait for a target, 0 for DefaultTimeout.
	Timeout time.Duration
	// Log, if not nil, is told when a target ceases to answer, and why, and when it
	// answers again.
	Log *slog.Logger
}

// DefaultTimeout is far longer than an answer takes and far shorter than the time that
// Prometheus gives a scrape.
const DefaultTimeout = 2 * time.Second

// Label is the name of the label that says of which target a metric is.
const Label = "target"

// Exporter asks its targets. Any goroutine may call its methods.
type Exporter struct {
	targets []*target
	stop    context.CancelFunc
}

// New returns an exporter, which connects when it is first read. Close ends it.
func New(o Options) (*Exporter, error) {
	if len(o.Targets) == 0 {
		return nil, fmt.Errorf("there is no target")
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	ctx, stop := context.WithCancel(context.Background())
	e := &Exporter{stop: stop}
	for i, name := range o.Targets {
		if slices.Contains(o.Targets[:i], name) {
			stop()
			return nil, fmt.Errorf("target %s is there twice", name)
		}
		e.targets = append(e.targets, newTarget(ctx, name, o))
	}
	return e, nil
}

// Read asks all targets at the same time and returns what they answered, in the order in
// which they were given. A target that didn't answer in time, or not in a way that is
// understood, is not up. What it returns is shared: nobody may change it.
func (e *Exporter) Read(ctx context.Context) []*prom.Target {
	targets := make([]*prom.Target, len(e.targets))
	var all sync.WaitGroup
	for i, t := range e.targets {
		all.Go(func() {
			threads, err := t.read(ctx)
			targets[i] = &prom.Target{Labels: []string{t.name}, Up: err == nil, Threads: threads}
		})
	}
	all.Wait()
	return targets
}

// Close ends the errands under way and closes the connections.
func (e *Exporter) Close() {
	e.stop()
	for _, t := range e.targets {
		t.close()
	}
}

// ticksPerSecond returns the frequency of this machine's tick counter, which an Open
// vSwitch counts cycles with, too; 0 if ticks come from something else here.
func ticksPerSecond() float64 {
	c := tsc.System()
	if c.Source() == tsc.Monotonic {
		return 0
	}
	return c.Hz()
}
