package observe

import (
	"math"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/suspicious/cause"
	"github.com/pmdperf/pmdperf/suspicious/ovslog"
)

// at is a time of the tests below.
func at(d time.Duration) time.Time {
	return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).Add(d)
}

func hogged(begin, took time.Duration) *Spell {
	return &Spell{Thread: "pmd-c01/id:8", Kind: OffCore, Begin: at(begin), Took: took,
		Causes: []cause.Cause{{Kind: cause.Preempted, Name: "sh", Part: took, Share: 1, How: cause.Exact, Evidence: "seen"}}}
}

func TestJoin(t *testing.T) {
	const ms = time.Millisecond
	w := &watcher{since: at(0), kept: []*Spell{hogged(10*ms, 4*ms), hogged(100*ms, 8*ms), hogged(200*ms, 2*ms)}}
	event := func(logged time.Duration, us uint64) *ovslog.Event {
		return &ovslog.Event{Origin: ovslog.Origin{Thread: "pmd-c01/id:8", Time: at(logged)}, Reasons: []string{ovslog.ReasonCycles},
			Iteration: 7, Duration: us, Culprit: -1, HasHeader: true}
	}
	late := &watcher{since: at(time.Second), kept: w.kept}
	for _, tt := range []struct {
		name   string
		e      *ovslog.Event
		w      *watcher
		begin  time.Duration
		spells int
		causes []string // with the part in ms
	}{
		{"logged at once", event(109*ms, 9000), w, 100 * ms, 1, []string{"preempted by sh 8ms", "the loop's own work 1ms"}},
		{"logged late, as a table tells", func() *ovslog.Event {
			e := event(159*ms, 9000)
			// 50 ms in iterations that follow, at 1 GHz.
			e.Table = []ovslog.Row{{Iteration: 9, Cycles: 20e6}, {Iteration: 8, Cycles: 30e6}, {Iteration: 7, Cycles: 9e6}}
			e.Culprit = 2
			return e
		}(), w, 100 * ms, 1, []string{"preempted by sh 8ms", "the loop's own work 1ms"}},
		{"two spells", event(206*ms, 108000), w, 98 * ms, 2, []string{"the loop's own work 98ms", "preempted by sh 10ms"}},
		{"shorter than the spell", event(108*ms, 3000), w, 105 * ms, 1, []string{"preempted by sh 3ms"}},
		{"with its own time", func() *ovslog.Event {
			e := event(500*ms, 6000)
			e.Began = at(104 * ms)
			return e
		}(), w, 104 * ms, 1, []string{"preempted by sh 4ms", "the loop's own work 2ms"}},
		{"elsewhere", event(160*ms, 1000), w, 159 * ms, 0, []string{"unknown 1ms"}},
		{"of another thread", event(109*ms, 9000), nil, 100 * ms, 0, nil},
		{"of before the probes", event(109*ms, 9000), late, 100 * ms, 0, nil},
		{"of a counter of 1 Hz", func() *ovslog.Event {
			e := event(159*ms, 18e12) // 18 million cycles
			e.Table = []ovslog.Row{{Iteration: 9, Cycles: 40e6}, {Iteration: 8, Cycles: 60e6}, {Iteration: 7, Cycles: 18e6}}
			e.Culprit = 2
			return e
		}(), w, 100 * ms, 1, []string{"preempted by sh 8ms", "the loop's own work 1ms"}},
		{"nonsense", event(11*time.Minute, math.MaxUint64), w, 0, 0, nil},
	} {
		it := join(tt.e, tt.w, 2e9)
		if it.Watched != (tt.w == w) || len(it.Spells) != tt.spells {
			t.Errorf("%s: watched %v, %d spells", tt.name, it.Watched, len(it.Spells))
		}
		if tt.name == "nonsense" {
			continue // it is told, that is all
		}
		if d := it.Begin.Sub(at(tt.begin)); d.Abs() > 20*time.Microsecond {
			t.Errorf("%s: it began %v off", tt.name, d)
		}
		sum := time.Duration(0)
		for i, c := range it.Causes {
			sum += c.Part
			if got := c.Title() + " " + c.Part.String(); i >= len(tt.causes) || got != tt.causes[i] {
				t.Errorf("%s: cause %d is %s", tt.name, i, got)
			}
		}
		if len(it.Causes) != len(tt.causes) || sum > it.Took {
			t.Errorf("%s: %d causes of %v of %v", tt.name, len(it.Causes), sum, it.Took)
		}
	}
}

func TestNamed(t *testing.T) {
	for _, tt := range []struct {
		logged, name string
		want         bool
	}{
		{"pmd-c01/id:8", "pmd-c01/id:8", true},
		{"pmd-c01/id:80", "pmd-c01/id:8", false},
		{"pmd-c100/id:1234", "pmd-c100/id:123", true}, // 15 bytes
		{"", "pmd-c01/id:8", false},
	} {
		if got := named(tt.logged, tt.name); got != tt.want {
			t.Errorf("named(%q, %q) = %v", tt.logged, tt.name, got)
		}
	}
}
