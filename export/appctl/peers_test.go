package appctl

import (
	"net"
	"testing"
	"time"
)

// fakeConn knows whether it was closed.
type fakeConn struct {
	net.Conn
	closed bool
}

func (c *fakeConn) Close() error { c.closed = true; return nil }

func TestEviction(t *testing.T) {
	ps := newPeers(4, 100)
	conns := map[string]*fakeConn{}
	all := map[string]*peer{}
	add := func(name string) {
		conns[name] = &fakeConn{}
		all[name] = ps.add(conns[name])
	}
	wantClosed := func(want ...string) {
		t.Helper()
		for _, name := range want {
			if !conns[name].closed {
				t.Errorf("%s is still open", name)
			}
			delete(conns, name)
		}
		for name, c := range conns {
			if c.closed {
				t.Errorf("%s is closed", name)
			}
		}
	}

	for _, name := range []string{"a", "b", "c", "d"} {
		add(name)
	}
	ps.enter(all["a"], working, 0)
	ps.enter(all["a"], idle, 0)
	add("e")
	wantClosed("b") // the oldest silent one, though a is older
	add("f")
	wantClosed("c")
	ps.enter(all["d"], idle, 0)
	ps.enter(all["e"], writing, 10)
	ps.enter(all["f"], idle, 0)
	add("g")
	wantClosed("a") // nobody is silent: idle for longest
	ps.enter(all["g"], working, 0)
	ps.enter(all["d"], working, 0)
	add("h")
	wantClosed("f")
	ps.enter(all["h"], working, 0)
	add("i")
	wantClosed("e") // nobody is idle either
	ps.enter(all["i"], working, 0)
	add("j")
	wantClosed("j") // all are at work
	if all["j"] != nil {
		t.Error("a connection too many was let in")
	}

	// Replies that nobody reads go when the sum of them is too large, the
	// newest excepted.
	ps.enter(all["d"], writing, 40)
	ps.enter(all["g"], writing, 60)
	wantClosed()
	ps.enter(all["h"], writing, 50)
	wantClosed("d", "g")
	ps.enter(all["i"], writing, 1000)
	wantClosed("h")
	ps.enter(all["i"], idle, 0)
	ps.enter(all["d"], idle, 7) // its goroutine has not noticed yet
	ps.remove(all["d"])
	if ps.pending != 0 || len(ps.all) != 1 {
		t.Errorf("%d bytes pending, %d connections", ps.pending, len(ps.all))
	}

	ps.relieve()
	wantClosed() // i has sent a request
	add("k")
	ps.relieve()
	wantClosed("k")
	ps.close()
	add("l")
	wantClosed("i", "l")
}

func TestGrace(t *testing.T) {
	ps := newPeers(2, 100)
	wait := func(after time.Duration) time.Duration { return ps.wait(time.Now().Add(after)) }
	first := ps.add(&fakeConn{})
	if got := wait(0); got > 0 {
		t.Errorf("while there is room one waits %v", got)
	}
	second := ps.add(&fakeConn{})
	if got := wait(-time.Second); got <= grace {
		t.Errorf("when it is full one waits %v, want what the oldest has left of %v", got, grace)
	}
	if got := wait(grace); got > 0 {
		t.Errorf("when the oldest had its time one waits %v", got)
	}
	ps.enter(first, idle, 0)
	if got := wait(-time.Second); got <= grace {
		t.Errorf("when the other is silent one waits %v", got)
	}
	ps.enter(second, idle, 0)
	if got := wait(-time.Second); got > 0 {
		t.Errorf("when all have spoken one waits %v", got)
	}
	ps.enter(second, silent, 0)
	ps.close()
	if got := wait(-time.Second); got > 0 {
		t.Errorf("when it is closed one waits %v", got)
	}
}

// TestBurst connects more clients at once than the server takes, before any of them
// speaks: all are answered.
func TestBurst(t *testing.T) {
	s := serve(t, Config{MaxConns: 5})
	var conns []*net.UnixConn
	for range 15 {
		conns = append(conns, rawConn(t, s))
	}
	for i, conn := range conns {
		if got, want := roundTrip(t, conn), `{"id":0,"result":"x\n","error":null}`; got != want {
			t.Fatalf("client %d: %q", i, got)
		}
	}
}
