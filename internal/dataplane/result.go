package dataplane

import (
	"fmt"
	"time"
)

// Result is what a forwarder did since its start.
type Result struct {
	Elapsed  time.Duration
	Ports    []PortResult
	PMDs     []PMDResult
	Injected []uint64 // by Config.Inject: how often that trouble was made, by all PMDs together
	Reloads  uint64
	Gaps     GapSummary // of the queues around the reloads
	Stale    int        // PMDs that did not answer in time: their part is older
}

// PortResult counts packets of one port. When the forwarder has stopped,
// Rx = Tx + Drops for every port, and the sum of Rx over all ports is the sum of Out
// and Drops.
type PortResult struct {
	Name   string
	Rx     uint64 // received here
	Tx     uint64 // of those, sent, by whichever port
	Drops  uint64 // of those, not sent
	Out    uint64 // sent by this port, from wherever
	Missed uint64 // found the receive queue full or were too long; in no other count
}

// PMDResult counts packets of one PMD.
type PMDResult struct {
	Core      int
	Rx        uint64
	Tx        uint64
	Drops     uint64
	Megaflows int // only when the forwarder has stopped
}

// Unbalanced returns an error that names the first port whose packets don't add
// up. It is meant for a forwarder that has stopped: until then some are in between.
func (r *Result) Unbalanced() error {
	var rx, out uint64
	for _, p := range r.Ports {
		if p.Rx != p.Tx+p.Drops {
			return fmt.Errorf("port %s: received %d, but sent %d and dropped %d", p.Name, p.Rx, p.Tx, p.Drops)
		}
		rx += p.Rx
		out += p.Out + p.Drops
	}
	if rx != out {
		return fmt.Errorf("all ports: received %d, but %d went out or were dropped", rx, out)
	}
	return nil
}
