package suspicious

import (
	"context"
	"log/slog"
	"slices"
	"sync"
)

// Reports keeps the last reports. Any goroutine may use it.
type Reports struct {
	mu   sync.Mutex
	last []*Report // oldest first
	max  int
}

// NewReports returns memory for the last max reports.
func NewReports(max int) *Reports { return &Reports{max: max} }

// Add adds a report; it is a Sink.
func (s *Reports) Add(r *Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = append(s.last, r)
	if n := len(s.last) - s.max; n > 0 {
		s.last = slices.Delete(s.last, 0, n)
	}
}

// Last returns the last reports, newest first.
func (s *Reports) Last() []*Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := slices.Clone(s.last)
	slices.Reverse(last)
	return last
}

// ToLog returns a Sink that writes a warning for every report to l.
func ToLog(l *slog.Logger) Sink {
	return func(r *Report) {
		c := r.Culprit()
		attrs := []slog.Attr{
			slog.String("id", r.ID), slog.String("pmd", r.Name), slog.Int("core", r.Core),
			slog.Uint64("iteration", r.Iteration), slog.Time("ended", r.Time),
			slog.Duration("took", r.Duration(c.Cycles)), slog.Duration("slept", r.Duration(c.Sleep)),
			slog.String("reasons", r.Reasons.String()), slog.Int("rx", int(c.Rx)), slog.Int("tx", int(c.Tx)),
		}
		if len(r.Causes) > 0 {
			attrs = append(attrs, slog.String("causes", r.Explanation()))
		}
		if q, ok := r.SlowestQueue(r.Iteration); ok {
			attrs = append(attrs, slog.String("port", q.Port), slog.Int("queue", q.ID))
		}
		for _, n := range []struct {
			name string
			n    uint64
		}{{"merged", r.MergedCount}, {"held_back", r.HeldBack}} {
			if n.n != 0 {
				attrs = append(attrs, slog.Uint64(n.name, n.n))
			}
		}
		l.LogAttrs(context.Background(), slog.LevelWarn, "suspicious iteration", attrs...)
	}
}
