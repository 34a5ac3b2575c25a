package pmd

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/perf/tsc"
)

// perfShowText returns the default show as a function, to be called in process.
func perfShowText(t testing.TB, l *lab) func() {
	for _, c := range Commands(l.registry, Options{Timeout: patience}) {
		if c.Name == "dpif-netdev/pmd-perf-show" {
			return func() {
				if err := c.Text(t.Context(), io.Discard, nil); err != nil {
					t.Error(err)
				}
			}
		}
	}
	t.Fatal("no such command")
	return nil
}

// TestShowReusesMemory: a show makes little garbage. Each collection stops the loops, and
// does so longest where a thousand shows a second keep the other cores busy.
func TestShowReusesMemory(t *testing.T) {
	l := start(t, Options{}, perf.Detailed)
	show := perfShowText(t, l)
	show()
	const shows = 200
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range shows {
		show()
	}
	runtime.ReadMemStats(&after)
	// The two snapshots alone would be some 600 KB, the report and its text 35 KB. The race
	// detector has a pool forget one thing in four.
	most := uint64(6000)
	if need.Race {
		most = 300_000
	}
	per := (after.TotalAlloc - before.TotalAlloc) / shows
	if t.Logf("%d bytes for a show of 2 PMDs", per); per > most {
		t.Errorf("that is more than %d", most)
	}
}

func BenchmarkShow(b *testing.B) {
	l := start(b, Options{}, perf.Detailed)
	show := perfShowText(b, l)
	b.ReportAllocs()
	for b.Loop() {
		show()
	}
}

// asker asks over one connection and reuses its memory, so that what a benchmark
// shows is the server's doing.
type asker struct {
	conn    net.Conn
	request []byte
	reply   []byte
}

func dialAsker(path string, request string) (*asker, error) {
	conn, err := net.Dial("unix", path)
	return &asker{conn: conn, request: []byte(request), reply: make([]byte, 1<<20)}, err
}

// ask returns the reply, which is valid until the next call.
func (a *asker) ask() ([]byte, error) {
	if _, err := a.conn.Write(a.request); err != nil {
		return nil, err
	}
	a.conn.SetReadDeadline(time.Now().Add(patience))
	for n := 0; ; {
		m, err := a.conn.Read(a.reply[n:])
		if n += m; err != nil {
			return nil, fmt.Errorf("%w after %d bytes", err, n)
		}
		// Texts and the JSON of our commands have no such bytes before their end.
		if bytes.HasSuffix(a.reply[:n], []byte(`"error":null}`)) {
			return a.reply[:n], nil
		}
	}
}

const askPerfShow = `{"id":0,"method":"dpif-netdev/pmd-perf-show","params":[%s]}`

// BenchmarkBudget has the budgets of what readers cost a loop. See
// docs/development.md.
func BenchmarkBudget(b *testing.B) {
	b.Run("1000_default_shows_a_second/percent_of_the_passes", benchShows)
	b.Run("show_it_1000_ms_1000_over_the_socket/us_of_pause", benchPause)
	b.Run("hostile_clients/percent_of_the_passes", benchSiege)
}

// benchShows measures how much slower a loop is while 1000 default shows a second are
// asked for over the control socket. Slices are so long that each has several
// garbage collections in it, which the shows cause and which are part of the cost.
func benchShows(b *testing.B) {
	const (
		pairs  = 50
		length = 150 * time.Millisecond
		settle = 20 * time.Millisecond
	)
	l := startBusy(b, Options{Timeout: patience})
	s := startClients(b, "shows", l.path)
	var on bool
	var busy time.Duration
	var switched time.Time
	var before, after runtime.MemStats
	snap := new(perf.Snapshot)
	answers := func() perf.GapStats {
		l.look(b, perf.Want{}, snap)
		return snap.Gaps[history.Answering]
	}
	first := answers()
	runtime.ReadMemStats(&before)
	c := l.compare(b, pairs, 2*pairs, length, settle, func(now bool) {
		if on {
			busy += time.Since(switched)
		}
		s.set(now)
		switched, on = time.Now(), now
	})
	runtime.ReadMemStats(&after)
	last := answers()
	reportCost(b, c.slowdown(), 1)
	b.ReportMetric(tsc.Duration((last.Ticks-first.Ticks)/(last.Count-first.Count), l.Hz()).Seconds()*1e6, "us/answer")
	b.ReportMetric(c.slowdownAtWork(), "while-running")
	b.ReportMetric(c.noise(), "noise")
	b.ReportMetric(float64(s.done)/busy.Seconds(), "shows/s")
	b.ReportMetric(float64(after.NumGC-before.NumGC)/busy.Seconds(), "collections/s")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(s.done), "B/show")
}

// benchPause measures for how long at most the loop stands still at once while it answers
// a full show, as a client asks for it over the control socket. The loop's own records
// say so: a pass that comes after a pause for an answer has a mark.
//
// The longest of many such pauses is one in which another process or an interrupt had the
// loop's core. No more than a few of a hundred are like that even on a busy machine:
// the budget is for the 95th percentile, and the median, the 99th and the longest are
// shown beside it.
func benchPause(b *testing.B) {
	const shows = 300
	l := startBusy(b, Options{Timeout: patience})
	l.factor.Store(20) // so long passes that the history of iterations reaches back
	a, err := dialAsker(l.path, `{"id":0,"method":"set-options","params":["--format","json"]}`)
	if err != nil {
		b.Fatal(err)
	}
	defer a.conn.Close()
	if _, err := a.ask(); err != nil {
		b.Fatal(err)
	}
	a.request = fmt.Appendf(nil, askPerfShow, `"-it","1000","-ms","1000"`)
	time.Sleep(1100 * time.Millisecond) // until the history of milliseconds is full

	snap := new(perf.Snapshot)
	var pauses []float64 // in us
	pieces := 0
	for end := time.Now().Add(patience); len(pauses) < shows && time.Now().Before(end); {
		l.look(b, perf.Want{}, snap)
		first := snap.NextIteration + 1 // behind the pause for this look
		if _, err := a.ask(); err != nil {
			b.Fatal(err)
		}
		l.look(b, perf.Want{Iterations: history.Shown}, snap)
		at := int(first) - int(snap.NextIteration) + len(snap.Iterations)
		if at < 1 {
			continue // too long ago
		}
		longest := uint64(0)
		for i, rec := range snap.Iterations[at:] {
			if rec.Flags.After(history.Answering) {
				longest = max(longest, rec.Start()-snap.Iterations[at+i-1].End)
				pieces++
			}
		}
		pauses = append(pauses, tsc.Duration(longest, l.Hz()).Seconds()*1e6)
	}
	if len(pauses) == 0 {
		b.Fatal("the history never reached back to a show")
	}
	reportCost(b, quantile(pauses, 0.95), 25)
	b.ReportMetric(quantile(pauses, 0.5), "median")
	b.ReportMetric(quantile(pauses, 0.99), "99%")
	b.ReportMetric(slices.Max(pauses), "longest")
	b.ReportMetric(float64(pieces)/float64(len(pauses)), "pauses/show")
}

// benchSiege measures how much slower a loop is while its server has up to 1000
// hostile clients, 167 new ones a second. That is to be within the noise, which is how
// much slices without them differ from each other in the same run; or within a percent
// where the noise is less.
func benchSiege(b *testing.B) {
	wantDescriptors(b, 2000)
	const (
		pairs  = 4
		length = 3 * time.Second
		settle = time.Second // the first 1000 come at once
	)
	l := startBusy(b, Options{Timeout: patience})
	s := startClients(b, "siege", l.path)
	c := l.compare(b, pairs, 2*pairs, length, settle, s.set)
	reportCost(b, c.slowdown(), max(1, c.noise()))
	b.ReportMetric(c.slowdownAtWork(), "while-running")
	b.ReportMetric(float64(s.done)/float64(len(c.with)), "connections/slice")
}

func reportCost(b *testing.B, cost, budget float64) {
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(cost, "cost")
	b.ReportMetric(budget, "budget")
}
