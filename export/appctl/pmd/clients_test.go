package pmd

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// clientsEnv has a test binary be clients and nothing else: "siege PATH" or "shows PATH",
// with the path of a server's socket.
const clientsEnv = "PMDPERF_TEST_CLIENTS"

// clients are clients of a server in a process of their own, as clients are. In the
// process of the loop a thousand of them would have turns of the Go scheduler that the
// loop's goroutine has to wait for, and their garbage would be its process's, too: a
// benchmark would show what they do to themselves.
type clients struct {
	t     testing.TB
	tell  io.WriteCloser
	lines *bufio.Scanner
	done  int64 // connections made, or shows
}

// startClients starts clients on the cores on which the threads of the process are, that
// of the loop apart. They wait until they are switched on.
func startClients(t testing.TB, what, path string) *clients {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), clientsEnv+"="+what+" "+path)
	cmd.Stderr = os.Stderr
	c := &clients{t: t}
	if c.tell, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.lines = bufio.NewScanner(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.tell.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("clients: %v", err)
		}
	})
	return c
}

// set switches the clients on or off, and returns when they are.
func (c *clients) set(on bool) {
	fmt.Fprintln(c.tell, on)
	var err error
	if !c.lines.Scan() {
		err = io.ErrUnexpectedEOF
	} else {
		_, err = fmt.Sscan(c.lines.Text(), &c.done)
	}
	if err != nil {
		c.t.Fatalf("clients: %v", err)
	}
}

// runClients is what the process of clients does: it switches them on and off as the
// lines of its input say, and answers each with how much they have done.
func runClients(what string) {
	what, path, _ := strings.Cut(what, " ")
	var set func(on bool)
	var done func() int64
	switch what {
	case "siege":
		s := &siege{path: path, total: 1670, atOnce: 1000, hold: 6 * time.Second}
		set, done = s.set, s.made.Load
	case "shows":
		s := &showers{path: path, readers: 8, period: 8 * time.Millisecond}
		defer s.end()
		if err := s.start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		set, done = s.on.Store, s.shows.Load
	}
	defer func() { set(false) }()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		set(lines.Text() == "true")
		fmt.Println(done())
	}
}

// showers are readers that ask for the default show, each once in a period and at
// different times. Each has one connection, and reuses its memory.
type showers struct {
	path    string
	readers int
	period  time.Duration

	on, stop atomic.Bool
	shows    atomic.Int64
	all      sync.WaitGroup
}

func (s *showers) start() error {
	began := time.Now()
	for i := range s.readers {
		a, err := dialAsker(s.path, fmt.Sprintf(askPerfShow, ""))
		if err != nil {
			return err
		}
		s.all.Go(func() {
			defer a.conn.Close()
			// One that is late makes up for it, unless it was very late.
			next := began.Add(time.Duration(i) * s.period / time.Duration(s.readers))
			for ; !s.stop.Load(); next = next.Add(s.period) {
				now := time.Now()
				time.Sleep(next.Sub(now))
				if now.Sub(next) > 100*time.Millisecond {
					next = now
				}
				if !s.on.Load() {
					continue
				}
				if _, err := a.ask(); err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				s.shows.Add(1)
			}
		})
	}
	return nil
}

func (s *showers) end() {
	s.stop.Store(true)
	s.all.Wait()
}
