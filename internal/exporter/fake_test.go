package exporter

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/pmdperf/pmdperf/export/appctl"
)

// shortDir returns a directory whose path leaves room for a socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "exp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// fakeSwitch is an ovs-vswitchd that answers commands with texts, and knows no others.
type fakeSwitch struct {
	path string

	mu     sync.Mutex
	texts  map[string]string // by command
	asked  map[string]int
	before map[string]func() // called once, before the first answer to a command
}

// newFakeSwitch starts one, as of a version that knows no JSON (before 3.4).
func newFakeSwitch(t *testing.T, texts map[string]string) *fakeSwitch {
	t.Helper()
	f := &fakeSwitch{texts: texts, asked: map[string]int{}}
	f.path = misbehave(t, func(c net.Conn) {
		in := json.NewDecoder(c)
		for {
			var q struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
			}
			if in.Decode(&q) != nil {
				return
			}
			f.mu.Lock()
			f.asked[q.Method]++
			if hook := f.before[q.Method]; hook != nil && f.asked[q.Method] == 1 {
				hook()
			}
			text, ok := f.texts[q.Method]
			f.mu.Unlock()
			reply := map[string]any{"id": q.ID, "result": text, "error": nil}
			if !ok {
				reply = map[string]any{"id": q.ID, "error": `"` + q.Method + `" is not a valid command`}
			}
			line, err := json.Marshal(reply)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := c.Write(line); err != nil {
				return
			}
		}
	})
	return f
}

// misbehave starts a server that does to its connections what serve does, and returns the
// path of its socket.
func misbehave(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	path := filepath.Join(shortDir(t), "x.ctl")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			running.Go(func() { defer c.Close(); serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return path
}

// newOurs starts a server as our recorder's is, with JSON, whose pmd-perf-show and
// pmd-stats-show answer what f returns, and pmdperf/events what events are.
func newOurs(t *testing.T, f func() any, events ...any) string {
	t.Helper()
	dir := shortDir(t)
	command := func(name string, f func() any) appctl.Command {
		return appctl.Command{
			Name: name, MaxArgs: appctl.NoMax,
			Text: func(context.Context, io.Writer, []string) error { return nil },
			JSON: func(context.Context, []string) (any, error) { return f(), nil },
		}
	}
	s, err := appctl.Listen(appctl.Config{Name: "ours", RunDir: dir}, command(perfShow, f), command(statsShow, f),
		command("pmdperf/events", func() any { return map[string]any{"events": events} }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	path, err := appctl.Resolve(dir, "ours")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// capture returns the real output of an Open vSwitch 3.1 by the name of its file.
func capture(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../export/ovs/testdata/ovs-3.1", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r", "")
}
