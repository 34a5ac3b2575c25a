package perf

import (
	"math"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/history"
)

// The tests in this file each name a defect of the recorder that ours is modeled
// on, and fail on its behaviour.

// driver runs a recorder on a clock of its own: 1 MHz unless told, and no time
// passes but what the test says.
type driver struct {
	t *testing.T
	*Recorder
	now uint64
}

func drive(t *testing.T, hz float64, cfg Config) *driver {
	d := &driver{t: t, now: 1 << 40}
	r, err := newRecorder(cfg, hz, func() uint64 { return d.now })
	if err != nil {
		t.Fatal(err)
	}
	d.Recorder = r
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	return d
}

// pass makes a pass of the given length that receives and sends.
func (d *driver) pass(ticks uint64, rx, tx int) {
	d.now += ticks
	if rx > 0 {
		d.Batch(rx, 0)
	}
	if tx > 0 {
		d.Tx(tx, 1)
	}
	d.end(d.now)
}

// do has the owner do an errand at the end of an empty pass.
func (d *driver) do(e errand) {
	d.t.Helper()
	req := &request{errand: e}
	d.answerAfter = 0
	d.request.Store(req)
	d.end(d.now)
	if d.rest.req == req {
		d.copyRest(math.MaxInt) // or else empty passes have to follow
		d.arm()
	}
	if !req.done.Load() {
		d.t.Fatal("no answer")
	}
}

// to begins the polling of a queue without a stamp.
func (d *driver) to(q int) { d.cur = q + firstCur }

// snapshot returns a snapshot with all history, made at the end of an empty pass.
func (d *driver) snapshot() *Snapshot {
	d.t.Helper()
	s := new(Snapshot)
	want := Want{Iterations: history.Shown, Millis: history.Shown}
	s.room(want, 8, 0, 0)
	d.do(errand{into: s, want: want})
	s.settle()
	s.Hz = d.Hz()
	return s
}

var twoQueues = Polling{RxQueues: []Queue{{Port: "a"}, {Port: "b"}}}

// 1: deltas of 32 bits make the busy cycles of one long iteration negative.
func TestDefect1LongIterationIsCounted(t *testing.T) {
	d := drive(t, 2.5e9, Config{})
	d.pass(1<<32+12345, 1, 1)
	d.pass(1<<31, 1, 1)
	s := d.snapshot()
	if want := uint64(1<<32 + 12345 + 1<<31); s.Totals.BusyCycles != want {
		t.Errorf("%d busy cycles, want %d", s.Totals.BusyCycles, want)
	}
}

// 2: an iteration of 2^32 + 1000 cycles lands in the bin of 1025.
func TestDefect2LongIterationIsInTheLastBin(t *testing.T) {
	d := drive(t, 2.5e9, Config{})
	d.pass(1<<32+1000, 1, 1)
	s := d.snapshot()
	w := histogram.CyclesPerIteration.Walls()
	if s.Cycles.Bins[w.Bin(1000)] != 0 || s.Cycles.Bins[histogram.NumBins-1] != 1 {
		t.Errorf("bins %v", s.Cycles.Bins)
	}
	if s.Cycles.Max() != 1<<32+1000 {
		t.Errorf("max %d", s.Cycles.Max())
	}
}

// 3: totals of 32 bits are wrong after 2^32 packets and after 2^32 upcall cycles.
func TestDefect3TotalsAreWide(t *testing.T) {
	d := drive(t, 1e6, Config{Level: Detailed})
	for range 40 {
		d.Upcall(1<<30, true)
		d.pass(1000, 1<<28, 1<<28)
	}
	s := d.snapshot()
	if want := uint64(40 << 28); s.Totals.RxPackets != want || s.Totals.TxPackets != want || s.Packets.Sum() != want {
		t.Errorf("rx %d tx %d, want %d", s.Totals.RxPackets, s.Totals.TxPackets, want)
	}
	if want := uint64(40 << 30); s.Totals.UpcallCycles != want || s.CyclesPerUpcall.Sum() != want {
		t.Errorf("upcall cycles %d and %d, want %d", s.Totals.UpcallCycles, s.CyclesPerUpcall.Sum(), want)
	}
}

// 4: iterations that only send count as idle while their cycles count as busy.
func TestDefect4IdleMeansOneThing(t *testing.T) {
	d := drive(t, 1e6, Config{})
	for range 10 {
		d.pass(100, 0, 5)
		d.pass(7, 0, 0)
	}
	s := d.snapshot()
	n := &s.Totals
	if n.BusyIterations != 10 || n.BusyCycles != 1000 || n.IdleIterations() != 11 || n.IdleCycles() != 70 {
		t.Errorf("busy %d with %d cycles, idle %d with %d", n.BusyIterations, n.BusyCycles, n.IdleIterations(), n.IdleCycles())
	}
}

// 5: asked for more history than there is, the slot being written and empty rows
// are shown.
func TestDefect5HistoryHoldsWhatWasRecorded(t *testing.T) {
	d := drive(t, 1e6, Config{})
	for i := range 5 {
		d.pass(uint64(i+1), 1, 0)
	}
	d.now += 99
	d.Batch(3, 0) // the pass under way
	req := &request{errand: errand{into: new(Snapshot), want: Want{1000, 1000}}}
	req.into.room(req.want, 8, 0, 0)
	d.Park() // which ends it
	d.Recorder.request.Store(req)
	if !d.answerParked() {
		t.Fatal("no answer")
	}
	s := req.into
	if len(s.Iterations) != 6 || len(s.Millis) != 0 || s.FirstIteration() != 0 {
		t.Fatalf("%d iterations from %d and %d rows", len(s.Iterations), s.FirstIteration(), len(s.Millis))
	}
	for i, rec := range s.Iterations {
		if rec.Cycles == 0 || rec.Rx == 0 {
			t.Errorf("iteration %d is empty", i)
		}
	}
}

// 6: milliseconds in which the loop was stalled are missing, and a row of 11 ms
// counts as one.
func TestDefect6StalledMillisecondsShow(t *testing.T) {
	d := drive(t, 1e6, Config{Level: Detailed})
	for range 25 {
		d.pass(100, 10, 0)
	}
	d.pass(11_000, 10, 0) // in a row that had 500 us
	for range 20 {
		d.pass(100, 10, 0)
	}
	s := d.snapshot()
	var lengths []uint64
	for _, m := range s.Millis {
		lengths = append(lengths, m.Duration)
	}
	if len(lengths) != 5 || lengths[2] != 11_500 || lengths[0] != 1000 || lengths[3] != 1000 {
		t.Errorf("rows of %v us", lengths)
	}
	// The rate of the long row: 60 packets in 11.5 ms.
	if m := s.Millis[2]; m.Rx != 60 || m.Iterations != 6 {
		t.Errorf("the long row has %d packets in %d iterations", m.Rx, m.Iterations)
	}
}

// 11: after enabling in mid-run the cycles per upcall are diluted by upcalls that
// were not timed.
func TestDefect11UpcallsAreNotDiluted(t *testing.T) {
	d := drive(t, 1e6, Config{Level: Basic})
	for range 100 {
		d.Upcall(5000, true)
		d.pass(6000, 1, 1)
	}
	d.do(errand{setLevel: true, level: Detailed})
	for range 10 {
		d.Upcall(5000, true)
		d.pass(6000, 1, 1)
	}
	s := d.snapshot()
	if s.Counts[UpcallsOK] != 110 {
		t.Errorf("%d upcalls", s.Counts[UpcallsOK])
	}
	if n := s.CyclesPerUpcall.Count(); n != 10 || s.CyclesPerUpcall.Sum()/n != 5000 {
		t.Errorf("%d timed upcalls of %d cycles", n, s.CyclesPerUpcall.Sum()/n)
	}
}

// 12: a reload loses the iteration under way, and its time is booked nowhere.
func TestDefect12ReloadKeepsTheIterationAndBooksTheGap(t *testing.T) {
	d := drive(t, 1e6, Config{Polling: twoQueues})
	d.pass(100, 1, 1)
	d.Poll(0)
	d.Batch(7, 0)
	d.now += 40
	d.Park()
	d.now += 1234
	if err := d.Resume(&Polling{RxQueues: []Queue{{Port: "b"}}}); err != nil {
		t.Fatal(err)
	}
	d.pass(10, 0, 0)
	s := d.snapshot()
	g := s.Gaps[history.Reload]
	if g.Count != 1 || g.Ticks != 1234 || g.Min != 1234 || g.Max != 1234 || s.Reloads.Max() != 1234 {
		t.Errorf("reload gaps %+v", g)
	}
	if s.Totals.RxPackets != 8 || s.Totals.Iterations != 4 || s.Totals.Cycles != 150 {
		t.Errorf("%+v", s.Totals)
	}
	if rec := s.Iterations[2]; !rec.Flags.After(history.Reload) {
		t.Error("the first iteration after the reload is not marked")
	}
	// What the queue that went had is kept apart.
	if s.Gone.Packets != 7 || s.Gone.BusyCycles != 40 || len(s.RxQueues) != 1 {
		t.Errorf("gone %+v, queues %+v", s.Gone, s.RxQueues)
	}
}

// 15: the flag that enables details is read several times in an iteration.
func TestDefect15LevelChangesBetweenIterations(t *testing.T) {
	d := drive(t, 1e6, Config{Level: Basic})
	req := &request{errand: errand{setLevel: true, level: Detailed}}
	d.Batch(32, 40) // recorded at level basic,
	d.Recorder.request.Store(req)
	d.Batch(32, 40) // and so is the rest of the pass
	d.now += 100
	d.end(d.now)
	d.Batch(5, 6)
	d.now += 100
	d.end(d.now)
	s := d.snapshot()
	first, second := s.Iterations[0], s.Iterations[1]
	if first.Rx != 64 || first.Batches != 0 || first.Fill != 0 || first.Flags&history.Detailed != 0 {
		t.Errorf("the pass in which the level changed: %+v", first)
	}
	if second.Rx != 5 || second.Batches != 1 || second.Fill != 6 || second.Flags&history.Detailed == 0 {
		t.Errorf("the pass after: %+v", second)
	}
	if n := s.BatchPackets.Count(); n != 1 {
		t.Errorf("%d batches in the histogram", n)
	}
}

// 16: on a slow counter all iterations fall into the first bin.
func TestDefect16SlowCountersAreResolved(t *testing.T) {
	d := drive(t, 25e6, Config{})
	for range 100 {
		d.pass(50, 1, 1)  // 2 us
		d.pass(100, 1, 1) // 4 us
	}
	s := d.snapshot()
	if s.Cycles.Bins[0] != 201 {
		t.Fatalf("the walls should not tell them apart: %v", s.Cycles.Bins)
	}
	p25, p90 := s.Duration(s.Cycles.Quantile(0.25)), s.Duration(s.Cycles.Quantile(0.9))
	if p25 != 2*time.Microsecond || p90 != 4*time.Microsecond {
		t.Errorf("p25 %v p90 %v", p25, p90)
	}
}

// 18: a show right after a clear can print old data.
func TestDefect18ClearIsDoneWhenItReturns(t *testing.T) {
	r := newTest(t, Config{Level: Detailed})
	spin(t, r, func() {
		r.Batch(32, 0)
		r.Count(EMCHit, 32)
	})
	s := new(Snapshot)
	for range 20 {
		time.Sleep(2 * time.Millisecond)
		if err := r.Snapshot(t.Context(), Want{}, s); err != nil {
			t.Fatal(err)
		}
		before := s.NextIteration
		if err := r.Clear(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.Snapshot(t.Context(), Want{1000, 1000}, s); err != nil {
			t.Fatal(err)
		}
		if passes := s.NextIteration - before; s.Totals.Iterations > passes {
			t.Errorf("%d iterations where %d passes were made since before the clear", s.Totals.Iterations, passes)
		}
		if s.Counts[EMCHit] != s.Totals.RxPackets {
			t.Errorf("%d hits of %d packets", s.Counts[EMCHit], s.Totals.RxPackets)
		}
		if uint64(len(s.Iterations)) > s.Totals.Iterations {
			t.Errorf("%d iterations shown of %d since the clear", len(s.Iterations), s.Totals.Iterations)
		}
	}
}

// 20: a clock that was never calibrated has 1 Hz.
func TestDefect20ClockIsCalibrated(t *testing.T) {
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Hz() < 1e6 {
		t.Errorf("%v Hz", r.Hz())
	}
}

// 22: nothing says which queue a slow iteration spent its time in.
func TestDefect22RecordsNameTheQueue(t *testing.T) {
	d := drive(t, 1e6, Config{Polling: twoQueues})
	turn := func(first, second, rest uint64) {
		d.Poll(0)
		d.now += first
		d.stamp(d.now)
		d.to(1)
		d.now += second
		d.stamp(d.now)
		d.cur = between
		d.now += rest
		d.end(d.now)
	}
	turn(5, 3, 1)
	turn(3, 5, 1)
	turn(3, 5, 10)
	s := d.snapshot()
	for i, want := range []int{0, 1, -1} {
		q, ok := s.Iterations[i].Flags.Queue()
		if ok != (want >= 0) || ok && q != want {
			t.Errorf("iteration %d: queue %d %v, want %d", i, q, ok, want)
		}
	}
}

// Nothing hides in the gaps: a stall at any instant, also while the recorder
// accounts or answers, is found in a pass, a sleep or the gap before a pass.
func TestStallsAreFoundWherever(t *testing.T) {
	const stall = 1_000_000
	d := drive(t, 1e9, Config{Level: Detailed, Polling: twoQueues})
	random := uint64(1)
	injected := 0
	step := func(ticks uint64) {
		d.now += ticks
		random = random*6364136223846793005 + 1442695040888963407
		if random>>57 == 0 { // one step in 128
			d.now += stall
			injected++
		}
	}
	d.clock = func() uint64 { step(20); return d.now }
	found, seen := 0, uint64(0)
	var last uint64
	kinds := make(map[string]int)
	s := new(Snapshot)
	want := Want{Iterations: history.Shown}
	s.room(want, 8, 0, 0)
	look := func() {
		req := &request{errand: errand{into: s, want: want}}
		d.answerAfter = 0
		d.Recorder.request.Store(req)
		for !req.done.Load() {
			step(50)
			d.end(d.now)
		}
		for i, rec := range s.Iterations {
			n := s.FirstIteration() + uint64(i)
			if n < seen {
				continue
			}
			for what, ticks := range map[string]uint64{"pass": rec.Cycles, "sleep": rec.Sleep, "gap": rec.Start() - last} {
				if last == 0 && what == "gap" {
					continue
				}
				found += int(ticks / stall)
				kinds[what] += int(ticks / stall)
			}
			last, seen = rec.End, n+1
		}
	}
	d.end(d.now)
	look()
	injected, found = 0, 0
	for range 200 {
		for i := range 300 {
			d.Poll(0)
			step(30)
			d.Batch(3, 0)
			d.stamp(d.now)
			d.to(1)
			step(30)
			if i%7 == 0 {
				d.SleepBegin()
				step(10)
				d.SleepEnd()
			}
			step(5)
			d.end(d.now)
		}
		look()
	}
	// The gap after the last record is not over.
	d.clock = func() uint64 { return d.now }
	look()
	if found != injected {
		t.Errorf("%d of %d stalls found: %v", found, injected, kinds)
	}
	for _, what := range []string{"pass", "sleep", "gap"} {
		if kinds[what] == 0 {
			t.Errorf("no stall happened in a %s: %v", what, kinds)
		}
	}
}
