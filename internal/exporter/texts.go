package exporter

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/export/ovs"
)

// readTexts asks for the texts of Open vSwitch.
func (p *peer) readTexts(ctx context.Context) (*reading, error) {
	r := new(reading)
	// The counters of pmd-stats-show don't say since when they count, those of
	// pmd-perf-show do. Should somebody clear them in between, both are asked for
	// again; somebody who clears all the time gets no pmd-stats-show.
	const attempts = 3
	for range attempts {
		begin := time.Now()
		var err error
		if r.stats, err = optional(ctx, p, statsShow, ovs.ParseStats); err != nil {
			return nil, err
		}
		r.sent = time.Now()
		text, err := p.client.Call(ctx, perfShow)
		if err != nil {
			return nil, err
		}
		r.arrived = time.Now()
		if r.perf, err = ovs.ParsePerf(text); err != nil {
			return nil, err
		}
		if !clearedSince(r.perf, begin, r.arrived) {
			break
		}
		r.stats = nil
	}
	var err error
	if r.rxq, err = optional(ctx, p, rxqShow, ovs.ParseRxq); err != nil {
		return nil, err
	}
	if r.sleep, err = optional(ctx, p, sleepShow, ovs.ParseSleep); err != nil {
		return nil, err
	}
	return r, nil
}

// optional returns what a command answers, or nil if the target doesn't know it.
func optional[T any](ctx context.Context, p *peer, command string, parse func(string) (*T, error)) (*T, error) {
	text, err := p.client.Call(ctx, command)
	if _, refused := errors.AsType[*appctl.ServerError](err); refused {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parse(text)
}

// clearedSince reports whether a thread's counters may have been cleared since begin. The
// report came before arrived.
func clearedSince(r *ovs.PerfReport, begin, arrived time.Time) bool {
	for i := range r.Blocks {
		if s := secondsOf(&r.Blocks[i]); s <= (arrived.Sub(begin) + rounding).Seconds() {
			return true
		}
	}
	return false
}

// secondsOf returns the duration of a block's measurement, NaN if the text doesn't say.
func secondsOf(b *ovs.PerfBlock) float64 {
	s, err := strconv.ParseFloat(b.Duration, 64)
	if err != nil || !(s >= 0 && s < math.MaxInt64/float64(time.Second)) {
		return math.NaN()
	}
	return s
}
