package exporter

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/export/prom"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patienceOfTests bounds waits that only a defect makes long.
const patienceOfTests = 60 * time.Second

// newExporter returns an exporter that is closed when the test ends, and its log.
func newExporter(t *testing.T, timeout time.Duration, targets ...string) (*Exporter, *syncBuffer) {
	t.Helper()
	log := new(syncBuffer)
	e, err := New(Options{Targets: targets, Timeout: timeout, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e, log
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// goodSwitch answers with captures.
func goodSwitch(t *testing.T) *fakeSwitch {
	return newFakeSwitch(t, map[string]string{
		perfShow:  capture(t, "two-pmds.txt"),
		statsShow: capture(t, "two-pmds.stats.txt"),
		rxqShow:   capture(t, "two-pmds.rxq.txt"),
	})
}

// request reads a request, so that what follows comes in the middle of a conversation.
func request(c net.Conn) error {
	var q any
	return json.NewDecoder(c).Decode(&q)
}

// TestHostile has a good target beside each kind of bad one: the bad one is down, and
// the good one is served in each scrape, which after the first does not wait for a bad
// one any more.
func TestHostile(t *testing.T) {
	blocked := make(chan struct{})
	defer close(blocked)
	tests := map[string]func(net.Conn){
		"hangs":           func(c net.Conn) { <-blocked },
		"reads and hangs": func(c net.Conn) { io.Copy(io.Discard, c) },
		"closes":          func(c net.Conn) {},
		"dies in a reply": func(c net.Conn) {
			if request(c) == nil {
				io.WriteString(c, `{"id":1,"result":"Time: 14:50`)
			}
		},
		"garbage": func(c net.Conn) {
			if request(c) == nil {
				c.Write(bytes.Repeat([]byte{0xff, 0, '}'}, 1000))
			}
		},
		"another reply": func(c net.Conn) {
			if request(c) == nil {
				io.WriteString(c, `{"id":77,"result":"","error":null}`)
				<-blocked
			}
		},
		"drips": func(c net.Conn) {
			if request(c) != nil {
				return
			}
			for _, b := range []byte(`{"id":1,"result":"` + strings.Repeat("x", 1e6)) {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				select {
				case <-blocked:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		},
		"100 MB": func(c net.Conn) {
			for n := 1; request(c) == nil; n++ {
				fmt.Fprintf(c, `{"id":%d,"error":null,"result":"`, n)
				chunk := strings.Repeat("lorem ipsum ", 1<<16)
				for range 100 << 20 / len(chunk) {
					if _, err := io.WriteString(c, chunk); err != nil {
						return
					}
				}
				if _, err := io.WriteString(c, `"}`); err != nil {
					return
				}
			}
		},
		"endless": func(c net.Conn) {
			if request(c) != nil {
				return
			}
			io.WriteString(c, `{"id":1,"error":null,"result":"`)
			chunk := strings.Repeat("lorem ipsum ", 1<<16)
			for {
				if _, err := io.WriteString(c, chunk); err != nil {
					return
				}
			}
		},
		"another command's text": textServer(t, "Displaying last 60 seconds pmd usage %\n"),
		"a future document": func(c net.Conn) {
			for n := 1; request(c) == nil; n++ {
				fmt.Fprintf(c, `{"id":%d,"result":{"version":99,"threads":[]},"error":null}`, n)
			}
		},
	}
	const timeout = 500 * time.Millisecond
	for name, serve := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good, bad := goodSwitch(t), misbehave(t, serve)
			e, log := newExporter(t, timeout, good.path, bad)
			end := time.Now().Add(patienceOfTests)
			for served := 0; served < 5; {
				targets := e.Read(t.Context())
				if targets[1].Up || len(targets[1].Threads) != 0 {
					t.Fatalf("the bad target is up with %d threads", len(targets[1].Threads))
				}
				// A machine that is too busy may keep the good one from answering, too.
				switch {
				case targets[0].Up && len(targets[0].Threads) == 3:
					served++
				case time.Now().After(end):
					t.Fatalf("the good target has %d threads (up: %v): %s", len(targets[0].Threads), targets[0].Up, log)
				}
			}
			if !strings.Contains(log.String(), "target is down") || !strings.Contains(log.String(), bad) {
				t.Errorf("the log does not tell:\n%s", log)
			}
		})
	}
}

// textServer answers every request with a text.
func textServer(t *testing.T, text string) func(net.Conn) {
	line, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return func(c net.Conn) {
		for n := 1; request(c) == nil; n++ {
			fmt.Fprintf(c, `{"id":%d,"error":null,"result":%s}`, n, line)
		}
	}
}

// TestHangDelaysNobody counts in timeouts what readers wait for a target that hangs: one
// at first, hardly any part of one then. The target gets no second connection meanwhile,
// and is up again once it answers.
func TestHangDelaysNobody(t *testing.T) {
	t.Parallel()
	var hang atomic.Bool
	hang.Store(true)
	var conns atomic.Int64
	release := make(chan struct{})
	good := goodSwitch(t)
	path := misbehave(t, func(c net.Conn) {
		conns.Add(1)
		if hang.Load() {
			<-release
		}
		textServer(t, "")(c)
	})
	const timeout = 3 * time.Second
	e, log := newExporter(t, timeout, good.path, path)
	var waited time.Duration
	for scrape := range 10 {
		begin := time.Now()
		targets := e.Read(t.Context())
		if took := time.Since(begin); scrape > 0 {
			waited += took
		} else if took < timeout {
			t.Errorf("the first scrape did not wait")
		}
		if !targets[0].Up || targets[1].Up {
			t.Fatalf("scrape %d: up are %v and %v, want only the first: %s", scrape, targets[0].Up, targets[1].Up, log)
		}
	}
	if waited > timeout {
		t.Errorf("9 further scrapes waited %v for a target that hangs", waited)
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("a target that hangs was connected to %d times", n)
	}
	hang.Store(false)
	close(release)
	for end := time.Now().Add(patienceOfTests); !e.Read(t.Context())[1].Up; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the target answers, but is down: %s", log)
		}
	}
	if n := strings.Count(log.String(), "target is down"); n != 1 {
		t.Errorf("the log says %d times that the target is down:\n%s", n, log)
	}
	if n := strings.Count(log.String(), "answers again"); n != 1 {
		t.Errorf("the log says %d times that the target answers again:\n%s", n, log)
	}
}

// TestReadersShare has many scrapers at the same time cost a target no more than one.
func TestReadersShare(t *testing.T) {
	s := goodSwitch(t)
	e, _ := newExporter(t, patienceOfTests, s.path)
	var readers sync.WaitGroup
	const n = 200
	for range n {
		readers.Go(func() {
			if !e.Read(t.Context())[0].Up {
				t.Error("the target is down")
			}
		})
	}
	readers.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if asked := s.asked[perfShow]; asked > n/2 {
		t.Errorf("%d readers asked %d times", n, asked)
	}
}

// TestReaderLeaves has a reader whose own time ends get no answer, and harm none.
func TestReaderLeaves(t *testing.T) {
	blocked := make(chan struct{})
	defer close(blocked)
	e, _ := newExporter(t, patienceOfTests, misbehave(t, func(net.Conn) { <-blocked }))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if e.Read(ctx)[0].Up {
		t.Error("a reader without time got an answer")
	}
}

// TestRestart has a target that ends and comes again, by name, be up in the next scrape.
func TestRestart(t *testing.T) {
	s := goodSwitch(t)
	e, log := newExporter(t, patienceOfTests, s.path)
	var conn atomic.Pointer[net.Conn]
	again := misbehave(t, func(c net.Conn) {
		conn.Store(&c)
		textServer(t, "")(c)
	})
	e2, _ := newExporter(t, patienceOfTests, again)
	for range 3 {
		if !e2.Read(t.Context())[0].Up {
			t.Fatal("down")
		}
		(*conn.Load()).Close() // as a program that ends
	}
	if !e.Read(t.Context())[0].Up {
		t.Fatalf("down: %s", log)
	}
}

func TestNewErrors(t *testing.T) {
	for _, targets := range [][]string{nil, {"a", "b", "a"}} {
		if e, err := New(Options{Targets: targets}); err == nil {
			e.Close()
			t.Errorf("no error for targets %q", targets)
		}
	}
}

// TestStuckThread has a PMD that doesn't answer its program keep its last values.
func TestStuckThread(t *testing.T) {
	core, node := 3, 0
	var stuck atomic.Bool
	path := newOurs(t, func() any {
		d := document{Document: ovs.Document{Version: ovs.DocumentVersion, Threads: []ovs.Recorded{}}}
		if stuck.Load() {
			d.Missing = []missing{{Name: "pmd-c03/id:11", Core: core, NUMA: node}}
		} else {
			d.Threads = append(d.Threads, ovs.Recorded{Kind: "pmd", Name: "pmd-c03/id:11", Core: &core, NUMA: &node,
				Level: "basic", Packets: ovs.PacketCounts{Rx: 42}})
		}
		return d
	})
	e, log := newExporter(t, patienceOfTests, path)
	check := func(name string, stalled float64, rx float64, known bool) {
		t.Helper()
		target := e.Read(t.Context())[0]
		if !target.Up || len(target.Threads) != 1 {
			t.Fatalf("%s: up %v with %d threads: %s", name, target.Up, len(target.Threads), log)
		}
		th := target.Threads[0]
		if v, ok := th.Value(prom.Stalled); !ok || v != stalled {
			t.Errorf("%s: stalled is %v, %v, want %v", name, v, ok, stalled)
		}
		if v, ok := th.Value(prom.RxPackets); ok != known || v != rx {
			t.Errorf("%s: rx is %v, %v, want %v, %v", name, v, ok, rx, known)
		}
		if th.Core != core || th.NUMA != node {
			t.Errorf("%s: core %d, node %d", name, th.Core, th.NUMA)
		}
	}
	stuck.Store(true)
	check("stuck from the beginning", 1, 0, false)
	stuck.Store(false)
	check("running", 0, 42, true)
	stuck.Store(true)
	check("stuck", 1, 42, true)
	check("still stuck", 1, 42, true)
	stuck.Store(false)
	check("running again", 0, 42, true)
}

// TestClearInBetween has somebody clear the counters between pmd-stats-show and
// pmd-perf-show: what comes out is of one time.
func TestClearInBetween(t *testing.T) {
	stats := func(cycles string) string {
		return "pmd thread numa_id 0 core_id 1:\n  packets received: 0\n  idle cycles: " + cycles + " (100.00%)\n  processing cycles: 0 (0.00%)\n"
	}
	perf := func(seconds, iterations string) string {
		return "Time: 14:50:08.553\nMeasurement duration: " + seconds + " s\n\npmd thread numa_id 0 core_id 1:\n\n" +
			"  Iterations:  " + iterations + "  (0.44 us/it)\n  - idle iterations:  " + iterations + "  (100.0 % of used cycles)\n  Rx packets:  0\n"
	}
	s := newFakeSwitch(t, map[string]string{perfShow: perf("100.000", "5000"), statsShow: stats("777777")})
	e, log := newExporter(t, patienceOfTests, s.path)
	idle := func() float64 {
		t.Helper()
		target := e.Read(t.Context())[0]
		if !target.Up || len(target.Threads) != 1 {
			t.Fatalf("up %v, %d threads: %s", target.Up, len(target.Threads), log)
		}
		v, _ := target.Threads[0].Value(prom.Cycles, "idle")
		return v
	}
	if v := idle(); v != 777777 {
		t.Fatalf("%v idle cycles", v)
	}
	s.mu.Lock()
	s.asked = map[string]int{}
	s.before = map[string]func(){perfShow: func() {
		s.texts[statsShow], s.texts[perfShow] = stats("42"), perf("0.000", "3")
	}}
	s.mu.Unlock()
	time.AfterFunc(time.Millisecond, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.texts[perfShow] = perf("1.000", "9")
	})
	// By then stats are of after the clear, or left out.
	if v := idle(); v != 42 && v != 0 {
		t.Errorf("%v idle cycles of before a clear beside iterations of after it", v)
	}
}

// TestTooLong has a target whose answer makes sense, but doesn't end soon enough.
func TestTooLong(t *testing.T) {
	text := capture(t, "two-pmds-nh.txt") + strings.Repeat(" ", maxReply)
	s := newFakeSwitch(t, map[string]string{perfShow: text})
	e, log := newExporter(t, patienceOfTests, s.path)
	if e.Read(t.Context())[0].Up || !strings.Contains(log.String(), "too long") {
		t.Errorf("an answer of %d bytes was read: %s", len(text), log)
	}
}

// TestSettle has a clear be at one time, whatever a document's clocks say.
func TestSettle(t *testing.T) {
	var ds documents
	at := time.Now()
	see := func(tick uint64, at time.Time) time.Time {
		d := &document{Document: ovs.Document{Threads: []ovs.Recorded{{Kind: "main", Name: "m", SinceTick: tick, Since: at}}}}
		return ds.threads(d)[0].Created
	}
	first := see(1, at)
	if again := see(1, at.Add(-3)); !again.Equal(first) {
		t.Errorf("the same clear was at %v and at %v", first, again)
	}
	second := see(2, at.Add(-2))
	if !second.After(first) {
		t.Errorf("a later clear was at %v, not after %v", second, first)
	}
	if third := see(3, at.Add(time.Hour)); !third.Equal(at.Add(time.Hour)) {
		t.Errorf("a clear at %v was at %v", at.Add(time.Hour), third)
	}
}

// TestFilled has a histogram without values be one with no buckets, not one whose buckets
// aren't known.
func TestFilled(t *testing.T) {
	if h := filled(&ovs.HistogramData{}); h.Fine == nil {
		t.Error("the buckets of an empty histogram are not known")
	}
	if h := filled(&ovs.HistogramData{Count: 1, Sum: 7}); h.Fine != nil {
		t.Error("the buckets of a histogram are known that the document doesn't have")
	}
}

// TestManyThreads has a target tell of more threads than there are processors, and another
// of new threads each time: neither makes the exporter grow.
func TestManyThreads(t *testing.T) {
	blocks := func(from, to int) string {
		var b strings.Builder
		for core := from; core < to; core++ {
			fmt.Fprintf(&b, "Measurement duration: 1.000 s\npmd thread numa_id 0 core_id %d:\n  Rx packets: 1\n", core)
		}
		return b.String()
	}
	s := newFakeSwitch(t, map[string]string{perfShow: blocks(0, mostThreads+1)})
	e, log := newExporter(t, patienceOfTests, s.path)
	if e.Read(t.Context())[0].Up || !strings.Contains(log.String(), "too many") {
		t.Errorf("%d threads were read: %s", mostThreads+1, log)
	}
	var ts texts
	var ds documents
	const n = 1000
	for i := range 3 * mostThreads / n {
		perf, err := ovs.ParsePerf(blocks(i*n, (i+1)*n))
		if err != nil {
			t.Fatal(err)
		}
		ts.threads(&reading{sent: time.Now(), arrived: time.Now(), perf: perf})
		d := new(document)
		for core := range n {
			d.Threads = append(d.Threads, ovs.Recorded{Kind: "pmd", Name: fmt.Sprint(i, core), Core: &core, Since: time.Now()})
		}
		ds.threads(d)
	}
	if len(ts.epochs) > mostThreads+n || len(ds.cleared) > mostThreads+n {
		t.Errorf("%d and %d threads are remembered", len(ts.epochs), len(ds.cleared))
	}
}
