package pmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/perf"
)

// call is one call of a command. It belongs to one goroutine.
type call struct {
	*service
	*arguments
	pmds  []*perf.Recorder // that it is about
	snaps []*perf.Snapshot // of those that answered, by core; from the pool
	remarks
}

// remarks are what an answer has to say beside what was asked for. They are part of
// every JSON answer that takes snapshots.
type remarks struct {
	Missing []missing `json:"missing,omitempty"` // PMDs that did not answer
	Notes   []string  `json:"notes,omitempty"`
}

// missing is a PMD that did not answer.
type missing struct {
	Name    string   `json:"name"`
	Core    int      `json:"core"`
	NUMA    int      `json:"numa"`
	Seconds *float64 `json:"stalled_seconds,omitempty"` // for so long no iteration was completed, at least
	Reason  string   `json:"reason"`
}

func (m *remarks) note(format string, args ...any) {
	m.Notes = append(m.Notes, fmt.Sprintf(format, args...))
}

// lines are the remarks as lines of a text. No line looks like a row of a report.
func (m *remarks) lines() string {
	var b strings.Builder
	for _, x := range m.Missing {
		fmt.Fprintf(&b, "note: PMD on core %d is not shown: %s\n", x.Core, x.Reason)
	}
	for _, n := range m.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	return b.String()
}

// core returns the core that the call is about; ok is false if it is about all.
func (c *call) core() (core int, ok bool) {
	n, ok := c.numbers[optCore]
	return int(n), ok
}

// look takes snapshots of the PMDs, all at the same time. PMDs that don't answer are
// among the remarks, and an error if the client named one.
func (c *call) look(ctx context.Context, want perf.Want) error {
	snaps := make([]*perf.Snapshot, len(c.pmds))
	errs := c.each(ctx, func(ctx context.Context, i int, r *perf.Recorder) error {
		s := c.snapshots.Get().(*perf.Snapshot)
		if err := r.Snapshot(ctx, want, s); err != nil {
			c.snapshots.Put(s)
			return err
		}
		snaps[i] = s
		return nil
	})
	for i, s := range snaps {
		if s != nil {
			c.snaps = append(c.snaps, s)
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if _, named := c.core(); named {
			return errs[i]
		}
		r := c.pmds[i]
		m := missing{Name: r.Name(), Core: r.Core(), NUMA: r.NUMA(), Reason: errs[i].Error()}
		if e, ok := errors.AsType[*perf.StalledError](errs[i]); ok {
			m.Seconds = new(e.For.Round(time.Microsecond).Seconds())
		}
		c.Missing = append(c.Missing, m)
	}
	return nil
}

// each calls f for all PMDs at the same time and returns its errors in their order.
func (c *call) each(ctx context.Context, f func(context.Context, int, *perf.Recorder) error) []error {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	errs := make([]error, len(c.pmds))
	// The joined error is left: which of them failed matters here.
	_ = perf.Each(ctx, c.pmds, func(ctx context.Context, r *perf.Recorder) error {
		i := slices.Index(c.pmds, r)
		errs[i] = f(ctx, i, r)
		return nil
	})
	return errs
}

// change calls f, which changes something, for all PMDs at the same time. The error
// names those for which it failed.
func (c *call) change(ctx context.Context, what string, f func(context.Context, int, *perf.Recorder) error) error {
	var failed []error
	for i, err := range c.each(ctx, f) {
		if err != nil {
			failed = append(failed, fmt.Errorf("core %d: %s: %w", c.pmds[i].Core(), what, err))
		}
	}
	return errors.Join(failed...)
}

// addMain adds the main thread to the snapshots if there is one and no core was named.
func (c *call) addMain() {
	if _, named := c.core(); !named && c.registry.HasShared() {
		s := c.snapshots.Get().(*perf.Snapshot)
		c.registry.Shared().Snapshot(s)
		c.snaps = append(c.snaps, s)
	}
}

// document returns all about the snapshots taken. It keeps none of them.
func (c *call) document(o ovs.Options) *ovs.Document { return ovs.NewDocument(c.snaps, o) }

// release gives the snapshots back.
func (c *call) release() {
	for _, s := range c.snaps {
		c.snapshots.Put(s)
	}
	c.snaps = nil
}
