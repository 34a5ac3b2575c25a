package appctl

import (
	"net"
	"sync"
	"time"
)

// phase is what a connection is at, in the order in which connections are
// given up when there are too many.
type phase int

const (
	silent  phase = iota // has never sent a request
	idle                 // waits for the next request
	writing              // writes a reply
	working              // runs a command
)

// peer is one connection of a server.
type peer struct {
	conn    net.Conn
	arrived time.Time
	phase   phase
	since   uint64 // the number of the change into this phase
	pending int    // bytes of the reply in the making
	gone    bool
}

// peers keeps a server's connections within its limits. It is safe for
// concurrent use.
type peers struct {
	maxPeers   int
	maxPending int

	mu      sync.Mutex
	all     map[*peer]struct{}
	changes uint64
	pending int // sum over all
	closed  bool
}

func newPeers(maxPeers, maxPending int) *peers {
	return &peers{maxPeers: maxPeers, maxPending: maxPending, all: map[*peer]struct{}{}}
}

// grace is how long a connection may take to send its first request, whatever else
// comes. Without it connections that come in one burst, larger than the server takes,
// would push out each other before any of them had the time to speak. Clients write as
// soon as they are connected; but on a busy machine that can take some of these.
const grace = 250 * time.Millisecond

// wait returns how long a new connection has to wait before it may be added, because
// there are too many and the one that would go has had less than its grace.
func (ps *peers) wait(now time.Time) time.Duration {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.closed || len(ps.all) < ps.maxPeers {
		return 0
	}
	if p := ps.oldest(nil, silent); p != nil {
		return p.arrived.Add(grace).Sub(now)
	}
	return 0
}

// add takes in a new connection. If there are too many it closes another one
// for it: the oldest that has never sent a request, else the one that has been
// idle, or stuck in writing, for longest. It closes the new one and returns nil
// if all others are at work, or after close.
func (ps *peers) add(conn net.Conn) *peer {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	full := !ps.closed && len(ps.all) >= ps.maxPeers
	if ps.closed || full && !ps.evict(nil, silent, idle, writing) {
		conn.Close()
		return nil
	}
	p := &peer{conn: conn, arrived: time.Now(), since: ps.tick()}
	ps.all[p] = struct{}{}
	return p
}

// enter moves a connection into another phase. pending is the size of the reply
// in bytes, when the phase is writing. If that makes more than all replies may
// have, connections that have been writing for longest are closed.
func (ps *peers) enter(p *peer, to phase, pending int) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p.gone {
		return
	}
	ps.pending += pending - p.pending
	p.phase, p.pending, p.since = to, pending, ps.tick()
	for ps.pending > ps.maxPending && ps.evict(p, writing) {
	}
}

// remove closes a connection and forgets it.
func (ps *peers) remove(p *peer) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.drop(p)
}

// relieve closes a connection that has never sent a request, if there is one.
func (ps *peers) relieve() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.evict(nil, silent)
}

// close closes all connections, and those to come.
func (ps *peers) close() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.closed = true
	for p := range ps.all {
		ps.drop(p)
	}
}

// evict closes the connection that has been in the first of these phases for
// longest, sparing one. It reports whether there was any. The caller holds mu.
func (ps *peers) evict(spared *peer, phases ...phase) bool {
	for _, ph := range phases {
		if victim := ps.oldest(spared, ph); victim != nil {
			ps.drop(victim)
			return true
		}
	}
	return false
}

// oldest returns the connection that has been in a phase for longest, or nil if none
// is in it, sparing one. The caller holds mu.
func (ps *peers) oldest(spared *peer, ph phase) (oldest *peer) {
	for p := range ps.all {
		if p != spared && p.phase == ph && (oldest == nil || p.since < oldest.since) {
			oldest = p
		}
	}
	return oldest
}

func (ps *peers) drop(p *peer) {
	if p.gone {
		return
	}
	p.gone = true
	ps.pending -= p.pending
	delete(ps.all, p)
	p.conn.Close()
}

func (ps *peers) tick() uint64 {
	ps.changes++
	return ps.changes
}
