package perf

import (
	"context"

	"github.com/pmdperf/pmdperf/histogram"
)

// What is usual is the 99.9th percentile of the iterations of ten seconds, by the second,
// if there were enough of them to tell.
const (
	usualSpans    = 10
	usualQuantile = 0.999
	usualLeast    = 10000
)

// usual keeps how long iterations were lately.
type usual struct {
	since uint64            // beginning of what is counted in before
	count map[uint64]uint64 // of all iterations so far, by the lowest value of their bucket
	spans [usualSpans][]histogram.Bucket
	next  int // of spans: the oldest
}

// Adapt compares the iterations from now on with those of the last ten seconds, if the
// settings say so (suspicious.Limits.Adaptive); it is to be called once a second, by a
// suspicious.Supervisor. Any goroutine may call it. Errors are those of Snapshot; then
// they are compared as before.
func (r *Recorder) Adapt(ctx context.Context) error {
	return r.inTurn(ctx, func(ctx context.Context) error {
		d := &r.reader
		if !d.adaptive {
			d.usual = usual{}
			return nil
		}
		d.boxNum = 0
		if err := r.fill(ctx, Want{}); err != nil {
			return err
		}
		d.boxNum, d.boxWant = d.num.Load(), Want{}
		ticks := d.usual.add(d.box)
		if ticks == 0 {
			return nil
		}
		_, err := r.ask(ctx, errand{usual: ticks})
		return err
	})
}

// add adds the iterations since the snapshot before, and returns what is usual, 0 if
// that can't be told.
func (u *usual) add(s *Snapshot) uint64 {
	first := u.count == nil
	if first || u.since != s.Since {
		u.since, u.count = s.Since, make(map[uint64]uint64)
	}
	if first { // what was before says nothing of the last seconds
		for b := range s.Cycles.Buckets() {
			u.count[b.Lo] = b.Count
		}
		return 0
	}
	span := u.spans[u.next%usualSpans][:0]
	for b := range s.Cycles.Buckets() {
		if n := b.Count - u.count[b.Lo]; n > 0 {
			u.count[b.Lo] = b.Count
			b.Count = n
			span = append(span, b)
		}
	}
	u.spans[u.next%usualSpans] = span
	u.next++

	var all histogram.Fine
	for _, span := range u.spans {
		for _, b := range span {
			all.AddN(b.Hi, b.Count)
		}
	}
	if all.Count() < usualLeast {
		return 0
	}
	return max(1, all.Quantile(usualQuantile))
}
