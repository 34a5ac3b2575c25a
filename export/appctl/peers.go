package appctl

import (
	"net"
	"sync"
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
	p := &peer{conn: conn, since: ps.tick()}
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
		var victim *peer
		for p := range ps.all {
			if p != spared && p.phase == ph && (victim == nil || p.since < victim.since) {
				victim = p
			}
		}
		if victim != nil {
			ps.drop(victim)
			return true
		}
	}
	return false
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
