// Package netlab gives a test a network of its own: a namespace with pairs of
// virtual Ethernet interfaces, on which only the test's frames run, a paced sender
// and a counting receiver.
package netlab

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/internal/need"
)

// Lab is a network namespace. It belongs to the goroutine that made it, and so do
// Senders and Receivers until they are made; subtests have goroutines of their own.
type Lab struct{ t testing.TB }

// New moves the calling goroutine, locked to its thread for good, into a network
// namespace of its own, which ends with the test. It skips the test where that is
// not possible.
func New(t testing.TB) *Lab {
	t.Helper()
	need.Root(t)
	runtime.LockOSThread() // and never unlock: the thread ends with the test's goroutine
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		need.Skip(t, fmt.Sprintf("no network namespace: %v", err))
	}
	// Interfaces with IPv6 send router solicitations and multicast reports.
	for _, name := range []string{"all", "default"} {
		err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("1"), 0)
		if err != nil && !os.IsNotExist(err) {
			t.Fatalf("switch IPv6 off: %v", err)
		}
	}
	return &Lab{t}
}

// Veth makes a pair of interfaces, each with that many queues, and sets them up.
// What one sends the other receives.
func (l *Lab) Veth(a, b string, queues int) {
	l.t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = a
	attrs.NumTxQueues, attrs.NumRxQueues = queues, queues
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: b, PeerNumTxQueues: uint32(queues), PeerNumRxQueues: uint32(queues)}
	if err := netlink.LinkAdd(pair); err != nil {
		need.Skip(l.t, fmt.Sprintf("no veth interfaces: %v", err))
	}
	for _, name := range []string{a, b} {
		if err := netlink.LinkSetUp(l.link(name)); err != nil {
			l.t.Fatalf("set %s up: %v", name, err)
		}
	}
	for _, name := range []string{a, b} {
		if s := l.link(name).Attrs().OperState; s != netlink.OperUp {
			l.t.Fatalf("%s is %s, want up", name, s)
		}
	}
}

// Down sets an interface down.
func (l *Lab) Down(name string) {
	l.t.Helper()
	if err := netlink.LinkSetDown(l.link(name)); err != nil {
		l.t.Fatalf("set %s down: %v", name, err)
	}
}

// MTU sets the longest packet in bytes that an interface takes, Ethernet header
// excluded.
func (l *Lab) MTU(name string, bytes int) {
	l.t.Helper()
	if err := netlink.LinkSetMTU(l.link(name), bytes); err != nil {
		l.t.Fatalf("set the MTU of %s: %v", name, err)
	}
}

func (l *Lab) link(name string) netlink.Link {
	l.t.Helper()
	link, err := netlink.LinkByName(name)
	if err != nil {
		l.t.Fatalf("interface %s: %v", name, err)
	}
	return link
}

// Stats are the kernel's counters of an interface. A frame that a veth interface
// could not hand to its peer is in TxDropped and not in TxPackets.
type Stats struct {
	RxPackets, TxPackets, RxBytes, TxBytes, RxDropped, TxDropped uint64
}

// Stats returns the kernel's counters of an interface.
func (l *Lab) Stats(name string) Stats {
	l.t.Helper()
	s := l.link(name).Attrs().Statistics
	return Stats{s.RxPackets, s.TxPackets, s.RxBytes, s.TxBytes, s.RxDropped, s.TxDropped}
}

// socket returns a packet socket bound to an interface, closed with the test.
func (l *Lab) socket(name string, protocol uint16) int {
	l.t.Helper()
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		l.t.Fatalf("packet socket: %v", err)
	}
	l.t.Cleanup(func() { _ = unix.Close(fd) })
	addr := unix.SockaddrLinklayer{Protocol: protocol<<8 | protocol>>8, Ifindex: l.link(name).Attrs().Index}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		l.t.Fatalf("ignore what is sent on %s: %v", name, err)
	}
	if err := unix.Bind(fd, &addr); err != nil {
		l.t.Fatalf("bind to %s: %v", name, err)
	}
	return fd
}
