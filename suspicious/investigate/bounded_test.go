package investigate

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/suspicious/ovslog"
)

const testHz = 2_000_000_000

// event returns one of a core, with a table of so many rows before and after it.
func event(core int, iteration, us uint64, at time.Time, around int) *ovslog.Event {
	thread := fmt.Sprintf("pmd-c%02d/id:%d", core, core+8)
	ev := &ovslog.Event{
		Origin: ovslog.Origin{Thread: thread, Time: at, Line: int(iteration % 1e6)}, Core: core, Reasons: []string{ovslog.ReasonCycles},
		Iteration: iteration, Duration: us, Culprit: around, HasHeader: true, TableTime: at, TableLine: 1,
	}
	for i := range uint64(2*around + 1) {
		row := ovslog.Row{Iteration: iteration + uint64(around) - i, Cycles: 400}
		if row.Iteration == iteration {
			row.Cycles = us * testHz / 1e6
		}
		ev.Table = append(ev.Table, row)
	}
	return ev
}

func start() time.Time { return time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC) }

// TestBounded has more stalls than are kept: the longest are, the others are counted, and
// none is lost or counted twice, in whatever order they come.
func TestBounded(t *testing.T) {
	const n = 3 * MaxStalls
	var events []*ovslog.Event
	var sum float64
	for i := range n {
		// Lengths of 1 to 7 ms, a permutation.
		us := uint64(1000 + (i*7919)%n*6000/n)
		events = append(events, event(i%3, uint64(1_000_000+i*5000), us, start().Add(time.Duration(i)*10*time.Millisecond), 5))
		sum += float64(us)
	}
	results := make([]*Result, 2)
	for k := range results {
		c := NewCase()
		src := c.AddSource("x")
		for _, ev := range events {
			c.AddRecord(src, ev)
		}
		if len(c.heap) > MaxStalls || c.rows > maxRows {
			t.Errorf("%d stalls and %d rows are kept", len(c.heap), c.rows)
		}
		results[k] = c.Result()
		slices.Reverse(events)
	}
	r := results[0]
	if got := uint64(len(r.Stalls)) + r.LeftOut; got != n {
		t.Errorf("%d stalls and %d left out, want %d", len(r.Stalls), r.LeftOut, n)
	}
	var shortest, stalled float64 = math.Inf(1), 0
	for i := range r.Stalls {
		s := &r.Stalls[i]
		shortest = min(shortest, s.Micros)
		if s.Reported && (len(s.Neighborhood) != 11 || s.Culprit != 5) {
			t.Fatalf("stall %d has %d rows, culprit %d", i, len(s.Neighborhood), s.Culprit)
		}
	}
	if shortest < 4990 {
		t.Errorf("a stall of %g us is kept, though there are enough longer ones", shortest)
	}
	for _, p := range r.PMDs {
		stalled += p.Stalled
	}
	if math.Abs(stalled-sum) > sum/100 {
		t.Errorf("stalls took %g us, want %g", stalled, sum)
	}
	if f := r.Findings[0]; f.Kind != LostCPU || f.Count != n {
		t.Errorf("first finding %s of %d, want %s of %d", f.Kind, f.Count, LostCPU, n)
	}
	for i := range r.Stalls {
		one, other := r.Stalls[i], results[1].Stalls[i]
		one.Place, other.Place = Place{}, Place{}
		if !reflect.DeepEqual(one, other) {
			t.Fatalf("stall %d is %+v, in another order %+v", i, one, other)
		}
	}
	if diff := cmp.Diff(kinds(r), kinds(results[1])); diff != "" {
		t.Errorf("in another order (-one +other):\n%s", diff)
	}
}

// TestThin has neighborhoods that are too large to be kept all.
func TestThin(t *testing.T) {
	c := NewCase()
	src := c.AddSource("x")
	const n, around = 1000, 400
	for i := range n {
		c.AddRecord(src, event(1, uint64(1_000_000+i*5000), uint64(1000+i), start().Add(time.Duration(i)*time.Second), around))
		if c.rows > maxRows {
			t.Fatalf("%d rows are kept", c.rows)
		}
	}
	r := c.Result()
	with := 0
	var longest *Stall
	for i := range r.Stalls {
		s := &r.Stalls[i]
		if len(s.Neighborhood) > 0 {
			with++
		}
		if longest == nil || s.Micros > longest.Micros {
			longest = s
		}
	}
	if len(r.Stalls) != n || with < 50 {
		t.Errorf("%d stalls, %d of them with their neighborhood", len(r.Stalls), with)
	}
	if longest.Micros != 1000+n-1 || len(longest.Neighborhood) != 2*around+1 {
		t.Errorf("the longest, %g us, has %d rows", longest.Micros, len(longest.Neighborhood))
	}
}

// TestManyThreads has more threads than are told apart.
func TestManyThreads(t *testing.T) {
	c := NewCase()
	src := c.AddSource("x")
	const n = 3 * maxThreads
	for i := range n {
		c.AddRecord(src, event(i, uint64(1_000_000+i*5000), 4000, start().Add(time.Duration(i)*time.Second), 5))
	}
	r := c.Result()
	if len(r.PMDs) != maxThreads+1 || len(r.Stalls) != n {
		t.Errorf("%d PMDs, %d stalls", len(r.PMDs), len(r.Stalls))
	}
}

// TestCommonCause has stalls at the same instant, and stalls that only happen to be.
func TestCommonCause(t *testing.T) {
	for _, test := range []struct {
		name   string
		stalls func(core, i int) (at time.Duration, us uint64)
		n      int
		want   bool
	}{
		{"same instant", func(core, i int) (time.Duration, uint64) {
			return time.Duration(i)*1700*time.Millisecond + time.Duration(core)*time.Millisecond/2, uint64(5000 + 100*i + core)
		}, 5, true},
		{"one instant", func(core, i int) (time.Duration, uint64) { return time.Minute, uint64(300_000 + core) }, 1, true},
		{"shifted", func(core, i int) (time.Duration, uint64) {
			return time.Duration(i)*1700*time.Millisecond + time.Duration(core)*70*time.Millisecond, uint64(5000 + 100*i + core)
		}, 5, false},
		{"different lengths", func(core, i int) (time.Duration, uint64) {
			return time.Duration(i) * 1700 * time.Millisecond, uint64(4000 + 9000*core)
		}, 5, false},
		{"everywhere", func(core, i int) (time.Duration, uint64) {
			return time.Duration(i*(7+core)) * time.Millisecond, uint64(4000 + core)
		}, 200, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := NewCase()
			src := c.AddSource("x")
			for core := range 3 {
				for i := range test.n {
					at, us := test.stalls(core, i)
					c.AddRecord(src, event(core, uint64(1_000_000+i*5000), us, start().Add(at), 5))
				}
				c.span.see(start().Add(5 * time.Minute))
				c.span.see(start())
			}
			r := c.Result()
			if got := slices.Contains(kinds(r), CommonCause); got != test.want {
				t.Errorf("a common cause: %v, want %v; %v", got, test.want, kinds(r))
			}
		})
	}
}

// TestTornTable has a table whose second half lost its first line, as at a rotation.
func TestTornTable(t *testing.T) {
	ev := event(1, 5_000_000, 8000, start(), 5)
	c := NewCase()
	first, second := *ev, ovslog.Event{Core: -1, Culprit: -1, TableLine: 1, Table: ev.Table[4:]}
	first.Table, first.Culprit = ev.Table[:4], -1
	c.AddRecord(c.AddSource("log.1"), &first)
	c.AddRecord(c.AddSource("log"), &second)
	r := c.Result()
	if len(r.Stalls) != 1 || !r.Stalls[0].Known || r.Stalls[0].Cycles != 8000*testHz/1e6 || len(r.PMDs) != 1 {
		t.Errorf("stalls %+v of %d PMDs", r.Stalls, len(r.PMDs))
	}
}
