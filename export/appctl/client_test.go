package appctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/ovslab"
)

func TestClient(t *testing.T) {
	s := serve(t, Config{})
	c := dial(t, s.SocketPath())
	ctx := soon(t)
	const odd = "ü\xff\"\\\n<\u2028>"
	for _, test := range []struct{ want, method, arg string }{
		{odd + "\n", "echo", odd},
		{"", "echo", ""},
		{"demo (pmdperf) unknown\n", "version", "-"},
	} {
		args := []string{test.arg}
		if test.arg == "-" {
			args = nil
		}
		if got, err := c.Call(ctx, test.method, args...); err != nil || got != test.want {
			t.Errorf("%s: got %q, %v, want %q", test.method, got, err, test.want)
		}
	}

	_, err := c.Call(ctx, "fail", "why")
	if e, ok := errors.AsType[*ServerError](err); !ok || e.Method != "fail" || e.Text != "why\n" || err.Error() != "why" {
		t.Errorf("got %#v", err)
	}
	if _, err := c.Call(ctx, "echo", "a\x00"); ExitCode(err) != 1 {
		t.Errorf("NUL: %v", err)
	}
	if got, err := c.Call(ctx, "big", "10000000"); err != nil || len(got) != 10000000 {
		t.Errorf("10 MB: got %d bytes, %v", len(got), err)
	}

	if err := c.SetJSON(ctx); err != nil {
		t.Fatal(err)
	}
	for method, want := range map[string]string{
		"both": `{"<arg>":"x"}` + "\n",
		"echo": `{"reply-format":"plain","reply":"x\n"}` + "\n",
	} {
		if got, err := c.Call(ctx, method, "x"); err != nil || got != want {
			t.Errorf("%s in JSON: got %q, %v, want %q", method, got, err, want)
		}
	}
}

func TestClientDeadline(t *testing.T) {
	s := serve(t, Config{})
	c := dial(t, s.SocketPath())
	ctx, cancel := context.WithTimeout(soon(t), 20*time.Millisecond)
	defer cancel()
	if _, err := c.Call(ctx, "block"); ExitCode(err) != 142 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v", err)
	}
	if _, err := c.Call(soon(t), "echo"); ExitCode(err) != 1 || !errors.Is(err, net.ErrClosed) {
		t.Errorf("after a deadline: %v", err)
	}

	c = dial(t, s.SocketPath())
	ctx, cancel = context.WithCancel(soon(t))
	cancel()
	if _, err := c.Call(ctx, "block"); ExitCode(err) != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := Dial(ctx, s.SocketPath()); !errors.Is(err, context.Canceled) {
		t.Errorf("connecting: %v", err)
	}

}

// TestClientLateCancel has contexts that end just when the reply comes. That
// must not harm the next call.
func TestClientLateCancel(t *testing.T) {
	var cancel context.CancelFunc
	s, err := Listen(Config{RunDir: runDir(t), Name: "demo"}, echo, Command{
		Name: "cancel",
		Text: func(context.Context, io.Writer, []string) error { cancel(); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := dial(t, s.SocketPath())
	answered := 0
	next := soon(t)
	for range 2000 {
		ctx, stop := context.WithCancel(t.Context())
		cancel = stop
		defer stop()
		switch _, err := c.Call(ctx, "cancel"); {
		case err == nil:
			answered++
		case errors.Is(err, context.Canceled):
			c.Close()
			c = dial(t, s.SocketPath())
		default:
			t.Fatal(err)
		}
		if _, err := c.Call(next, "echo"); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of 2000 calls were answered before they were cancelled", answered)
}

// TestClientFullQueue has a server that doesn't accept: the connections beyond
// its backlog wait for their context.
func TestClientFullQueue(t *testing.T) {
	s := serve(t, Config{})
	ctx := soon(t)
	// With the lock of the table held nobody gets in.
	s.peers.mu.Lock()
	defer s.peers.mu.Unlock()
	var conns []*Client
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for range 10_000 {
		short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
		c, err := Dial(short, s.SocketPath())
		stop()
		if err != nil {
			if ExitCode(err) != 142 {
				t.Errorf("after %d connections: %v", len(conns), err)
			}
			return
		}
		conns = append(conns, c)
	}
	t.Error("the queue never got full")
}

func TestClientBadServer(t *testing.T) {
	path := filepath.Join(runDir(t), "bad.ctl")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, test := range []struct{ reply, want string }{
		{``, "closed the connection"},
		{`{"id":1,`, "closed the connection"},
		{`garbage`, "not a JSON object"},
		{`{"id":2,"result":"x","error":null}`, "something else"},
		{`{"id":"1","result":"x","error":null}`, "something else"},
		{`{"id":1,"result":null,"error":null}`, "neither"},
		{`{"id":1,"result":{},"error":null}`, "not a string"},
		{`{"id":1,"result":null,"error":{}}`, "not a string"},
		{`{"id":1,"method":"x","params":[]}`, "request"},
		{`{"id":1,"result":"\u0000"}`, "the reply is wrong"},
	} {
		c := dial(t, path)
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, test.reply)
		conn.(*net.UnixConn).CloseWrite()
		got, err := c.Call(soon(t), "x")
		if err == nil || !strings.Contains(err.Error(), test.want) || ExitCode(err) != 1 {
			t.Errorf("reply %s: got %q, %v, want %q", test.reply, got, err, test.want)
		}
		if strings.Contains(test.want, "closed") && !errors.Is(err, io.EOF) {
			t.Errorf("reply %s: %v isn't io.EOF", test.reply, err)
		}
		if _, err := c.Call(soon(t), "x"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("reply %s: a further call gives %v", test.reply, err)
		}
		conn.Close()
	}
}

func TestExitCode(t *testing.T) {
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{fmt.Errorf("x: %w", &ServerError{}), 2},
		{io.EOF, 1},
		{context.Canceled, 1},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), 142},
	} {
		if got := ExitCode(test.err); got != test.want {
			t.Errorf("%v: got %d, want %d", test.err, got, test.want)
		}
	}
}

func TestVswitchd(t *testing.T) {
	lab := ovslab.Start(t, ovslab.Options{})
	t.Setenv("OVS_RUNDIR", lab.RunDir)
	ctx := soon(t)
	c, err := Dial(ctx, lab.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for method, want := range map[string]string{
		"version":                   "ovs-vswitchd (Open vSwitch) ",
		"list-commands":             "The available commands are:\n",
		"dpif-netdev/pmd-perf-show": "\npmd thread numa_id 0 core_id 0:\n",
	} {
		got, err := c.Call(ctx, method)
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, %v, want %q", method, got, err, want)
		}
		if method != "dpif-netdev/pmd-perf-show" && got != lab.Appctl(t, method) {
			t.Errorf("%s: ovs-appctl prints something else", method)
		}
	}
	if _, err := c.Call(ctx, "version", "x"); ExitCode(err) != 2 || err.Error() != `"version" command takes at most 0 arguments` {
		t.Errorf("an argument too many: %v", err)
	}
	const unknown = "\"ü\xff\" is not a valid command (use \"list-commands\" to see a list of valid commands)"
	if _, err := c.Call(ctx, "ü\xff"); ExitCode(err) != 2 || err.Error() != unknown {
		t.Errorf("unknown command: %v", err)
	}
	lab.Stop()
	if _, err := c.Call(ctx, "version"); ExitCode(err) != 1 {
		t.Errorf("after its end: %v", err)
	}
	if _, err := Dial(ctx, lab.Name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("connecting after its end: %v", err)
	}
}

// TestRequestsInOpenVSwitch compares the table of requests, and replies byte for
// byte, with what a real server makes of them.
func TestRequestsInOpenVSwitch(t *testing.T) {
	lab := ovslab.Start(t, ovslab.Options{})
	t.Setenv("OVS_RUNDIR", lab.RunDir)
	path, err := Resolve("", "ovsdb-server")
	if err != nil {
		t.Fatal(err)
	}
	theirs := &Server{path: path}
	version := strings.TrimSuffix(strings.TrimPrefix(exchange(t, theirs, ask(0, "version")), `{"id":0,"result":"`), `\n","error":null}`)
	ours := serve(t, Config{})
	for _, test := range requests {
		if test.name == "low surrogate" {
			// They make bytes of it that are not UTF-8, but refuse the high half.
			// Here both are refused.
			continue
		}
		want := exchange(t, theirs, test.text)
		got := strings.ReplaceAll(exchange(t, ours, test.text), "demo (pmdperf) unknown", version)
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.name, got, want)
		}
	}
}
