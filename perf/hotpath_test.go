package perf

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/pmdperf/pmdperf/perf/tsc"
)

// hotPath is what a loop runs in every pass, and the accounting that it runs in
// every 64th.
var hotPath = []string{"Poll", "pollNext", "PollEnd", "stamp", "charge", "polled", "hold", "Batch", "batch", "Tx", "Drop", "Count",
	"Upcall", "StartTimer", "StopTimer", "StopNamed", "stopNamed", "RxSizes", "TxSizes", "RxCasts", "TxCasts", "RxDrop", "fullBatch",
	"SleepBegin", "sleepBegin", "SleepEnd", "End", "end", "serve", "settle", "account", "addRow", "tally", "gap"}

// The compiled hot path has no write barrier, no locked instruction and no call of
// the runtime but those that grow the stack or report an index out of range.
func TestCompiledHotPath(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("reads the assembler of amd64")
	}
	out, err := exec.Command("go", "build", "-gcflags=-S", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	const pkg = "github.com/pmdperf/pmdperf/perf."
	header := regexp.MustCompile(`(?m)^(\S+) STEXT .*$`)
	bodies := make(map[string]string)
	text := string(out)
	at := header.FindAllStringSubmatchIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		bodies[text[m[2]:m[3]]] = text[m[1]:end]
	}
	forbidden := regexp.MustCompile(`gcWriteBarrier|\tLOCK|\tXCHG[BLQ]\t.*\(|CALL\s+runtime\.(\w+)`)
	found := 0
	for _, name := range append(hotPath, "(*sizeTally).add", "(*columns).add", "(*columns).addGeneric", "(*columns).addCycles") {
		full := pkg + "(*Recorder)." + name
		if name[0] == '(' {
			full = pkg + name
		}
		body, ok := bodies[full]
		if !ok {
			continue // inlined everywhere
		}
		found++
		for _, m := range forbidden.FindAllStringSubmatch(body, -1) {
			if strings.HasPrefix(m[1], "morestack") || strings.HasPrefix(m[1], "panic") {
				continue
			}
			// The one thing that serve does for a reader is to take its request.
			if name == "serve" && strings.HasPrefix(m[0], "\tXCHG") {
				continue
			}
			t.Errorf("%s has %q", name, strings.TrimSpace(m[0]))
		}
	}
	if found < 10 {
		t.Errorf("only %d functions found in the compiler's output", found)
	}
	// Where the runtime stops a loop without asynchronous preemption.
	if !strings.Contains(bodies[pkg+"(*Recorder).End"], "runtime.morestack") {
		t.Error("End has no stack check")
	}
}

func TestHotPathAllocatesNothing(t *testing.T) {
	r, err := New(Config{Level: Detailed, Timers: []string{"work"}, Polling: Polling{
		RxQueues: []Queue{{Port: "a"}, {Port: "b"}}, TxQueues: []Queue{{Port: "a"}}}})
	if err != nil {
		t.Fatal(err)
	}
	r.Start()
	sizes := []uint16{60, 64, 1500, 9000}
	pass := func() {
		r.Poll(0)
		r.Batch(32, 2000)
		r.RxSizes(0, sizes)
		r.Count(EMCHit, 32)
		r.Upcall(r.StopNamed(r.StartTimer(), 0), true)
		r.Poll(1)
		r.PollEnd()
		r.TxSizes(0, sizes)
		r.Tx(32, 1)
		r.SleepBegin()
		r.SleepEnd()
		r.End()
	}
	if n := testing.AllocsPerRun(10_000, pass); n != 0 {
		t.Errorf("%v allocations in a pass", n)
	}
}

// A reader that reuses its snapshot allocates nothing, and neither does the owner.
func TestSnapshotAllocatesNothing(t *testing.T) {
	d := drive(t, 1e6, Config{Level: Detailed, Polling: twoQueues})
	for range 3000 {
		d.pass(1000, 32, 32)
	}
	s := new(Snapshot)
	want := Want{1000, 1000}
	d.Park()
	if n := testing.AllocsPerRun(100, func() {
		if err := d.Snapshot(t.Context(), want, s); err != nil {
			t.Fatal(err)
		}
	}); n > 10 { // the deadline's context and its timer
		t.Errorf("%v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { d.answer(&request{errand: errand{clear: true}}, d.now, 0) }); n > 1 {
		t.Errorf("%v allocations in a clear", n) // one is the request
	}
}

func TestMemory(t *testing.T) {
	if size := unsafe.Sizeof(Recorder{}); size > 512<<10 {
		t.Errorf("a recorder takes %d KiB", size>>10)
	}
}

// A record is one cache line: the allocator begins a page with what is as large as a
// recorder.
func TestRecordsAreLines(t *testing.T) {
	if runtime.GOARCH == "386" || runtime.GOARCH == "arm" {
		t.Skip("words of 32 bits")
	}
	r := new(Recorder)
	if at := uintptr(unsafe.Pointer(&r.ring)); at%64 != 0 {
		t.Errorf("the ring begins %d bytes behind the beginning of a line", at%64)
	}
}

// With asynchronous preemption off, which is how a poll loop should run, the
// runtime can still stop the world while a loop does nothing but passes.
func TestStopTheWorld(t *testing.T) {
	if os.Getenv("PMDPERF_TEST_LOOP") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestStopTheWorld$", "-test.v")
		cmd.Env = append(os.Environ(), "PMDPERF_TEST_LOOP=1", "GODEBUG=asyncpreemptoff=1")
		out := make(chan []byte)
		go func() { b, _ := cmd.CombinedOutput(); out <- b }()
		select {
		case b := <-out:
			if !strings.Contains(string(b), "the world was stopped 20 times") {
				t.Errorf("in a process of its own:\n%s", b)
			}
		case <-time.After(time.Minute):
			cmd.Process.Kill()
			t.Errorf("the world could not be stopped:\n%s", <-out)
		}
		return
	}
	for _, level := range []Level{Detailed, Off} {
		r, err := New(Config{Level: level, Polling: twoQueues})
		if err != nil {
			t.Fatal(err)
		}
		r.Start()
		go func() {
			runtime.LockOSThread()
			for {
				r.Poll(0)
				r.Batch(1, 0)
				r.End()
			}
		}()
	}
	time.Sleep(20 * time.Millisecond)
	var m runtime.MemStats
	for range 20 {
		runtime.ReadMemStats(&m)
	}
	t.Log("the world was stopped 20 times")
}

// The owner's loop is told of no reader: what it pays for a stalled one is nothing.
func TestStalledOwner(t *testing.T) {
	r, err := New(Config{Name: "stuck"})
	if err != nil {
		t.Fatal(err)
	}
	r.Start() // and never ends a pass
	s := new(Snapshot)
	began := time.Now()
	err = r.Snapshot(t.Context(), Want{}, s)
	var stalled *StalledError
	if !asStalled(err, &stalled) || stalled.Name != "stuck" || stalled.For < stallKnown {
		t.Fatalf("after %v: %v", time.Since(began), err)
	}
	began = time.Now()
	for _, err := range []error{r.Snapshot(t.Context(), Want{}, s), r.Clear(t.Context()), r.SetLevel(t.Context(), Off)} {
		if !asStalled(err, &stalled) || stalled.For < stallKnown {
			t.Errorf("the next reader got %v", err)
		}
	}
	if d := time.Since(began); d > stallTimeout/2 {
		t.Errorf("the next readers waited %v", d)
	}
	// It goes on, and what was refused did not happen.
	r.Batch(3, 0)
	r.end(tsc.Now())
	done := make(chan error)
	go func() { done <- r.Snapshot(t.Context(), Want{10, 0}, s) }()
	for {
		select {
		case err := <-done:
			if err != nil || s.Level != Basic || s.Totals.RxPackets != 3 {
				t.Errorf("%v, level %v, %d packets", err, s.Level, s.Totals.RxPackets)
			}
			return
		default:
			r.End()
		}
	}
}

func asStalled(err error, to **StalledError) bool {
	s, ok := err.(*StalledError)
	if ok {
		*to = s
	}
	return ok
}
