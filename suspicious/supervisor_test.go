package suspicious

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pmdperf/pmdperf/history"
)

// epoch is when tick 0 was.
var epoch = time.Date(2026, 1, 31, 23, 59, 59, 0, time.UTC)

// source is a detector with a loop, as a Source.
type source struct {
	loop
	core int
}

func newSource(core, captures int) *source {
	s := &source{loop{d: New(captures)}, core}
	s.d.Set(Settings{On: true, Before: 1, After: 1, Limits: Limits{Iteration: 100 * time.Microsecond}}, hz, &s.ring, 0)
	return s
}

func (s *source) Name() string         { return fmt.Sprintf("pmd-c%02d/id:7", s.core) }
func (s *source) Core() int            { return s.core }
func (s *source) NUMA() int            { return 1 }
func (s *source) Hz() float64          { return hz }
func (s *source) TakeEvent() *Event    { return s.d.Take() }
func (s *source) TimerNames() []string { return []string{"send", "look up"} }
func (s *source) ReleaseEvent()        { s.d.Release() }

// Clock is 3 s after the epoch.
func (s *source) Clock() (uint64, time.Time) { return 3 * hz, epoch.Add(3 * time.Second) }

func (s *source) Polled(first, last uint64) []Polled {
	return []Polled{{0, []Queue{{"p0", 0, 1024}}}, {2, []Queue{{"p0", 0, 1024}, {"vhu-a", 3, 0}}}}
}

// stall adds a suspicious iteration between two others.
func (s *source) stall() {
	s.pass(history.Record{Cycles: 10}, 0, true)
	s.pass(history.Record{Cycles: 250, Rx: 7, Tx: 6, Flags: history.Detailed.WithQueue(1)}, 0, true)
	s.pass(history.Record{Cycles: 10}, 0, true)
}

func TestReport(t *testing.T) {
	src := newSource(3, 4)
	src.pass(history.Record{Cycles: 1e6 - 20}, 0, true) // a second; this one is reported first
	src.stall()
	src.stall()
	var got []*Report
	s := NewSupervisor(Options{Sources: func() []Source { return []Source{src} }, Sinks: []Sink{func(r *Report) { got = append(got, r) }}})
	s.poll()
	if len(got) != 3 || s.Reported() != 3 || s.HeldBack() != 0 {
		t.Fatalf("%d reports, %d counted, %d held back", len(got), s.Reported(), s.HeldBack())
	}
	r := got[1]
	if r.ID != "20260201T000000-c03-2" || r.Sequence != 2 || r.Name != "pmd-c03/id:7" || r.Core != 3 || r.NUMA != 1 || r.Hz != hz {
		t.Errorf("%q, number %d, of %q, core %d, node %d, %v Hz", r.ID, r.Sequence, r.Name, r.Core, r.NUMA, r.Hz)
	}
	if want := epoch.Add(time.Second + 240*time.Microsecond); !r.Time.Equal(want) {
		t.Errorf("ended %v, want %v", r.Time, want)
	}
	if r.Reasons != 1<<Cycles || r.First != 1 || len(r.Records) != 3 || r.Culprit().Cycles != 250 || r.Duration(250) != 250*time.Microsecond {
		t.Errorf("%+v", r)
	}
	if q, ok := r.SlowestQueue(2); !ok || q != (Queue{"vhu-a", 3, 0}) {
		t.Errorf("slowest queue %v, %v", q, ok)
	}
	for _, n := range []uint64{0, 1, 3, 4, 99} {
		if q, ok := r.SlowestQueue(n); ok {
			t.Errorf("slowest queue of iteration %d: %v", n, q)
		}
	}
	// Iteration 2 polls two queues, but before it there was one.
	r.Polled[1].From = 3
	if q, ok := r.SlowestQueue(2); ok {
		t.Errorf("slowest queue %v of a list without it", q)
	}

	// The reports have memory of their own.
	first := got[:3]
	var before [3][]history.Record
	for i, r := range first {
		before[i] = slices.Clone(r.Records)
	}
	for range 4 {
		src.stall()
		src.stall()
		src.stall()
		s.poll()
	}
	for i, r := range first {
		if diff := cmp.Diff(before[i], r.Records); diff != "" {
			t.Errorf("report %d changed (-was +is):\n%s", i, diff)
		}
	}
}

// Reports are in the order of the iterations, whatever captures the events were in.
func TestOrder(t *testing.T) {
	src := newSource(0, 4)
	var got []uint64
	s := NewSupervisor(Options{Sources: func() []Source { return []Source{src} }, Sinks: []Sink{func(r *Report) { got = append(got, r.Iteration) }}})
	for n := range 5 {
		for range n {
			src.stall()
		}
		s.poll()
	}
	if len(got) != 10 || !slices.IsSorted(got) {
		t.Errorf("%v", got)
	}
}

// Of more than the rate allows, the next report says how many there were.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newSource(0, 4), newSource(1, 4)
		var got []string
		s := NewSupervisor(Options{
			Sources:   func() []Source { return []Source{a, b} },
			Sinks:     []Sink{func(r *Report) { got = append(got, fmt.Sprintf("%d:%d", r.Core, r.HeldBack)) }},
			PerMinute: 2,
		})
		for range 5 {
			a.stall()
			s.poll()
		}
		b.stall()
		s.poll()
		time.Sleep(30*time.Second + time.Millisecond)
		a.stall()
		a.stall()
		s.poll()
		time.Sleep(time.Hour)
		for range 3 {
			a.stall()
			b.stall()
			s.poll()
		}
		if diff := cmp.Diff([]string{"0:0", "0:0", "1:0", "0:3", "0:1", "1:0", "0:0", "1:0"}, got); diff != "" {
			t.Errorf("core:held back (-want +got):\n%s", diff)
		}
		if s.Reported() != 8 || s.HeldBack() != 6 {
			t.Errorf("%d reported, %d held back", s.Reported(), s.HeldBack())
		}
	})
}

// The default is 600 at once, as in Open vSwitch, and a negative rate is none.
func TestRateDefaults(t *testing.T) {
	for _, tt := range []struct{ perMinute, want int }{{0, 600}, {-1, 1000}} {
		src := newSource(0, 1)
		n := 0
		s := NewSupervisor(Options{Sources: func() []Source { return []Source{src} }, Sinks: []Sink{func(*Report) { n++ }}, PerMinute: tt.perMinute})
		begun := time.Now()
		for range 1000 {
			src.stall()
			s.poll()
		}
		if more := int(time.Since(begun).Minutes()*600) + 1; n < tt.want || n > tt.want+more {
			t.Errorf("rate %d: %d of 1000 reports, want %d", tt.perMinute, n, tt.want)
		}
	}
}

// Sources come and go; what is left in one that went is reported.
func TestSourcesComeAndGo(t *testing.T) {
	a, b := newSource(0, 4), newSource(1, 100)
	sources := []Source{a}
	of := make(map[int]int) // reports by core
	s := NewSupervisor(Options{Sources: func() []Source { return sources }, Sinks: []Sink{func(r *Report) { of[r.Core]++ }}, PerMinute: -1})
	a.stall()
	s.poll()
	sources = []Source{b}
	a.stall()
	for range 90 {
		b.stall() // more than are taken at once
	}
	if !s.poll() || of[0] != 2 || of[1] != takenAtOnce {
		t.Errorf("reports by core: %v", of)
	}
	if len(s.watched) != 1 {
		t.Errorf("%d sources are kept", len(s.watched))
	}
	// At its end a supervisor reports all that there is.
	for range 70 {
		b.stall()
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	s.Run(ctx)
	if of[0] != 2 || uint64(of[1])+b.d.Counts().NotCaptured != 160 || of[1] < 100 || s.Reported() != uint64(of[0]+of[1]) {
		t.Errorf("reports by core: %v, %d not captured", of, b.d.Counts().NotCaptured)
	}
}

// It looks by itself, every few milliseconds.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		s := NewSupervisor(Options{Sources: func() []Source { looks++; return nil }})
		ctx, stop := context.WithTimeout(t.Context(), time.Second+time.Millisecond)
		defer stop()
		s.Run(ctx)
		if looks != 200+1 {
			t.Errorf("%d looks in a second", looks)
		}
	})
}

// Causes are asked for when the kernel's counters have moved, once for each report and
// in their order, also for the last ones; the cause that explains most is counted.
func TestCauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newSource(3, 4)
		var mu sync.Mutex
		var list []string
		got := func() []string {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(list)
		}
		s := NewSupervisor(Options{
			Sources: func() []Source { return []Source{anchored{src}} },
			Causes: func(r *Report) []Cause {
				if age := time.Since(r.Anchor); age < settling || age > settling+defaultEvery {
					t.Errorf("iteration %d: asked after %v", r.Iteration, age)
				}
				kind := CausePreempted
				if r.Iteration == 4 {
					kind = CauseFaults
				}
				return []Cause{{Kind: kind}, {Kind: CauseWork}}
			},
			Sinks: []Sink{func(r *Report) {
				mu.Lock()
				defer mu.Unlock()
				list = append(list, fmt.Sprintf("%d:%d:%v", r.Sequence, r.Iteration, r.Causes[0].Kind))
			}},
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.Run(ctx); close(done) }()
		src.stall()
		src.stall()
		time.Sleep(settling - time.Millisecond)
		if len(got()) != 0 {
			t.Errorf("too early: %v", got())
		}
		time.Sleep(2 * defaultEvery)
		if len(got()) != 2 {
			t.Errorf("too late: %v", got())
		}
		src.stall()
		time.Sleep(defaultEvery + time.Millisecond)
		stop()
		<-done
		if diff := cmp.Diff([]string{"1:1:preempted", "2:4:faults", "3:7:preempted"}, got()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		want := ReportCounts{Reported: 3}
		want.Causes[CausePreempted], want.Causes[CauseFaults] = 2, 1
		if diff := cmp.Diff(want, s.Counts(src.Name())); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
		if c := s.Counts("another"); c != (ReportCounts{}) {
			t.Errorf("counts of what there is not: %+v", c)
		}
	})
}

// anchored is a source whose clock runs.
type anchored struct {
	*source
}

func (a anchored) Clock() (uint64, time.Time) { return 3 * hz, time.Now() }

// adapting is a source that learns, which takes it long at first.
type adapting struct {
	*source
	called chan struct{}
	hang   time.Duration
}

func (a *adapting) Adapt(ctx context.Context) error {
	a.called <- struct{}{}
	select {
	case <-ctx.Done():
	case <-time.After(a.hang):
	}
	return ctx.Err()
}

// Sources learn what is usual once a second, and one that hangs holds up nobody and is
// not asked again meanwhile.
func TestAdapt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quick := &adapting{newSource(0, 1), make(chan struct{}, 100), 0}
		stuck := &adapting{newSource(1, 1), make(chan struct{}, 100), time.Hour}
		plain := newSource(2, 1)
		s := NewSupervisor(Options{Sources: func() []Source { return []Source{quick, stuck, plain} }})
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second-time.Millisecond)
		defer stop()
		s.Run(ctx)
		if n := len(quick.called); n != 10 {
			t.Errorf("asked %d times in 10 s", n)
		}
		if n := len(stuck.called); n != 1 {
			t.Errorf("asked %d times while the first was under way", n)
		}
	})
}

// Of merged iterations the four longest are explained, if they are suspicious for that.
func TestMergedCauses(t *testing.T) {
	var asked []string
	s := NewSupervisor(Options{Causes: func(r *Report) []Cause {
		c := r.Culprit()
		asked = append(asked, fmt.Sprintf("%d %v cycles=%d gap=%d", r.Iteration, r.Reasons, c.Cycles, r.Values[Gap]))
		return []Cause{{Kind: CauseFaults, Part: r.Duration(c.Cycles)}}
	}})
	r := &Report{Hz: 1e9, AnchorTicks: 1e6, Event: Event{Iteration: 11, First: 10, Reasons: 1 << QueueFill}}
	end := uint64(0)
	for n := range uint64(8) {
		rec := history.Record{Cycles: 100 * n}
		gap := uint64(0)
		if n == 3 {
			gap = 5000
		}
		end += gap + rec.Cycles
		rec.End = end
		r.Records = append(r.Records, rec)
	}
	r.Merged = []Mark{{12, 1 << Cycles}, {13, 1 << Gap}, {14, 1 << QueueFill}, {15, 1 << PollGap}, {16, 1<<Adaptive | 1<<Drops}, {17, 1 << Cycles}, {99, 1 << Cycles}}
	s.explain(r)
	if diff := cmp.Diff([]string{
		"11 queue_fill cycles=100 gap=0", "13 gap cycles=300 gap=5000", "17 cycles cycles=700 gap=0",
		"16 drops,adaptive cycles=600 gap=0", "15 poll_gap cycles=500 gap=0",
	}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if len(r.MergedCauses) != 4 || r.MergedCauses[17][0].Part != 700 || len(r.Causes) != 1 || r.Iteration != 11 {
		t.Errorf("%+v", r)
	}
	f := r.Flight()
	if f.Merged[0].Causes != nil || len(f.Merged[1].Causes) != 1 {
		t.Errorf("flight record: %+v", f.Merged)
	}
}
