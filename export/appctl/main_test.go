package appctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience bounds waits that only a defect makes long.
const patience = 60 * time.Second

// serveVariable makes the test binary a server called "victim" in the directory
// that it names, to be killed.
const serveVariable = "APPCTL_TEST_SERVE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveVariable); dir != "" {
		if _, err := Listen(Config{RunDir: dir, Name: "victim"}, echo); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin) // until killed, or the parent is dead
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// Commands that the tests ask for.
var (
	echo = Command{
		Name: "echo", Usage: "[word]...", MaxArgs: NoMax,
		Text: func(_ context.Context, w io.Writer, args []string) error {
			_, err := io.WriteString(w, strings.Join(args, "|"))
			return err
		},
	}
	fail = Command{
		Name: "fail", Usage: "text", MinArgs: 1, MaxArgs: 1,
		Text: func(_ context.Context, w io.Writer, args []string) error {
			fmt.Fprint(w, "what is written before an error is not told")
			return errors.New(args[0])
		},
	}
	big = Command{
		Name: "big", Usage: "bytes", MinArgs: 1, MaxArgs: 1,
		Text: func(_ context.Context, w io.Writer, args []string) error {
			n, err := strconv.Atoi(args[0])
			for range n / 16 {
				fmt.Fprintln(w, "0123456789abcde")
			}
			return err
		},
	}
	block = Command{
		Name: "block",
		Text: func(ctx context.Context, _ io.Writer, _ []string) error {
			<-ctx.Done()
			return ctx.Err()
		},
	}
	both = Command{
		Name: "both", MinArgs: 1, MaxArgs: 2,
		Text: func(_ context.Context, w io.Writer, _ []string) error {
			_, err := w.Write([]byte("text"))
			return err
		},
		JSON: func(_ context.Context, args []string) (any, error) {
			if args[0] == "nil" {
				return nil, nil
			}
			return map[string]any{"<arg>": args[0]}, nil
		},
	}
	panics = Command{
		Name: "panic",
		Text: func(context.Context, io.Writer, []string) error { panic("on purpose") },
	}
)

// runDir returns a directory for a server, with a path that is short enough for
// a socket's however long the test's name is.
func runDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "appctl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// serve starts a server called "demo" with the tests' commands.
func serve(t testing.TB, cfg Config) *Server {
	t.Helper()
	if cfg.RunDir == "" {
		cfg.RunDir = runDir(t)
	}
	if cfg.Name == "" {
		cfg.Name = "demo"
	}
	s, err := Listen(cfg, echo, fail, big, block, both, panics)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// soon returns a context that ends when only a defect can have used up its time.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// rawConn connects to a server past the client.
func rawConn(t testing.TB, s *Server) *net.UnixConn {
	t.Helper()
	conn, err := net.Dial("unix", s.SocketPath())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return conn.(*net.UnixConn)
}

// exchange sends bytes, shuts down the sending side and returns all that comes
// back.
func exchange(t testing.TB, s *Server, send string) string {
	t.Helper()
	conn := rawConn(t, s)
	if _, err := io.WriteString(conn, send); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(got)
}
