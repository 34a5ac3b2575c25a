package appctl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func ask(id int, method string, args ...string) string {
	return string(appendRequest(nil, json.RawMessage(strconv.Itoa(id)), method, args))
}

func TestReplies(t *testing.T) {
	s := serve(t, Config{Program: "demo", Version: "1.2"})
	wrapped := func(text string) string {
		return `{"id":0,"result":{"reply-format":"plain","reply":` + text + `},"error":null}`
	}
	inJSON := ask(0, "set-options", "--format", "json")
	for _, test := range []struct{ name, send, want string }{
		{"text", ask(0, "echo", "a", "b"), `{"id":0,"result":"a|b\n","error":null}`},
		{"empty result", ask(0, "echo"), `{"id":0,"result":"","error":null}`},
		{"newline kept", ask(0, "echo", "a\n"), `{"id":0,"result":"a\n","error":null}`},
		{"no HTML escapes", ask(0, "echo", "<&>\u2028"), "{\"id\":0,\"result\":\"<&>\u2028\\n\",\"error\":null}"},
		{"not UTF-8", ask(0, "echo", "\xff\xc3"), "{\"id\":0,\"result\":\"\xff\xc3\\n\",\"error\":null}"},
		{"version", ask(0, "version"), `{"id":0,"result":"demo (pmdperf) 1.2\n","error":null}`},
		{"error", ask(0, "fail", "why"), `{"id":0,"error":"why\n"}`},
		{"NUL in an error", ask(0, "panic"), `{"id":0,"error":"\"panic\" command failed: on purpose\n"}`},
		{"unknown", ask(0, "a<b"), `{"id":0,"error":"\"a<b\" is not a valid command (use \"list-commands\" to see a list of valid commands)\n"}`},
		{"no exit unless asked for", ask(0, "exit"), `{"id":0,"error":"\"exit\" is not a valid command (use \"list-commands\" to see a list of valid commands)\n"}`},
		{"too few", `{"id":0,"method":"fail","params":[]}`, `{"id":0,"error":"\"fail\" command requires at least 1 arguments\n"}`},
		{"too many", `{"id":0,"method":"fail","params":[1,2]}`, `{"id":0,"error":"\"fail\" command takes at most 1 arguments\n"}`},
		{"type", `{"id":0,"method":"fail","params":[null]}`, `{"id":0,"error":"\"fail\" command has non-string argument\n"}`},
		{"JSON form not asked for", ask(0, "both", "x"), `{"id":0,"result":"text\n","error":null}`},
		{"JSON format", inJSON + ask(0, "both", "x<"), wrapped(`""`) + `{"id":0,"result":{"<arg>":"x<"},"error":null}`},
		{"JSON format, NUL", inJSON + `{"id":0,"method":"both","params":["\\u0000"]}`, wrapped(`""`) + `{"id":0,"result":{"<arg>":"\\u0000"},"error":null}`},
		{"JSON format, nil", inJSON + ask(0, "both", "nil"), wrapped(`""`) + wrapped(`""`)},
		{"JSON format, text only", inJSON + ask(0, "echo", "x"), wrapped(`""`) + wrapped(`"x\n"`)},
		{"JSON format, error", inJSON + ask(0, "fail", "why"), wrapped(`""`) + `{"id":0,"error":"why\n"}`},
		{"JSON format and back", inJSON + ask(0, "set-options", "--format=text") + ask(0, "both", "x"),
			wrapped(`""`) + `{"id":0,"result":"","error":null}{"id":0,"result":"text\n","error":null}`},
		{"wrong format changes nothing", inJSON + ask(0, "set-options", "--format", "xml") + ask(0, "echo", "x"),
			wrapped(`""`) + `{"id":0,"error":"invalid output format \"xml\", want text or json\n"}` + wrapped(`"x\n"`)},
		{"format without value", ask(0, "set-options", "--format"), `{"id":0,"error":"option '--format' requires an argument\n"}`},
		{"other option", ask(0, "set-options", "--pretty"), `{"id":0,"error":"invalid options [\"--pretty\"], want --format text or --format json\n"}`},
		{"option twice", ask(0, "set-options", "--format=json", "x"), `{"id":0,"error":"invalid options [\"--format=json\" \"x\"], want --format text or --format json\n"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := exchange(t, s, test.send); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	if got := exchange(t, s, ask(0, "both", "x")); !strings.Contains(got, "text") {
		t.Errorf("the format outlived its connection: %s", got)
	}
}

func TestListCommands(t *testing.T) {
	s := serve(t, Config{Exit: func() {}})
	want := "The available commands are:\n" +
		"  big                     bytes\n" +
		"  block                   \n" +
		"  both                    \n" +
		"  echo                    [word]...\n" +
		"  exit                    \n" +
		"  fail                    text\n" +
		"  list-commands           \n" +
		"  panic                   \n" +
		"  set-options             [--format text|json]\n" +
		"  version                 \n"
	c := dial(t, s.SocketPath())
	if got, err := c.Call(soon(t), "list-commands"); err != nil || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
}

func TestIDs(t *testing.T) {
	s := serve(t, Config{})
	for _, id := range []string{
		`0`, `-0`, `1.50`, `1E+2`, `123456789012345678901234567890`, `"a"`, `""`, `"\u0041<\/"`,
		`false`, `true`, `{}`, `{ "a" : [ 1.0, null ] }`, `[]`, "\"\xff\"",
	} {
		for _, method := range []string{"echo", "nope"} {
			got := exchange(t, s, `{"id": `+id+` ,"method":"`+method+`","params":[]}`)
			if !strings.HasPrefix(got, `{"id":`+id+`,`) {
				t.Errorf("%s with id %s: got %s", method, id, got)
			}
		}
	}
}

// TestClosesSilently checks over a socket which requests are answered and after
// which the connection just ends.
func TestClosesSilently(t *testing.T) {
	s := serve(t, Config{})
	for _, test := range requests {
		conn := rawConn(t, s)
		if _, err := io.WriteString(conn, test.text); err != nil {
			t.Fatal(err)
		}
		if test.name == "nothing" || strings.HasPrefix(test.name, "unfinished") || test.answered > 0 && !strings.Contains(test.name, "garbage") {
			conn.CloseWrite() // it's for the client to end these
		}
		got, err := io.ReadAll(conn)
		if n := strings.Count(string(got), `{"id":`); err != nil || n != test.answered {
			t.Errorf("%s: got %d answers, want %d: %q, %v", test.name, n, test.answered, got, err)
		}
	}
}

func TestTooLongRequestCloses(t *testing.T) {
	s := serve(t, Config{MaxRequest: 1000})
	fits := ask(0, "echo", strings.Repeat("x", 900))
	if got := exchange(t, s, fits); !strings.Contains(got, "xxx") {
		t.Errorf("a request that fits got %q", got)
	}
	conn := rawConn(t, s)
	io.WriteString(conn, fits+strings.Repeat(" ", 10)+ask(0, "echo", strings.Repeat("y", 1000)))
	got, _ := io.ReadAll(conn) // ECONNRESET, as the server left bytes unread
	if bytes.Contains(got, []byte("yyy")) {
		t.Errorf("a request of more than 1000 bytes got an answer: %q", got)
	}
}

func TestByteByByte(t *testing.T) {
	s := serve(t, Config{})
	conn := rawConn(t, s)
	for _, b := range []byte(ask(7, "echo", "ü", "b") + " \n" + ask(8, "echo")) {
		if _, err := conn.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"id":7,"result":"ü|b\n","error":null}{"id":8,"result":"","error":null}`
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestPipelined(t *testing.T) {
	s := serve(t, Config{})
	var send, want strings.Builder
	for i := range 30 {
		send.WriteString(ask(i, "echo", strconv.Itoa(i)))
		fmt.Fprintf(&want, `{"id":%d,"result":"%d\n","error":null}`, i, i)
	}
	if got := exchange(t, s, send.String()); got != want.String() {
		t.Errorf("got  %s\nwant %s", got, &want)
	}
}

// TestHalfClose asks for something long, so that the server surely sees the
// end of what the client sends before it has answered.
func TestHalfClose(t *testing.T) {
	s := serve(t, Config{})
	if got := exchange(t, s, ask(0, "big", "4000000")+ask(1, "version")); len(got) < 4000000 || !strings.HasSuffix(got, `demo (pmdperf) unknown\n","error":null}`) {
		t.Errorf("got %d bytes", len(got))
	}
}

func TestExit(t *testing.T) {
	called := make(chan struct{})
	s := serve(t, Config{Exit: func() { close(called) }})
	c := dial(t, s.SocketPath())
	if got, err := c.Call(soon(t), "exit", "now"); ExitCode(err) != 2 {
		t.Errorf("exit with an argument: %q, %v", got, err)
	}
	select {
	case <-called:
		t.Fatal("a refused exit was carried out")
	default:
	}
	if got, err := c.Call(soon(t), "exit"); err != nil || got != "" {
		t.Errorf("exit: %q, %v", got, err)
	}
	<-called
}

func TestPanicIsLogged(t *testing.T) {
	var b bytes.Buffer
	s := serve(t, Config{Log: slog.New(slog.NewTextHandler(&b, nil))})
	c := dial(t, s.SocketPath())
	if _, err := c.Call(soon(t), "panic"); ExitCode(err) != 2 {
		t.Error(err)
	}
	if got, err := c.Call(soon(t), "echo", "alive"); got != "alive\n" {
		t.Errorf("after a panic: %q, %v", got, err)
	}
	s.Close()
	if !strings.Contains(b.String(), "on purpose") || !strings.Contains(b.String(), "main_test.go") {
		t.Errorf("the log has no trace of it: %s", &b)
	}
}

// TestSlowReader has a client that doesn't read while others are served, and is
// cut off in the end.
func TestSlowReader(t *testing.T) {
	s := serve(t, Config{WriteTimeout: 100 * time.Millisecond})
	slow := rawConn(t, s)
	io.WriteString(slow, ask(0, "big", "4000000"))
	c := dial(t, s.SocketPath())
	for range 100 {
		if _, err := c.Call(soon(t), "echo"); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the slow reader's end", func() bool { return s.conns() == 1 })
	if got, _ := io.ReadAll(slow); len(got) >= 4000000 {
		t.Error("the slow reader got all")
	}
}

func TestIdleTimeout(t *testing.T) {
	s := serve(t, Config{IdleTimeout: 50 * time.Millisecond})
	conn := rawConn(t, s)
	io.WriteString(conn, ask(0, "echo")+`{"id":`)
	got, err := io.ReadAll(conn)
	if err != nil || string(got) != `{"id":0,"result":"","error":null}` {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestCloseEndsCommands(t *testing.T) {
	s := serve(t, Config{})
	conn := rawConn(t, s)
	io.WriteString(conn, ask(0, "block"))
	await(t, "the command", func() bool {
		s.peers.mu.Lock()
		defer s.peers.mu.Unlock()
		for p := range s.peers.all {
			return p.phase == working
		}
		return false
	})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got, err := io.ReadAll(conn); len(got) > 0 {
		t.Errorf("got %q, %v", got, err)
	}
	for _, path := range []string{s.SocketPath(), s.PidfilePath()} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s after Close: %v", path, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestListenRefuses(t *testing.T) {
	dir := runDir(t)
	for _, test := range []struct {
		cfg      Config
		commands []Command
		want     string
	}{
		{Config{RunDir: dir}, nil, "name of a server"},
		{Config{RunDir: dir, Name: "a/b"}, nil, "name of a server"},
		{Config{RunDir: dir, Name: ".."}, nil, "name of a server"},
		{Config{RunDir: dir + "/missing", Name: "x"}, nil, "no such file or directory"},
		{Config{RunDir: dir, Name: strings.Repeat("x", 100)}, nil, "at most 107 are possible"},
		{Config{RunDir: dir, Name: "x", Group: "no such group"}, nil, "group"},
		{Config{RunDir: dir, Name: "x", Group: "-1"}, nil, "no group"},
		{Config{RunDir: dir, Name: "x", MaxConns: -1}, nil, "negative"},
		{Config{RunDir: dir, Name: "x"}, []Command{echo, echo}, "twice"},
		{Config{RunDir: dir, Name: "x"}, []Command{{Name: "version", Text: echo.Text}}, "twice"},
		{Config{RunDir: dir, Name: "x"}, []Command{{Name: "a b", Text: echo.Text}}, "white space"},
		{Config{RunDir: dir, Name: "x"}, []Command{{Name: "x"}}, "no text form"},
		{Config{RunDir: dir, Name: "x"}, []Command{{Name: "x", MinArgs: 2, MaxArgs: 1, Text: echo.Text}}, "can't be"},
	} {
		s, err := Listen(test.cfg, test.commands...)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: got %v, want %q", test.cfg, err, test.want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestSocketMode looks at the mode under every umask that could change it. The
// umask belongs to the process, so the test must not be parallel.
func TestSocketMode(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077, 0o777} {
		for _, test := range []struct {
			group       string
			socket, pid os.FileMode
		}{
			{"", 0o750, 0o644},
			{strconv.Itoa(os.Getgid()), 0o770, 0o664},
		} {
			dir := runDir(t)
			old := syscall.Umask(umask)
			s, err := Listen(Config{RunDir: dir, Name: "demo", Group: test.group})
			syscall.Umask(old)
			if err != nil {
				t.Fatal(err)
			}
			for path, want := range map[string]os.FileMode{s.SocketPath(): test.socket, s.PidfilePath(): test.pid} {
				st, err := os.Stat(path)
				if err != nil || st.Mode().Perm() != want {
					t.Errorf("umask %o, group %q: %s has mode %v, %v, want %v", umask, test.group, path, st.Mode(), err, want)
				}
				if gid := st.Sys().(*syscall.Stat_t).Gid; int(gid) != os.Getgid() {
					t.Errorf("%s belongs to group %d", path, gid)
				}
			}
			s.Close()
		}
	}
}

// TestSocketModeWindow looks at the socket's mode while servers start, with a
// umask that takes nothing away.
func TestSocketModeWindow(t *testing.T) {
	path := filepath.Join(runDir(t), "x.ctl")
	defer syscall.Umask(syscall.Umask(0))
	var done atomic.Bool
	var looks int
	var looker sync.WaitGroup
	looker.Go(func() {
		for !done.Load() {
			st, err := os.Lstat(path)
			if err != nil {
				continue
			}
			looks++
			if mode := st.Mode().Perm(); mode&^0o750 != 0 {
				t.Errorf("the socket had mode %v", mode)
				return
			}
		}
	})
	for range 3000 {
		l, err := listenAt(path, access{0o750, -1})
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		os.Remove(path)
	}
	done.Store(true)
	looker.Wait()
	if looks == 0 {
		t.Error("never saw the socket")
	}
}

// conns is the number of connections that the server has.
func (s *Server) conns() int {
	s.peers.mu.Lock()
	defer s.peers.mu.Unlock()
	return len(s.peers.all)
}

func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func dial(t testing.TB, target string) *Client {
	t.Helper()
	c, err := Dial(soon(t), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
