package cause

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSwitches(t *testing.T) {
	w := newSwitches(0, func(n int) string { return map[int]string{7: "read", noCall: "none"}[n] })
	for _, e := range []event{
		{time: 100, kind: evOut, pid: 0, comm: "swapper/1", state: taskInterruptible, call: 7},
		{time: 150, kind: evOther, pid: 9, comm: "cc"},
		{time: 180, kind: evWake},
		{time: 190, kind: evWake},
		{time: 195, kind: evOther, pid: 8, comm: "sh"},
		{time: 200, kind: evIn, pid: 8},
		{time: 300, kind: evIRQ, comm: "softirq RCU", span: 20},
		{time: 400, kind: evOut, pid: 9, comm: "cc", state: taskStopped | 0x100, call: noCall},
	} {
		w.add(e)
	}
	first := Spell{Out: 100, In: 200, Woken: 180, State: "sleeping", Call: "read", Ran: []Ran{{100, 150, 0, "idle"}, {150, 195, 9, "cc"}, {195, 200, 8, "sh"}}}
	last := Spell{Out: 400, State: "stopped", Call: "none", Ran: []Ran{{400, 500, 9, "cc"}}}
	for _, tt := range []struct {
		from, to int64
		spells   []Spell
		irqs     int
	}{
		{0, 500, []Spell{first, last}, 1},
		{120, 130, []Spell{first}, 0},
		{200, 290, nil, 1},
		{300, 400, nil, 0},
		{450, 500, []Spell{last}, 0},
	} {
		spells, irqs, _, complete := w.between(tt.from, tt.to)
		if diff := cmp.Diff(tt.spells, spells); diff != "" || len(irqs) != tt.irqs || !complete {
			t.Errorf("%d to %d: %d interrupts, complete %v, spells (-want +got):\n%s", tt.from, tt.to, len(irqs), complete, diff)
		}
	}
}

// TestSwitchesLost wants every hole to be known.
func TestSwitchesLost(t *testing.T) {
	out := func(t int64) event { return event{time: t, kind: evOut, pid: -1} }
	in := func(t int64) event { return event{time: t, kind: evIn, pid: -1} }
	for _, tt := range []struct {
		name     string
		events   []event
		from, to int64
		complete bool
	}{
		{"none", []event{out(100), in(200)}, 50, 250, true},
		{"before the start", []event{out(100), in(200)}, -1, 250, false},
		{"told, around", []event{out(100), in(200), {kind: evLost}, out(300), in(400)}, 210, 290, false},
		{"told, elsewhere", []event{out(100), in(200), {kind: evLost}, out(300), in(400)}, 310, 390, true},
		{"told, the last", []event{out(100), in(200), {kind: evLost}}, 110, 190, false},
		{"no leaving", []event{out(100), in(200), in(300)}, 210, 290, false},
		{"no coming", []event{out(100), out(200), in(300)}, 110, 190, false},
	} {
		w := newSwitches(0, func(int) string { return "" })
		for _, e := range tt.events {
			w.add(e)
		}
		if _, _, gaps, complete := w.between(tt.from, tt.to); (complete && len(gaps) == 0) != tt.complete {
			t.Errorf("%s: complete %v", tt.name, complete)
		}
	}
	// Of a spell without an end what is known is kept.
	g := newSwitches(0, func(int) string { return "" })
	for _, e := range []event{{time: 10, kind: evOut, pid: 7, comm: "sh"}, {time: 30, kind: evOther, pid: 8, comm: "cc"}, {time: 90, kind: evOut, pid: 7, comm: "sh"}, in(95)} {
		g.add(e)
	}
	spells, _, gaps, complete := g.between(0, 100)
	if len(spells) != 2 || spells[0].In != 30 || len(spells[0].Ran) != 1 || spells[0].Ran[0].To != 30 || !complete {
		t.Errorf("spells %+v, complete %v", spells, complete)
	}
	if diff := cmp.Diff([]Gap{{30, 90}}, gaps); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
	// Spells that were dropped are a hole too, and so is a list that is full.
	w := newSwitches(0, func(int) string { return "" })
	for i := range int64(maxSpells + 10) {
		w.add(out(10 * i))
		w.add(in(10*i + 5))
	}
	if _, _, _, complete := w.between(50, 60); complete {
		t.Error("dropped spells are not missed")
	}
	if spells, _, _, complete := w.between(205, 220); len(spells) != 1 || !complete {
		t.Errorf("%d spells, complete %v", len(spells), complete)
	}
	w.add(event{time: 1 << 20, kind: evOut, pid: 1})
	for i := range int64(2 * maxRan) {
		w.add(event{time: 1<<20 + i, kind: evOther, pid: int(2 + i)})
	}
	w.add(event{time: 1 << 21, kind: evIn})
	if s, _ := w.spells.last(); len(s.Ran) != maxRan || !s.More {
		t.Errorf("%d tasks, more %v", len(s.Ran), s.More)
	}
}

func TestPauses(t *testing.T) {
	w := newSwitches(0, func(int) string { return "" })
	now := int64(0)
	tick := func(n int, period int64) {
		for range n {
			now += period
			w.add(event{time: now + 1, kind: evTick, span: 1})
		}
	}
	tick(20, 4*ms)
	if _, ok := w.pauses(0, now); ok {
		t.Error("a few ticks are no rule")
	}
	tick(100, 4*ms)
	from := now
	now += 46 * ms
	tick(100, 4*ms)
	got, ok := w.pauses(from-ms, from+ms)
	if diff := cmp.Diff([]Pause{{from + 4*ms, from + 50*ms, 11}}, got); diff != "" || !ok {
		t.Errorf("%v (-want +got):\n%s", ok, diff)
	}
	if got, _ := w.pauses(0, from-ms); got != nil {
		t.Errorf("pauses elsewhere: %v", got)
	}
	for i := range int64(2000) {
		tick(1, ms*(1+i%5*3))
	}
	if _, ok := w.pauses(0, now); ok {
		t.Error("ticks at any time are no rule")
	}
}

func TestRing(t *testing.T) {
	r := ring[stamped[int]]{size: 3}
	if _, ok := r.last(); ok {
		t.Error("an empty ring has a last value")
	}
	for i := range 5 {
		r.push(stamped[int]{begun: int64(10 * i), done: int64(10*i + 5), v: i})
	}
	var got []int
	for v := range r.all() {
		got = append(got, v.v)
	}
	if diff := cmp.Diff([]int{2, 3, 4}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if last, _ := r.last(); last.v != 4 {
		t.Errorf("last %d", last.v)
	}
	for _, tt := range []struct {
		from, to, before, after int64
		ok                      bool
	}{
		{25, 30, 2, 3, true}, {36, 40, 3, 4, true}, {34, 40, 2, 4, true}, {24, 30, 0, 0, false}, {30, 41, 0, 0, false},
	} {
		a, b, ok := bracket(&r, tt.from, tt.to)
		if ok != tt.ok || ok && (int64(a.v) != tt.before || int64(b.v) != tt.after) {
			t.Errorf("%d to %d: %v %v %v", tt.from, tt.to, a, b, ok)
		}
	}
}
