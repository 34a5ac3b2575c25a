package pmd

import (
	"context"
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

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/internal/need"
)

// attack opens a connection, misuses it in one of several ways and holds it until ctx
// ends or hold has passed.
func attack(ctx context.Context, path string, kind int, hold time.Duration) error {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetWriteDeadline(time.Now().Add(hold))
	const show = `{"id":0,"method":"dpif-netdev/pmd-perf-show","params":[]}`
	switch kind % 6 {
	case 0, 1: // nothing
	case 2:
		io.WriteString(conn, show[:len(show)/2])
	case 3:
		io.WriteString(conn, "\x00\xff garbage {{{")
	case 4:
		io.WriteString(conn, `{"":"`+strings.Repeat("x", 100_000))
	case 5: // asks and asks and doesn't read
		io.WriteString(conn, strings.Repeat(show, 30))
	}
	select {
	case <-time.After(hold):
	case <-ctx.Done():
	}
	return nil
}

// siege is hostile clients of a server.
type siege struct {
	path   string
	total  int           // connections in each of its spells
	atOnce int           // connections at one time, at most
	hold   time.Duration // how long one is held, on average

	made, refused atomic.Int64
	cancel        context.CancelFunc
	all           sync.WaitGroup
}

// set begins a spell, or ends it and waits until all connections are closed.
func (s *siege) set(on bool) {
	if !on {
		if s.cancel != nil {
			s.cancel()
			s.all.Wait()
		}
		return
	}
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.Background())
	var spell atomic.Int64
	for range s.atOnce {
		s.all.Go(func() {
			for ctx.Err() == nil && spell.Add(1) <= int64(s.total) {
				kind := int(s.made.Add(1))
				hold := time.Duration(rand.Int64N(2 * int64(s.hold)))
				if err := attack(ctx, s.path, kind, hold); err != nil && ctx.Err() == nil {
					s.refused.Add(1)
				}
			}
		})
	}
}

// honest shows the loop on an old connection and on a new one. It tries again where
// the machine held it up for longer than the server lets a new connection be silent
// when it is full.
func honest(ctx context.Context, old *appctl.Client, path string) error {
	const show = "dpif-netdev/pmd-perf-show"
	for {
		began := time.Now()
		err := func() error {
			fresh, err := appctl.Dial(ctx, path)
			if err != nil {
				return err
			}
			defer fresh.Close()
			_, err = fresh.Call(ctx, show)
			return err
		}()
		if err != nil && ctx.Err() == nil && time.Since(began) > 200*time.Millisecond {
			continue
		}
		if err != nil {
			return fmt.Errorf("on a new connection: %w", err)
		}
		break
	}
	if _, err := old.Call(ctx, show); err != nil {
		return fmt.Errorf("on the old connection: %w", err)
	}
	return nil
}

// TestHostile besieges the server of a busy loop. Every honest request is answered,
// nothing is left over, and the loop hardly notices. How little is the benchmark's
// matter: where the machine is busy with other tests only gross harm can be told, and
// that only in what the loop does while it runs. When the Go runtime stops it to
// collect garbage it stays stopped for as long as they have the other core.
func TestHostile(t *testing.T) {
	spells, length, total, atOnce := 4, 500*time.Millisecond, 250, 200
	if need.Long() {
		spells, length, total, atOnce = 6, 10*time.Second, 1670, 1000
	}
	wantDescriptors(t, 2*atOnce)
	l := startBusy(t, Options{Timeout: patience})
	old, err := appctl.Dial(soon(t), l.path)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if err := honest(soon(t), old, l.path); err != nil {
		t.Fatal(err)
	}
	files, goroutines := openFiles(t), goleak.IgnoreCurrent()

	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(4*spells)*length+patience)
	defer cancel()
	var asking sync.WaitGroup
	var answered atomic.Int64
	var stop atomic.Bool
	asking.Go(func() {
		for !stop.Load() {
			if err := honest(ctx, old, l.path); err != nil {
				t.Errorf("after %d honest requests: %v", answered.Load(), err)
				return
			}
			answered.Add(2)
			time.Sleep(20 * time.Millisecond)
		}
	})
	s := &siege{path: l.path, total: total, atOnce: atOnce, hold: length / 2}
	c := l.compare(t, spells, spells, length, 0, s.set)
	stop.Store(true)
	asking.Wait()

	t.Logf("%d honest requests beside %d hostile connections; the loop was %.1f %% slower, while it ran %.1f %%",
		answered.Load(), s.made.Load(), c.slowdown(), c.slowdownAtWork())
	if s.refused.Load() > s.made.Load()/10 {
		t.Errorf("%d hostile connections of %d were never made", s.refused.Load(), s.made.Load())
	}
	if answered.Load() < int64(4*spells) {
		t.Error("too few honest requests")
	}
	// Readers that are answered whenever they ask take most of a loop's passes. A loop
	// that neighbours or the race detector slow down can lose a quarter for no reason.
	if c.slowdownAtWork() > 50 {
		t.Error("the loop suffers")
	}
	await(t, "the descriptors are closed", func() bool { return openFiles(t) <= files })
	if err := goleak.Find(goroutines); err != nil {
		t.Error(err)
	}
}

// wantDescriptors wants that the process may have so many more files open.
func wantDescriptors(t testing.TB, n int) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < uint64(n)+200 {
		need.Skip(t, fmt.Sprintf("needs %d file descriptors (ulimit -n), there are %d", n+200, limit.Cur))
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
