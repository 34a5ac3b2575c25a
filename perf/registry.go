package perf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pmdperf/pmdperf/perf/tsc"
)

// A Registry holds the recorders of a program. The zero value is empty and ready;
// any goroutine may use it.
type Registry struct {
	mu     sync.Mutex
	pmds   []*Recorder
	shared *Shared
}

// New makes a recorder and registers it. The recorder records from Start on. An
// error says what is wrong with cfg; a name or a core that the registry has already
// is one.
func (g *Registry) New(cfg Config) (*Recorder, error) {
	r, err := New(cfg)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, o := range g.pmds {
		if o.Name() == r.Name() {
			return nil, fmt.Errorf("recorder %q exists already: names must differ", r.Name())
		}
		if o.Core() == r.Core() {
			return nil, fmt.Errorf("recorder %q: core %d has recorder %q already: cores must differ", r.Name(), r.Core(), o.Name())
		}
	}
	g.pmds = append(g.pmds, r)
	slices.SortFunc(g.pmds, func(a, b *Recorder) int { return cmp.Compare(a.Core(), b.Core()) })
	return r, nil
}

// New makes a recorder that is in no registry.
func New(cfg Config) (*Recorder, error) {
	return newRecorder(cfg, tsc.System().Hz(), tsc.Now)
}

// Remove takes a recorder out of the registry; its name and core may be used again.
func (g *Registry) Remove(r *Recorder) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pmds = slices.DeleteFunc(slices.Clone(g.pmds), func(o *Recorder) bool { return o == r })
}

// Recorders returns the recorders in the order of their cores.
func (g *Registry) Recorders() []*Recorder {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.pmds)
}

// Shared returns the recorder of the threads that are not PMDs, made at the first
// call.
func (g *Registry) Shared() *Shared {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shared == nil {
		g.shared = new(Shared)
		g.shared.init()
	}
	return g.shared
}

// HasShared reports whether Shared was ever called.
func (g *Registry) HasShared() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shared != nil
}

// Each asks all recorders at the same time by calling f for each, and joins the
// errors. One that is stuck so delays the others no longer than itself.
func Each(ctx context.Context, rs []*Recorder, f func(context.Context, *Recorder) error) error {
	errs := make([]error, len(rs))
	var all sync.WaitGroup
	for i, r := range rs {
		all.Go(func() { errs[i] = f(ctx, r) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Name returns the recorder's name.
func (r *Recorder) Name() string { return r.setup.Name }

// Core returns the processor core of the recorder's loop.
func (r *Recorder) Core() int { return r.setup.Core }

// NUMA returns the NUMA node of the recorder's loop.
func (r *Recorder) NUMA() int { return r.setup.NUMA }

// Hz returns the ticks in a second.
func (r *Recorder) Hz() float64 { return r.setup.hz }

// Counter returns the counter registered under name in Config.Counters. If there is
// none it returns false and a counter that nobody sees.
func (r *Recorder) Counter(name string) (Counter, bool) {
	i := slices.Index(r.setup.Counters, name)
	if i < 0 {
		return unknown, false
	}
	return Counter(NumBuiltin + i), true
}

// Timer returns the number of the timer registered under name in Config.Timers,
// and false if there is none.
func (r *Recorder) Timer(name string) (id int, ok bool) {
	i := slices.Index(r.setup.Timers, name)
	return i, i >= 0
}
