// Package dataplane is a poll-mode packet forwarder: the module's own user, for
// demonstrations, tests and experiments. It works as Open vSwitch's userspace
// datapath does.
//
// A PMD is a goroutine on a thread of its own, pinned to a core. In every pass it
// polls its receive queues. A packet's key (Key) is looked up in the exact-match
// cache (emc), then by tuple space search among the megaflows (classifier), and
// where neither knows it an upcall asks the slow path (slowPath), which has all
// rules and installs a megaflow for the packet and its like. Megaflows send the
// packet to a port, drop it, or let it take a further pass through the pipeline,
// with a tunnel header taken off or without. Packets wait in a batch for each port,
// which is sent when it is full, at the end of the pass, or when it is due.
//
// Nothing in a pass allocates, locks, or calls through a map. A PMD's counts are its
// own plain words. Whoever wants them, or a reload, or the end, posts a request: the
// one atomic word that a pass looks at. No packet is counted twice or not at all:
// when a forwarder has stopped, every packet that a port received was sent or
// dropped. Packets that found a queue full were never received; they are missed.
//
// In a reload no PMD waits for another: each changes to what was prepared for it, and
// polls a queue that moves as soon as the PMD that had it has let go of it. Two schemes
// that Open vSwitch had are there to compare with: see ReloadScheme.
//
// Only what is asked for is shared by PMDs: the addresses that Config.Normal learns, two
// words a packet, and the counts of StatsShared, behind a lock.
//
// Ports are interfaces of Linux (afpacket:IF, afxdp:IF) or in memory (mem), where a
// generator inside the receive burst makes the packets: see generator.
//
// On two cores the process's other threads share what the PMDs leave: Start moves
// them there, and warns where nothing is left. The Go runtime interrupts busy
// threads unless the process was started with GODEBUG=asyncpreemptoff=1; that is up
// to the command, which asks AsyncPreemptOff.
package dataplane
