package pmd

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/perf"
)

func TestMain(m *testing.M) {
	if what := os.Getenv(clientsEnv); what != "" {
		runClients(what)
		os.Exit(0)
	}
	beginUninterrupted()
	goleak.VerifyTestMain(m)
}

// patience bounds waits that only a defect makes long.
const patience = 60 * time.Second

// lab is a server with a registry whose loops run, on cores 1 and 3.
type lab struct {
	registry *perf.Registry
	loops    []*loop
	target   string // path of the socket
	dir      string
}

// loop is a poll loop that takes it easy.
type loop struct {
	*perf.Recorder
	stall  atomic.Bool // the loop is to stand still
	reload atomic.Bool // the loop is to change its polling, once
	stop   atomic.Bool
}

func polling(core int) perf.Polling {
	return perf.Polling{
		RxQueues: []perf.Queue{{Port: "p0", ID: core}, {Port: "vhu-a", ID: 0, Size: 1024}},
		TxQueues: []perf.Queue{{Port: "p0", ID: core}},
		Isolated: core == 3,
		MaxSleep: time.Duration(core) * 10 * time.Microsecond,
	}
}

func start(t testing.TB, o Options, level perf.Level) *lab {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = patience // on a busy machine a second isn't much
	}
	l := &lab{registry: new(perf.Registry)}
	var running sync.WaitGroup
	for i, core := range []int{3, 1} {
		r, err := l.registry.New(perf.Config{Core: core, NUMA: i, ID: 8 + core, Level: level, Polling: polling(core)})
		if err != nil {
			t.Fatal(err)
		}
		p := &loop{Recorder: r}
		l.loops = append(l.loops, p)
		running.Go(func() { p.run(t, core) })
	}
	t.Cleanup(func() {
		for _, p := range l.loops {
			p.stop.Store(true)
		}
		running.Wait()
	})
	for _, p := range l.loops {
		await(t, "the loop runs", func() bool { return p.State() == perf.Running })
	}

	// t.TempDir is too long for the path of a socket when test names are.
	var err error
	if l.dir, err = os.MkdirTemp("", "pmd"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(l.dir) })
	s, err := appctl.Listen(appctl.Config{RunDir: l.dir, Name: filepath.Base(l.dir)}, Commands(l.registry, o)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	l.target = s.SocketPath()
	return l
}

func (p *loop) run(t testing.TB, core int) {
	defer p.Close()
	if err := p.Start(); err != nil {
		t.Error(err)
		return
	}
	for n := 0; !p.stop.Load(); n++ {
		for p.stall.Load() && !p.stop.Load() {
			time.Sleep(time.Millisecond)
		}
		if p.reload.CompareAndSwap(true, false) {
			p.Park()
			time.Sleep(time.Millisecond)
			now := polling(core)
			if err := p.Resume(&now); err != nil {
				t.Error(err)
			}
		}
		p.Poll(0)
		if n%4 != 0 {
			p.Batch(32, 100)
			p.RxSizes(0, []uint16{64, 100, 1500})
			p.RxCasts(0, 2, 1)
			p.Count(perf.EMCHit, 30)
			p.Upcall(5000, n%8 != 1)
			p.Upcall(6000, true)
		}
		p.Poll(1)
		p.Batch(n%3, 0)
		p.Tx(n%3, 1)
		p.End()
		p.SleepBegin()
		time.Sleep(200 * time.Microsecond)
		p.SleepEnd()
	}
}

// soon returns a context that ends when only a defect can have used up its time.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func (l *lab) dial(t testing.TB, asJSON bool) *appctl.Client {
	t.Helper()
	c, err := appctl.Dial(soon(t), l.target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if asJSON {
		if err := c.SetJSON(soon(t)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// call runs a command that must succeed and returns its text.
func (l *lab) call(t testing.TB, name string, args ...string) string {
	t.Helper()
	text, err := l.dial(t, false).Call(soon(t), name, args...)
	if err != nil {
		t.Fatalf("%s %q: %v", name, args, err)
	}
	return text
}

// data runs a command that must succeed and decodes its JSON into v.
func (l *lab) data(t testing.TB, v any, name string, args ...string) {
	t.Helper()
	text, err := l.dial(t, true).Call(soon(t), name, args...)
	if err != nil {
		t.Fatalf("%s %q: %v", name, args, err)
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%s %q: %v in %.300s", name, args, err, text)
	}
}

// await waits until done is true.
func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("still waiting until " + what)
		}
	}
}
