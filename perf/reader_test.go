package perf

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/history"
)

// spin runs a loop until the test ends, in whose passes it calls pass.
func spin(t *testing.T, r *Recorder, pass func()) {
	stop, stopped := make(chan bool), make(chan bool)
	go func() {
		defer close(stopped)
		defer r.Close()
		r.Start()
		for {
			select {
			case <-stop:
				return
			default:
				pass()
				r.End()
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
	// Until the loop has begun its readers answer themselves.
	for r.State() != Running {
		time.Sleep(time.Millisecond)
	}
}

func newTest(t *testing.T, cfg Config) *Recorder {
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A loop that runs is never called stalled, however impatient its reader is.
func TestImpatientReaders(t *testing.T) {
	r := newTest(t, Config{})
	spin(t, r, func() {})
	s := new(Snapshot)
	gaveUp := 0
	for i := 0; gaveUp < 50 && i < 10_000; i++ {
		ctx, cancel := context.WithTimeout(t.Context(), []time.Duration{20, 100, 300, 900}[i%4]*time.Microsecond)
		err := r.Snapshot(ctx, Want{}, s)
		cancel()
		if err == nil {
			continue
		}
		gaveUp++
		if _, ok := errors.AsType[*StalledError](err); ok {
			// The machine, not the recorder, may have kept the loop's thread waiting.
			if e, _ := errors.AsType[*StalledError](err); e.For < answerTime {
				t.Fatalf("a loop that runs is called stalled: %v", err)
			}
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	if gaveUp == 0 {
		t.Error("no reader gave up: nothing was tested")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		for _, err := range []error{r.Snapshot(ctx, Want{}, s), r.Clear(ctx), r.SetLevel(ctx, Detailed)} {
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("cancelled: %v", err)
			}
		}
	}
}

// Nobody waits for a clock that went back an hour to catch up.
func TestClockFarBack(t *testing.T) {
	for _, level := range []Level{Basic, Off} {
		d := drive(t, 1e6, Config{Level: level})
		post := func() *request {
			req := &request{errand: errand{}}
			d.Recorder.request.Store(req)
			return req
		}
		step := func() {
			d.now += 10
			if d.level == Off {
				d.serveOff()
			} else {
				d.end(d.now)
			}
		}
		post()
		step()
		d.now -= 3600e6
		req := post()
		for range 1000 {
			step()
		}
		if !req.done.Load() {
			t.Errorf("%v: not answered in 1000 passes", level)
		}
	}
}

// Time is booked as what it was, also where the level changes while the loop is
// parked.
func TestLevelChangesWhileParked(t *testing.T) {
	ask := func(d *driver, e errand) {
		t.Helper()
		d.Recorder.request.Store(&request{errand: e})
		if !d.answerParked() {
			t.Fatal("no answer")
		}
	}
	d := drive(t, 1e6, Config{Level: Off})
	d.now += 5000
	d.Park()
	ask(d, errand{setLevel: true, level: Basic})
	d.now += 50
	if err := d.Resume(nil); err != nil {
		t.Fatal(err)
	}
	s := d.snapshot()
	if off, reload := s.Gaps[history.Off], s.Gaps[history.Reload]; off.Ticks != 5000 || reload.Ticks != 50 || reload.Count != 1 {
		t.Errorf("switched on while parked: off %+v, reload %+v", off, reload)
	}

	d = drive(t, 1e6, Config{Level: Basic})
	d.Park()
	d.now += 50
	ask(d, errand{setLevel: true, level: Off})
	d.now += 700
	if err := d.Resume(nil); err != nil {
		t.Fatal(err)
	}
	d.now += 300
	req := &request{errand: errand{setLevel: true, level: Basic}}
	d.Recorder.request.Store(req)
	d.serveOff()
	s = d.snapshot()
	if off, reload := s.Gaps[history.Off], s.Gaps[history.Reload]; off.Ticks != 1000 || reload.Ticks != 50 || reload.Count != 1 {
		t.Errorf("switched off while parked: off %+v, reload %+v", off, reload)
	}
}

// The record after a reload also says that the recorder itself worked before.
func TestGapMarksSurviveAPark(t *testing.T) {
	d := drive(t, 1e6, Config{})
	d.clock = func() uint64 { d.now += 100; return d.now }
	for range pending {
		d.end(d.now)
	}
	d.Park()
	if err := d.Resume(nil); err != nil {
		t.Fatal(err)
	}
	if f := d.record().Flags; !f.After(history.Accounting) || !f.After(history.Reload) {
		t.Errorf("flags %b", f)
	}
}

// A request that its reader gave up is answered at the latest when the loop parks, so
// that a long park is no stall.
func TestParkPaysWhatIsOwed(t *testing.T) {
	r := newTest(t, Config{})
	r.Start()
	s := new(Snapshot)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := r.Snapshot(ctx, Want{}, s); err == nil {
		t.Fatal("answered by nobody")
	}
	r.Park()
	r.reader.made = r.reader.made.Add(-time.Minute) // as if a minute passed
	r.Resume(nil)
	if waiting := r.unanswered(); waiting != 0 {
		t.Errorf("a request is owed since %v", waiting)
	}
}

// What was reported as failed does not happen later.
func TestFailedChangesDoNotHappen(t *testing.T) {
	r := newTest(t, Config{Level: Detailed})
	r.Start()
	r.Batch(7, 0)
	r.End()
	r.Batch(1, 0) // the loop is stuck in this pass
	for what, change := range map[string]func(context.Context) error{
		"clear": r.Clear,
		"level": func(ctx context.Context) error { return r.SetLevel(ctx, Off) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := change(ctx)
		cancel()
		if _, ok := errors.AsType[*StalledError](err); !ok || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
		time.Sleep(2 * time.Millisecond)
		r.End() // answers what took its place, and nothing is owed to the next
	}
	r.Close()
	s := new(Snapshot)
	if err := r.Snapshot(t.Context(), Want{}, s); err != nil {
		t.Fatal(err)
	}
	if s.Totals.RxPackets != 8 || s.Level != Detailed {
		t.Errorf("%d packets at level %v", s.Totals.RxPackets, s.Level)
	}
}

// Readers who share an answer get what they want of it, and no more.
func TestWants(t *testing.T) {
	d := drive(t, 1e6, Config{Level: Detailed, Polling: twoQueues})
	for range 50 {
		d.pass(1000, 1, 1)
	}
	d.Park()
	for _, want := range []Want{{0, 0}, {5, 7}, {40, 2}, {2, 40}, {5000, 5000}, {-1, -1}} {
		s := new(Snapshot)
		if err := d.Snapshot(t.Context(), want, s); err != nil {
			t.Fatal(err)
		}
		if its, ms := max(0, min(want.Iterations, 50)), max(0, min(want.Millis, 50)); len(s.Iterations) != its || len(s.Millis) != ms {
			t.Errorf("%+v: %d iterations and %d milliseconds", want, len(s.Iterations), len(s.Millis))
		}
	}
}

// An answer is shared with those who came before it was asked for and want no more.
func TestSharing(t *testing.T) {
	d := drive(t, 1e6, Config{Level: Detailed})
	d.pass(1000, 1, 1)
	d.Park()
	before := d.reader.num.Load()
	if d.reader.serves(before, Want{}) {
		t.Error("an answer that nobody asked for")
	}
	if err := d.Snapshot(t.Context(), Want{5, 7}, new(Snapshot)); err != nil {
		t.Fatal(err)
	}
	after := d.reader.num.Load()
	for _, tt := range []struct {
		arrived uint64
		want    Want
		serves  bool
	}{
		{before, Want{5, 7}, true}, {before, Want{0, 0}, true}, {before, Want{6, 7}, false}, {before, Want{5, 8}, false},
		{after, Want{0, 0}, false},
	} {
		if got := d.reader.serves(tt.arrived, tt.want); got != tt.serves {
			t.Errorf("came at %d of %d, wants %+v: shares %v", tt.arrived, after, tt.want, got)
		}
	}
}

// Every field of a snapshot reaches its reader, in memory of the reader's own.
func TestSnapshotIsCopied(t *testing.T) {
	from := new(Snapshot)
	fill(reflect.ValueOf(from).Elem(), 1)
	from.Cycles.Add(cyclesBinner, 5)
	from.CyclesPerPacket.Add(cyclesPerPacketBinner, 500)
	from.CyclesPerUpcall.Add(cyclesPerUpcallBinner, 5000)
	from.Reloads.Add(7)
	for _, h := range []*histogram.Small{&from.Packets, &from.BatchPackets, &from.QueueFill, &from.Upcalls} {
		h.Add(3)
	}
	options := cmp.Options{equal[histogram.Fine](), equal[histogram.Binned](), equal[histogram.Small](), cmpopts.IgnoreUnexported(Snapshot{})}
	to, again := new(Snapshot), new(Snapshot)
	from.copyTo(to, Want{10, 10})
	to.copyTo(again, Want{10, 10})
	if diff := cmp.Diff(from, to, options); diff != "" {
		t.Fatalf("(-box +reader):\n%s", diff)
	}
	from.Iterations[0].Rx, from.Millis[0].Rx = 99, 99
	from.RxQueues[0].Packets, from.TxQueues[0].Packets = 99, 99
	from.Usage[0].Queues[0], from.Counters[0].Count, from.Timers[0].Count = 99, 99, 99
	if diff := cmp.Diff(again, to, options); diff != "" {
		t.Errorf("shared memory:\n%s", diff)
	}
}

// fill gives every number and string in v a value of its own, and every slice two
// elements; histograms are left alone.
func fill(v reflect.Value, n int) int {
	if !v.CanSet() {
		return n
	}
	switch v.Kind() {
	case reflect.Struct:
		switch v.Interface().(type) {
		case histogram.Fine, histogram.Binned, histogram.Small:
			return n
		case time.Time:
			v.Set(reflect.ValueOf(time.Unix(int64(n), 0)))
			return n + 1
		}
		for i := range v.NumField() {
			n = fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			n = fill(v.Index(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			n = fill(v.Index(i), n)
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(string(rune('a' + n%26)))
	case reflect.Float64:
		v.SetFloat(float64(n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n))
	default:
		v.SetUint(uint64(n % 200))
	}
	return n + 1
}

// The owner's own calls, which read the clock: a queue is charged with the time from
// its Poll to the next, not with what follows PollEnd; timers leave nested ones out.
func TestStampsOfTheClock(t *testing.T) {
	r := newTest(t, Config{Level: Detailed, Timers: []string{"outer", "inner"}, Polling: Polling{
		RxQueues: []Queue{{Port: "a"}, {Port: "b"}, {Port: "c"}}}})
	hold := func(d time.Duration) {
		for end := r.clock() + uint64(d.Seconds()*r.Hz()); r.clock() < end; {
		}
	}
	const ms = time.Millisecond
	r.Start()
	r.Poll(0)
	r.Batch(1, 0)
	hold(1 * ms)
	r.Poll(1)
	r.Batch(1, 0)
	hold(3 * ms)
	r.Poll(2)
	outer := r.StartTimer()
	hold(1 * ms)
	inner := r.StartTimer()
	hold(4 * ms)
	innerTicks := r.StopNamed(inner, 1)
	outerTicks := r.StopTimer(outer)
	r.PollEnd()
	hold(7 * ms)
	r.End()
	r.Close()
	s := new(Snapshot)
	if err := r.Snapshot(t.Context(), Want{1, 0}, s); err != nil {
		t.Fatal(err)
	}
	// At least so long: how much longer is up to the machine.
	for _, tt := range []struct {
		what  string
		ticks uint64
		least time.Duration
	}{
		{"queue a", s.RxQueues[0].BusyCycles, 1 * ms}, {"queue b", s.RxQueues[1].BusyCycles, 3 * ms},
		{"queue c", s.RxQueues[2].IdleCycles, 5 * ms}, {"inner timer", innerTicks, 4 * ms}, {"outer timer", outerTicks, 1 * ms},
		{"the pass", s.Slowest.Cycles, 16 * ms}, {"inner timer's sum", s.Timers[1].Cycles, 4 * ms},
	} {
		if d := s.Duration(tt.ticks); d < tt.least {
			t.Errorf("%s: %v, want at least %v", tt.what, d, tt.least)
		}
	}
	var queues uint64
	for _, q := range s.RxQueues {
		queues += q.BusyCycles + q.IdleCycles
	}
	if rest := s.Duration(s.Slowest.Cycles - queues); rest < 7*ms {
		t.Errorf("%v of the pass belong to no queue, want at least 7ms", rest)
	}
	if s.Duration(innerTicks+outerTicks) > s.Duration(s.RxQueues[2].IdleCycles) {
		t.Error("the timers' spans overlap")
	}
}

func TestUnknownCounter(t *testing.T) {
	d := drive(t, 1e6, Config{Counters: []string{"known"}})
	c, ok := d.Counter("typo")
	if ok {
		t.Fatal("a counter that nobody registered")
	}
	d.Count(c, 7)
	s := d.snapshot()
	for i, n := range s.Counts {
		if n != 0 {
			t.Errorf("%v = %d", Counter(i), n)
		}
	}
}

// A queue that goes and comes back goes on where it was, also with a ring of another size.
func TestQueueComesBack(t *testing.T) {
	d := drive(t, 1e6, Config{Polling: twoQueues})
	d.Poll(0)
	d.Batch(10, 0)
	d.now += 5
	d.end(d.now)
	for _, queues := range [][]Queue{{{Port: "b"}}, {{Port: "c"}, {Port: "a", Size: 512}}} {
		d.Park()
		if err := d.Resume(&Polling{RxQueues: queues}); err != nil {
			t.Fatal(err)
		}
	}
	s := d.snapshot()
	if s.RxQueues[1].Packets != 10 || s.RxQueues[1].Size != 512 || s.RxQueues[1].BusyCycles != 5 || s.Gone.Packets != 0 {
		t.Errorf("%+v, gone %+v", s.RxQueues, s.Gone)
	}
}
