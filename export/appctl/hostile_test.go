package appctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/internal/need"
)

// attack opens a connection, misuses it in one of several ways and holds it for
// some time.
func attack(ctx context.Context, path string, kind int, hold time.Duration) error {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return err
	}
	defer conn.Close()
	u := conn.(*net.UnixConn)
	u.SetWriteDeadline(time.Now().Add(hold))
	switch kind % 10 {
	case 0, 1, 2: // nothing
	case 3, 4, 5:
		io.WriteString(u, `{"id":0,"method":"echo","params":["`)
	case 6: // asks and doesn't read
		io.WriteString(u, strings.Repeat(ask(0, "big", "300000"), 3))
	case 7: // asks and is gone
		io.WriteString(u, ask(0, "big", "300000"))
		return nil
	case 8:
		io.WriteString(u, `{"id":0,"method":"echo"`)
		u.CloseWrite()
	case 9:
		garbage := []string{"\x00\xff garbage {{{", "[1,2,3", `{"":"` + strings.Repeat("x", 200_000)}
		io.WriteString(u, garbage[kind/10%len(garbage)])
	}
	select {
	case <-time.After(hold):
	case <-ctx.Done():
	}
	return nil
}

// honest asks on an old connection and on a new one. It tries again where the machine
// held it up for longer than a new connection may be silent.
func honest(old *Client, path, arg string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		began := time.Now()
		err := askOnce(ctx, path, arg)
		if err != nil && ctx.Err() == nil && time.Since(began) > grace {
			continue
		}
		if err != nil {
			return fmt.Errorf("asked on the new connection: %w", err)
		}
		break
	}
	if got, err := old.Call(ctx, "echo", arg); err != nil || got != arg+"\n" {
		return fmt.Errorf("asked on the old connection: %q, %v", got, err)
	}
	return nil
}

func askOnce(ctx context.Context, path, arg string) error {
	fresh, err := Dial(ctx, path)
	if err != nil {
		return err
	}
	defer fresh.Close()
	if got, err := fresh.Call(ctx, "echo", arg); err != nil {
		return err
	} else if got != arg+"\n" {
		return fmt.Errorf("got %q", got)
	}
	return nil
}

func TestHostile(t *testing.T) {
	// Fewer connections than attack at once, so that the server has to choose.
	total, during, maxConns := 1000, 2*time.Second, 200
	if need.Long() {
		total, during, maxConns = 10_000, time.Minute, 500
	}
	const atOnce = 1000
	pause := during / time.Duration(total)
	maxHold := min(during, 2*atOnce*pause)
	const enough = 100 // honest requests, however slow the machine
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < 2*atOnce+200 {
		need.Skip(t, fmt.Sprintf("needs %d file descriptors (ulimit -n), there are %d", 2*atOnce+200, limit.Cur))
	}
	s := serve(t, Config{MaxConns: maxConns})
	c := dial(t, s.SocketPath())
	if _, err := c.Call(soon(t), "version"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*during+patience)
	defer cancel()

	before, goroutines := openFiles(t), goleak.IgnoreCurrent()
	var attackers sync.WaitGroup
	var attacks, refused, answered atomic.Int64
	var done atomic.Bool
	next := make(chan int)
	for range atOnce {
		attackers.Go(func() {
			for kind := range next {
				hold := time.Duration(rand.Int64N(int64(maxHold)))
				if err := attack(ctx, s.SocketPath(), kind, hold); err != nil {
					refused.Add(1) // the server's queue was full
				}
			}
		})
	}
	go func() {
		defer done.Store(true)
		for i := 0; ctx.Err() == nil && (i < total || answered.Load() < enough); i++ {
			next <- i
			attacks.Add(1)
			time.Sleep(pause)
		}
		close(next)
		attackers.Wait()
	}()

	// The honest: one that stays connected, and one that connects for every
	// question, as ovs-appctl does.
	start := time.Now()
	for !done.Load() {
		if err := honest(c, s.SocketPath(), fmt.Sprint(answered.Load())); err != nil {
			t.Fatalf("after %d honest requests, %d hostile connections and %v: %v", answered.Load(), attacks.Load(), time.Since(start), err)
		}
		answered.Add(2)
		time.Sleep(time.Millisecond)
	}
	t.Logf("%d honest requests beside %d hostile connections, %d of which found the queue full", answered.Load(), attacks.Load(), refused.Load())
	if refused.Load() > attacks.Load()/10 {
		t.Error("too few hostile connections were made")
	}

	await(t, "the last hostile connection's end", func() bool { return s.conns() == 1 })
	await(t, "the descriptors' end", func() bool { return openFiles(t) <= before })
	if err := goleak.Find(goroutines); err != nil {
		t.Error(err)
	}
	s.peers.mu.Lock()
	defer s.peers.mu.Unlock()
	if s.peers.pending != 0 {
		t.Errorf("%d bytes pending at the end", s.peers.pending)
	}
}

func openFiles(t testing.TB) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// TestFull fills the server with connections that never ask; whoever asks gets
// in all the same, and stays in.
func TestFull(t *testing.T) {
	s := serve(t, Config{MaxConns: 10})
	c := dial(t, s.SocketPath())
	if _, err := c.Call(soon(t), "version"); err != nil {
		t.Fatal(err)
	}
	var silents []*net.UnixConn
	for range 30 {
		silents = append(silents, rawConn(t, s))
	}
	// The oldest were closed, the newest 9 stay.
	for _, conn := range silents[:21] {
		if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("an old silent connection: %d, %v", n, err)
		}
	}
	if n := s.conns(); n != 10 {
		t.Errorf("%d connections", n)
	}
	for _, conn := range silents[21:] {
		if got := roundTrip(t, conn); got != `{"id":0,"result":"x\n","error":null}` {
			t.Errorf("a new silent connection: %q", got)
		}
	}
	if got, err := c.Call(soon(t), "echo", "x"); got != "x\n" {
		t.Errorf("the one that asked first: %q, %v", got, err)
	}
}

func roundTrip(t testing.TB, conn *net.UnixConn) string {
	t.Helper()
	if _, err := io.WriteString(conn, ask(0, "echo", "x")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1000)
	n, err := conn.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

// TestNoDescriptors takes all free file descriptors away from the process. A
// connection that was never used is given up for one that is.
func TestNoDescriptors(t *testing.T) {
	s := serve(t, Config{})
	c := dial(t, s.SocketPath())
	if _, err := c.Call(soon(t), "version"); err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	silent := rawConn(t, s)
	await(t, "the connection", func() bool { return s.conns() == 2 })
	// The client's end takes the last descriptor, the server's has none.
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	low := limit
	low.Cur = uint64(fd + 1)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1000)
	n := 0
	err = errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10}),
		unix.Connect(fd, &unix.SockaddrUnix{Name: s.SocketPath()}))
	if err == nil {
		_, err = unix.Write(fd, []byte(ask(0, "echo", "x")))
	}
	if err == nil {
		n, err = unix.Read(fd, b)
	}
	_, callErr := c.Call(soon(t), "echo")
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if got := string(b[:max(n, 0)]); err != nil || got != `{"id":0,"result":"x\n","error":null}` {
		t.Errorf("without descriptors: got %q, %v", got, err)
	}
	if callErr != nil {
		t.Errorf("without descriptors, on an old connection: %v", callErr)
	}
	if n, err := silent.Read(b); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the unused connection: %d, %v", n, err)
	}
	fresh := dial(t, s.SocketPath())
	if got, err := fresh.Call(soon(t), "echo", "x"); got != "x\n" {
		t.Errorf("with descriptors again: %q, %v", got, err)
	}
}
