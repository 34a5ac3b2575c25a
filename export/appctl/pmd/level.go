package pmd

import (
	"context"
	"io"

	"github.com/pmdperf/pmdperf/perf"
)

// levelAnswer is what pmdperf/level answers.
type levelAnswer struct {
	Threads []levelThread `json:"threads"`
	remarks
}

type levelThread struct {
	identity
	Level string `json:"level"`
	State string `json:"state"`
}

func level(ctx context.Context, c *call) (answer, error) {
	if c.hasWord {
		l, err := perf.ParseLevel(c.word)
		if err != nil {
			return nil, &argumentError{text: err.Error()}
		}
		err = c.change(ctx, "level not set", func(ctx context.Context, _ int, r *perf.Recorder) error { return r.SetLevel(ctx, l) })
		if err != nil {
			return nil, err
		}
	}
	if err := c.look(ctx, perf.Want{}); err != nil {
		return nil, err
	}
	a := &levelAnswer{[]levelThread{}, c.remarks}
	for _, s := range c.snaps {
		a.Threads = append(a.Threads, levelThread{identity{s.Name, s.Core, s.NUMA}, s.Level.String(), s.State.String()})
	}
	return a, nil
}

func (a *levelAnswer) json() any { return a }

func (a *levelAnswer) write(w io.Writer) {
	tab := newTable("core", "-level", "loop")
	for _, t := range a.Threads {
		tab.row(count(uint64(t.Core)), t.Level, t.State)
	}
	io.WriteString(w, tab.String()+a.lines())
}
