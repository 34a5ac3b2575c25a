package suspicious

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pmdperf/pmdperf/history"
	"pgregory.net/rapid"
)

// loop feeds a detector as a recorder does: records in blocks of at most 64, each
// followed by copying.
type loop struct {
	d    *Detector
	ring history.Ring
	recs []history.Record // all
	seen uint64
	end  uint64
}

const hz = 1e6

// pass adds a record and has the detector look at all that wait if flush is set or
// 64 of them do.
func (l *loop) pass(rec history.Record, gap uint64, flush bool) {
	n := uint64(len(l.recs))
	before := uint64(0)
	if n > 0 {
		before = l.recs[n-1].End
	}
	rec.End = before + gap + rec.Cycles + rec.Sleep
	l.recs = append(l.recs, rec)
	*l.ring.At(n) = rec
	if n++; flush || n%64 == 0 {
		l.account()
	}
}

func (l *loop) account() {
	n := uint64(len(l.recs))
	if l.d.On() {
		block := l.ring.Span(l.seen, n)
		l.d.Look(block, l.seen, l.end)
		l.d.Advance(&l.ring, n)
	}
	l.seen, l.end = n, l.recs[n-1].End
}

// take takes all events.
func (l *loop) take() (events []Event) {
	for e := l.d.Take(); e != nil; e = l.d.Take() {
		c := *e
		c.Records, c.Merged = slices.Clone(e.Records), slices.Clone(e.Merged)
		events = append(events, c)
		l.d.Release()
	}
	return events
}

// Each threshold is exceeded by just above it and by nothing else, and the value and
// the threshold are those.
func TestReasons(t *testing.T) {
	all := Settings{On: true, After: 0, Limits: Limits{
		Iteration: 100 * time.Microsecond, PollGap: 300 * time.Microsecond, Gap: 50 * time.Microsecond,
		QueueFill: 128, CyclesPerPacket: 40, Upcalls: 10, CyclesPerUpcall: 20, FullBatches: 3, Drops: 5, RxDrops: 9, Adaptive: 4,
	}}
	for _, tt := range []struct {
		reason    Reason
		rec       history.Record
		gap       uint64
		value     uint64
		threshold uint64
		below     func(*history.Record, *uint64)
	}{
		{Cycles, history.Record{Cycles: 101}, 0, 101, 100, func(r *history.Record, _ *uint64) { r.Cycles = 100 }},
		{PollGap, history.Record{Cycles: 1, Sleep: 300}, 0, 301, 300, func(r *history.Record, _ *uint64) { r.Sleep = 299 }},
		{Gap, history.Record{Cycles: 1}, 51, 51, 50, func(_ *history.Record, g *uint64) { *g = 50 }},
		{QueueFill, history.Record{Cycles: 1, Fill: 128}, 0, 128, 127, func(r *history.Record, _ *uint64) { r.Fill = 127 }},
		{CyclesPerPacket, history.Record{Cycles: 81, Rx: 2}, 0, 41, 40, func(r *history.Record, _ *uint64) { r.Cycles = 80 }},
		{Upcalls, history.Record{Cycles: 1, Upcalls: 11}, 0, 11, 10, func(r *history.Record, _ *uint64) { r.Upcalls = 10 }},
		{CyclesPerUpcall, history.Record{Cycles: 90, Upcalls: 2, UpcallCycles: 41}, 0, 21, 20, func(r *history.Record, _ *uint64) { r.UpcallCycles = 40 }},
		{FullBatches, history.Record{Cycles: 1, Full: 1, InRow: 3}, 0, 3, 2, func(r *history.Record, _ *uint64) { r.InRow = 2 }},
		{Adaptive, history.Record{Cycles: 81}, 0, 81, 80, func(r *history.Record, _ *uint64) { r.Cycles = 80 }},
		{RxDrops, history.Record{Cycles: 1, Flags: history.RxDropped}, 0, 9, 8, func(r *history.Record, _ *uint64) { r.Flags = 0 }},
		{Drops, history.Record{Cycles: 1, Drops: 5}, 0, 5, 4, func(r *history.Record, _ *uint64) { r.Drops = 4 }},
	} {
		for _, exceed := range []bool{true, false} {
			l := &loop{d: New(1)}
			l.d.Set(all, hz, &l.ring, 0)
			if tt.reason == Adaptive {
				l.d.SetUsual(20)
			}
			l.d.RxDropped(1, 4)
			l.d.RxDropped(1, 5)
			l.pass(history.Record{Cycles: 1}, 0, true)
			rec, gap := tt.rec, tt.gap
			if !exceed {
				tt.below(&rec, &gap)
			}
			l.pass(rec, gap, true)
			events := l.take()
			if !exceed {
				if len(events) != 0 {
					t.Errorf("%v: at the threshold: %v", tt.reason, events[0].Reasons)
				}
				continue
			}
			if len(events) != 1 {
				t.Errorf("%v: %d events", tt.reason, len(events))
				continue
			}
			e := events[0]
			if e.Reasons != 1<<tt.reason || e.Values[tt.reason] != tt.value || e.Thresholds[tt.reason] != tt.threshold || e.Iteration != 1 {
				t.Errorf("%v: %v, value %d above %d", tt.reason, e.Reasons, e.Values[tt.reason], e.Thresholds[tt.reason])
			}
		}
	}
	// Every reason has a name and a text of its own.
	names := make(map[string]bool)
	for r := range NumReasons {
		names[r.String()], names[r.Text()] = true, true
	}
	if len(names) != 2*int(NumReasons) || names[""] {
		t.Errorf("names %v", names)
	}
}

// What is usual matters only where settings say so, and no longer than they are in
// force; a product beyond 64 bits is no threshold.
func TestUsual(t *testing.T) {
	l := &loop{d: New(8)}
	on := Settings{On: true, Limits: Limits{Adaptive: 10}}
	suspicious := func(cycles uint64) bool {
		before := l.d.Counts().ByReason[Adaptive]
		l.pass(history.Record{Cycles: cycles}, 0, true)
		return l.d.Counts().ByReason[Adaptive] > before
	}
	l.d.Set(Settings{On: true, Limits: Limits{Iteration: time.Hour}}, hz, &l.ring, 0)
	l.d.SetUsual(1)
	if suspicious(1000) {
		t.Error("without the setting")
	}
	l.d.Set(on, hz, &l.ring, 1)
	if suspicious(1000) {
		t.Error("before it was known what is usual")
	}
	l.d.SetUsual(100)
	if l.d.Limit() != 1000 || suspicious(1000) || !suspicious(1001) {
		t.Errorf("limit %d", l.d.Limit())
	}
	l.d.SetUsual(1 << 62)
	if suspicious(1e12) {
		t.Error("with a product beyond 64 bits")
	}
	l.d.SetUsual(1)
	l.d.Set(on, hz, &l.ring, 5)
	if suspicious(1000) {
		t.Error("after the settings were set anew")
	}
}

// Drops of rings belong to their iteration, also if that is looked at much later.
func TestRxDropsOfPending(t *testing.T) {
	l := &loop{d: New(8)}
	l.d.Set(Settings{On: true, Limits: Limits{RxDrops: 5}}, hz, &l.ring, 0)
	for n := range uint64(200) {
		rec := history.Record{Cycles: 1}
		if n%3 == 0 {
			l.d.RxDropped(n, n%7)
			rec.Flags = history.RxDropped
		}
		l.pass(rec, 0, n == 199)
	}
	want := uint64(0)
	for n := range 200 {
		if n%3 == 0 && n%7 >= 5 {
			want++
		}
	}
	if got := l.d.Counts().ByReason[RxDrops]; got != want {
		t.Errorf("%d iterations, want %d", got, want)
	}
	for _, e := range l.take() {
		if v := e.Values[RxDrops]; v != e.Iteration%7 {
			t.Errorf("iteration %d: %d packets", e.Iteration, v)
		}
	}
}

// 8 and 10: with -ne, further suspicious iterations in the window are neither logged
// nor counted; and of two reasons only the first is kept.
func TestDefects8And10AllIsCounted(t *testing.T) {
	l := &loop{d: New(2)}
	l.d.Set(Settings{On: true, Before: 1, After: 3, Limits: Limits{Iteration: 100 * time.Microsecond, QueueFill: 10}}, hz, &l.ring, 0)
	for _, rec := range []history.Record{{Cycles: 1}, {Cycles: 200, Fill: 10}, {Cycles: 1}, {Cycles: 300}, {Cycles: 1, Fill: 99}, {Cycles: 1}} {
		l.pass(rec, 0, true)
	}
	events := l.take()
	if len(events) != 1 {
		t.Fatalf("%d events", len(events))
	}
	e := events[0]
	if e.Reasons != 1<<Cycles|1<<QueueFill {
		t.Errorf("reasons %v", e.Reasons)
	}
	if diff := cmp.Diff([]Mark{{3, 1 << Cycles}, {4, 1 << QueueFill}}, e.Merged); diff != "" || e.MergedCount != 2 {
		t.Errorf("%d merged (-want +got):\n%s", e.MergedCount, diff)
	}
	if e.First != 0 || len(e.Records) != 5 {
		t.Errorf("%d records from %d", len(e.Records), e.First)
	}
	want := Counts{Iterations: 3, Merged: 2}
	want.ByReason[Cycles], want.ByReason[QueueFill] = 2, 2
	if c := l.d.Counts(); c != want {
		t.Errorf("counts %+v, want %+v", c, want)
	}
}

// 13: formatting and logging ran in the loop's thread and made new suspicions, so that a
// range above 100 silently fell back to 5 and 5. Here the loop compares and copies, and
// the range stays what it was. (That it allocates nothing: TestDetectorAllocatesNothing.)
func TestDefect13NothingButCopiesInTheLoop(t *testing.T) {
	l := &loop{d: New(2)}
	settings := Settings{On: true, Before: 500, After: 400, Limits: Limits{Iteration: 100 * time.Microsecond}}
	l.d.Set(settings, hz, &l.ring, 0)
	for n := range 4000 {
		rec := history.Record{Cycles: 1}
		if n == 1000 || n == 3000 {
			rec.Cycles = 101
		}
		l.pass(rec, 0, false)
	}
	for _, e := range l.take() {
		if len(e.Records) != 901 || e.Iteration-e.First != 500 || e.MergedCount != 0 {
			t.Errorf("event of iteration %d: %d records from %d on, %d merged", e.Iteration, len(e.Records), e.First, e.MergedCount)
		}
	}
	if c := l.d.Counts(); c.Iterations != 2 || l.d.Settings() != settings {
		t.Errorf("%+v, settings %+v", c, l.d.Settings())
	}
}

// 21: an oversleep never became suspicious, though it is the time between two polls that
// drops packets.
func TestDefect21OversleepIsSuspicious(t *testing.T) {
	l := &loop{d: New(2)}
	l.d.Set(Settings{On: true, Limits: Limits{Iteration: 250 * time.Microsecond, PollGap: 250 * time.Microsecond}}, hz, &l.ring, 0)
	l.pass(history.Record{Cycles: 10, Sleep: 200}, 0, true)
	l.pass(history.Record{Cycles: 10, Sleep: 5000}, 0, true)
	events := l.take()
	if len(events) != 1 || events[0].Iteration != 1 || events[0].Reasons != 1<<PollGap || events[0].Values[PollGap] != 5010 {
		t.Errorf("%+v", events)
	}
}

// 9: off and on again with a dump pending gives a false report.
func TestDefect9OffEndsCleanly(t *testing.T) {
	on := Settings{On: true, Before: 5, After: 5, Limits: Limits{Iteration: 100 * time.Microsecond}}
	l := &loop{d: New(2)}
	l.d.Set(on, hz, &l.ring, 0)
	l.pass(history.Record{Cycles: 1}, 0, true)
	l.pass(history.Record{Cycles: 500}, 0, true)
	l.pass(history.Record{Cycles: 2}, 0, true)
	off := on
	off.On = false
	l.d.Set(off, hz, &l.ring, 3)
	events := l.take()
	if len(events) != 1 || events[0].Iteration != 1 || len(events[0].Records) != 3 {
		t.Fatalf("%+v", events)
	}
	for range 20 {
		l.pass(history.Record{Cycles: 900}, 0, true)
	}
	l.d.Set(on, hz, &l.ring, 23)
	for range 20 {
		l.pass(history.Record{Cycles: 1}, 0, true)
	}
	if events := l.take(); len(events) != 0 {
		t.Errorf("a report of nothing: %+v", events)
	}
	l.pass(history.Record{Cycles: 500}, 0, true)
	for range 5 {
		l.pass(history.Record{Cycles: 1}, 0, true)
	}
	if events := l.take(); len(events) != 1 || events[0].Iteration != 43 || events[0].First != 38 {
		t.Errorf("%+v", events)
	}
	if c := l.d.Counts(); c.Iterations != 2 {
		t.Errorf("%d suspicious iterations", c.Iterations)
	}
}

// Whatever happens, every suspicious iteration is accounted for exactly once:
// reported, merged or counted as not captured; and what is reported are the very
// records, in order, with the iterations that were wanted.
func TestEveryIterationIsAccountedForOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Settings{
			On: true, Extend: rapid.Bool().Draw(t, "extend"),
			Before: rapid.IntRange(0, 499).Draw(t, "before") >> rapid.IntRange(0, 9).Draw(t, "less"),
			After:  rapid.IntRange(0, 499).Draw(t, "after") >> rapid.IntRange(0, 9).Draw(t, "less"),
			Limits: Limits{Iteration: 100 * time.Microsecond},
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		l := &loop{d: New(rapid.IntRange(0, 3).Draw(t, "captures"))}
		l.d.Set(s, hz, &l.ring, 0)
		suspicious := make(map[uint64]bool)
		var events []Event
		odds := rapid.SampledFrom([]uint64{2, 20, 300, 3000}).Draw(t, "odds")
		taking := rapid.SampledFrom([]uint64{1, 10, 5000}).Draw(t, "taking")
		random := rapid.Uint64().Draw(t, "seed")
		for n := range uint64(rapid.IntRange(1, 6000).Draw(t, "passes")) {
			random = random*6364136223846793005 + 1442695040888963407
			rec := history.Record{Cycles: 50, Tx: uint32(n)}
			if random>>33%odds == 0 {
				rec.Cycles = 150
				suspicious[n] = true
			}
			l.pass(rec, 0, random>>20%7 == 0)
			if random>>40%taking == 0 {
				events = append(events, l.take()...)
			}
		}
		l.account()
		l.d.Flush(&l.ring, uint64(len(l.recs)))
		events = append(events, l.take()...)
		counts := l.d.Counts()
		if counts.Iterations != uint64(len(suspicious)) || counts.ByReason[Cycles] != counts.Iterations {
			t.Fatalf("%+v of %d", counts, len(suspicious))
		}
		merged := uint64(0)
		for i, e := range events {
			if !suspicious[e.Iteration] {
				t.Fatalf("iteration %d is reported again, or was never suspicious", e.Iteration)
			}
			delete(suspicious, e.Iteration)
			merged += e.MergedCount
			for _, m := range e.Merged {
				if !suspicious[m.Iteration] {
					t.Fatalf("merged iteration %d is reported again, or was never suspicious", m.Iteration)
				}
				delete(suspicious, m.Iteration)
			}
			// The neighborhood.
			n, last := e.Iteration, e.First+uint64(len(e.Records))-1
			if want := n - min(n, uint64(s.Before)); e.First != want {
				t.Fatalf("event %d at %d begins at %d, want %d", i, n, e.First, want)
			}
			if !s.Extend && last != min(n+uint64(s.After), uint64(len(l.recs))-1) {
				t.Fatalf("event %d at %d ends at %d", i, n, last)
			}
			if last < n || len(e.Records) > MaxRecords {
				t.Fatalf("event %d at %d ends at %d after %d records", i, n, last, len(e.Records))
			}
			for j, rec := range e.Records {
				want := l.recs[e.First+uint64(j)]
				rec.Flags = 0
				if rec != want {
					t.Fatalf("event %d: record %d is %+v, want %+v", i, j, rec, want)
				}
			}
			if e.Values[Cycles] != 150 || e.Thresholds[Cycles] != 100 {
				t.Fatalf("value %d above %d", e.Values[Cycles], e.Thresholds[Cycles])
			}
		}
		if merged != counts.Merged || uint64(len(events))+merged+counts.NotCaptured != counts.Iterations {
			t.Fatalf("%d events + %d merged + %d not captured != %d", len(events), merged, counts.NotCaptured, counts.Iterations)
		}
	})
}

func TestSettings(t *testing.T) {
	if s := Default(); s.On || s.Before != 5 || s.After != 5 || s.Extend || s.Iteration != 250*time.Microsecond || s.QueueFill != 128 || s.Check() != nil {
		t.Errorf("defaults %+v", s)
	}
	for _, s := range []Settings{
		{Before: -1}, {After: -1}, {Before: 500, After: 499}, {Before: math.MaxInt, After: 1}, {Before: 1, After: math.MaxInt}, {Limits: Limits{Iteration: -1}}, {Limits: Limits{PollGap: 2 * time.Hour}},
		{Limits: Limits{Gap: -5}}, {Limits: Limits{QueueFill: -1}}, {Limits: Limits{Upcalls: 1 << 40}}, {Limits: Limits{CyclesPerPacket: 1 << 40}},
		{Limits: Limits{CyclesPerUpcall: 1 << 63}}, {Limits: Limits{Drops: -1}}, {Limits: Limits{FullBatches: -1}},
	} {
		if err := s.Check(); err == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
	if s := (Settings{Before: 499, After: 499}); s.Check() != nil {
		t.Error(s.Check())
	}
}

// A neighborhood has no iteration of before the detector was switched on, the first
// time as any other.
func TestNothingOfBefore(t *testing.T) {
	l := &loop{d: New(2)}
	s := Settings{On: true, Before: 5, Limits: Limits{Drops: 1}}
	for range 2 {
		for range 100 {
			l.pass(history.Record{Cycles: 10}, 0, true)
		}
		on := uint64(len(l.recs))
		l.d.Set(s, hz, &l.ring, on)
		l.pass(history.Record{Cycles: 10}, 0, true)
		l.pass(history.Record{Cycles: 10, Drops: 1}, 0, true)
		if es := l.take(); len(es) != 1 || es[0].First != on {
			t.Errorf("switched on at %d, the neighborhood is %+v", on, es)
		}
		l.d.Set(Settings{}, hz, &l.ring, uint64(len(l.recs)))
	}
}

func TestDetectorAllocatesNothing(t *testing.T) {
	l := &loop{d: New(2)}
	l.d.Set(Settings{On: true, Before: 400, After: 500, Limits: Limits{Iteration: 1}}, hz, &l.ring, 0)
	for range 1024 {
		l.pass(history.Record{Cycles: 10}, 0, false)
	}
	n := uint64(1024)
	if a := testing.AllocsPerRun(500, func() {
		l.d.Look(l.ring.Span(n%1024, n%1024+64), n, l.end)
		n += 64
		l.d.Advance(&l.ring, n)
		for e := l.d.Take(); e != nil; e = l.d.Take() {
			l.d.Release()
		}
	}); a != 0 {
		t.Errorf("%v allocations", a)
	}
}
