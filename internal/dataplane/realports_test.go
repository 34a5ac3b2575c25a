//go:build linux

package dataplane

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/internal/netlab"
	"github.com/pmdperf/pmdperf/perf"
)

// frames returns a netlab frame function for generated flows.
func frames(size, classes, flows int) func(i int, buf []byte) int {
	t := newTemplate(size, classes, false)
	p := new(Packet)
	return func(i int, buf []byte) int {
		t.render(p, uint32(i%flows))
		return copy(buf, p.Frame())
	}
}

// TestRealPackets forwards both ways between two veth pairs and wants every count of
// ours, of the recorders and of the kernel to be exactly the number sent.
func TestRealPackets(t *testing.T) {
	for _, kind := range []string{"afpacket:%s", "afxdp:%s/native", "afxdp:%s/generic"} {
		for _, queues := range []int{1, 2} {
			name := map[int]string{1: "one queue", 2: "two queues"}[queues]
			t.Run(fmt.Sprintf(kind, name), func(t *testing.T) { testRealPackets(t, kind, queues) })
		}
	}
}

// testRealPackets does so with two ports whose names kind makes of those of their
// interfaces.
func testRealPackets(t *testing.T, kind string, queues int) {
	lab := netlab.New(t)
	lab.Veth("gen0", "dut0", queues)
	lab.Veth("dut1", "far0", queues)
	there, back := lab.Receiver("far0"), lab.Receiver("gen0")
	sendThere, sendBack := lab.Sender("gen0"), lab.Sender("far0")
	registry := new(perf.Registry)
	f, err := Open(Config{
		Ports:     []string{fmt.Sprintf(kind, "dut0"), fmt.Sprintf(kind, "dut1")},
		Queues:    queues,
		Subtables: 5,
		Flows:     500,
		Level:     perf.Detailed,
		Registry:  registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	defer f.Stop()

	n := 4000
	if need.Long() {
		n = 200_000
	}
	const backwards = 96
	frame := frames(90, 5, 500)
	for _, s := range []struct {
		from *netlab.Sender
		n    int
	}{{sendThere, n}, {sendBack, backwards}} {
		if sent, err := s.from.Send(s.n, 20_000, frame); err != nil || sent != s.n {
			t.Fatalf("sent %d, %v, want %d", sent, err, s.n)
		}
	}
	got := f.Stop()
	if err := got.Unbalanced(); err != nil {
		t.Error(err)
	}

	in, out := got.Ports[0], got.Ports[1]
	if in.Rx+in.Missed != uint64(n) || out.Rx+out.Missed != backwards {
		t.Errorf("received %d and missed %d of %d, %d and %d of %d", in.Rx, in.Missed, n, out.Rx, out.Missed, backwards)
	}
	if in.Rx == 0 || out.Rx == 0 {
		t.Errorf("received %d and %d, want some", in.Rx, out.Rx)
	}
	for _, c := range []struct {
		what     string
		receiver *netlab.Receiver
		want     uint64
	}{{"far", there, in.Tx}, {"near", back, out.Tx}} {
		if arrived, err := c.receiver.Count(); err != nil || arrived != c.want {
			t.Errorf("%d arrived at the %s end, %v, want %d", arrived, c.what, err, c.want)
		}
	}
	for _, c := range []struct {
		name   string
		rx, tx uint64
	}{
		{"gen0", out.Tx, uint64(n)},
		{"dut0", uint64(n), in.Out},
		{"dut1", backwards, out.Out},
		{"far0", in.Tx, backwards},
	} {
		if s := lab.Stats(c.name); s.RxPackets != c.rx || s.TxPackets != c.tx || s.TxDropped != 0 {
			t.Errorf("%s: kernel counts %+v, want received %d, sent %d", c.name, s, c.rx, c.tx)
		}
	}
	var rx, tx, drops, fill uint64
	for _, r := range registry.Recorders() {
		var s perf.Snapshot
		if err := r.Snapshot(context.Background(), perf.Want{}, &s); err != nil {
			t.Fatal(err)
		}
		rx += s.Totals.RxPackets
		tx += s.Totals.TxPackets
		drops += s.Totals.Drops
		fill = max(fill, s.QueueFill.Max())
	}
	if rx != in.Rx+out.Rx || tx != in.Out+out.Out || drops != in.Drops+out.Drops {
		t.Errorf("recorders: received %d, sent %d, dropped %d; ports say %+v", rx, tx, drops, got.Ports)
	}
	if fill == 0 || fill > uint64(n) {
		t.Errorf("fullest queue %d, want 1 to %d", fill, n)
	}
	var have, want [2048]byte
	for i := range 10 {
		size := frame(i, want[:])
		if k := there.Next(have[:]); queues == 1 && !bytes.Equal(have[:k], want[:size]) {
			t.Fatalf("frame %d arrived as % x, was sent as % x", i, have[:k], want[:size])
		}
	}
}

// TestFramesThatDoNotFit sends frames that are longer than a packet, and forwards
// frames that are longer than the outgoing interface takes: all are counted.
func TestFramesThatDoNotFit(t *testing.T) {
	for _, kind := range []string{"afpacket:", "afxdp:"} {
		t.Run(kind, func(t *testing.T) { testFramesThatDoNotFit(t, kind) })
	}
}

func testFramesThatDoNotFit(t *testing.T, kind string) {
	lab := netlab.New(t)
	lab.Veth("gen0", "dut0", 1)
	lab.Veth("dut1", "far0", 1)
	lab.MTU("gen0", 3000) // more than an XDP program lets through would not be taken
	lab.MTU("dut0", 3000)
	f, err := Open(Config{Ports: []string{kind + "dut0", kind + "dut1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	defer f.Stop()
	plain := frames(60, 1, 10)
	sizes := []int{60, 1700, MaxFrame + 1} // forwarded, too long for dut1, too long for us
	sent, err := lab.Sender("gen0").Send(300, 10_000, func(i int, buf []byte) int {
		plain(i, buf)
		return sizes[i%3]
	})
	if err != nil || sent != 300 {
		t.Fatalf("sent %d, %v", sent, err)
	}
	got := f.Stop()
	want := PortResult{Name: "dut0", Rx: 200, Tx: 100, Drops: 100, Missed: 100}
	if got.Ports[0] != want {
		t.Errorf("got %+v, want %+v", got.Ports[0], want)
	}
	if s := lab.Stats("far0"); s.RxPackets != 100 {
		t.Errorf("%d arrived, want 100", s.RxPackets)
	}
}

// TestVLANTag wants the tag that the kernel takes out of a frame to be back in.
func TestVLANTag(t *testing.T) {
	lab := netlab.New(t)
	lab.Veth("gen0", "dut0", 1)
	p, err := openAFPacket("dut0", 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	want := []byte("\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01\x81\x00\x60\x2a\x88\xb5")
	want = append(want, make([]byte, 60)...)
	if _, err := lab.Sender("gen0").Send(1, 1e6, func(_ int, buf []byte) int { return copy(buf, want) }); err != nil {
		t.Fatal(err)
	}
	b := NewBatch(NewPool(Burst))
	for begun := time.Now(); b.Len() == 0 && time.Since(begun) < 5*time.Second; {
		p.RxBurst(0, b)
	}
	if b.Len() != 1 || !bytes.Equal(b.At(0).Frame(), want) {
		t.Fatalf("received %d frames, want one: % x", b.Len(), want)
	}
	b.At(0).extract(0, 0, 0)
	if got := b.At(0).key[2] >> 48; got != 0x88b5 {
		t.Errorf("Ethernet type %#x, want 0x88b5", got)
	}
}

func TestOpenPortErrors(t *testing.T) {
	lab := netlab.New(t)
	lab.Veth("a0", "a1", 1)
	lab.Down("a0")
	for port, want := range map[string]string{
		"afpacket:none": "there is no such interface",
		"afpacket:a0":   "ip link set a0 up",
		"afxdp:none":    "there is no such interface",
		"afxdp:a0":      "ip link set a0 up",
	} {
		_, err := Run(t.Context(), Config{Ports: []string{"mem", port}, Duration: time.Hour})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("port %s: error %v, want one line with %q", port, err, want)
		}
	}
}

// TestNoPrivilege takes the privilege away from its own thread, which ends with it.
func TestNoPrivilege(t *testing.T) {
	need.Root(t)
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&header, &caps[0]); err != nil {
		t.Fatal(err)
	}
	caps[0].Effective &^= 1 << unix.CAP_NET_RAW
	if err := unix.Capset(&header, &caps[0]); err != nil {
		t.Fatal(err)
	}
	for _, port := range []string{"afpacket:lo", "afxdp:lo"} {
		_, err := Open(Config{Ports: []string{port}})
		if want := "run as root or with CAP_NET_RAW"; err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("port %s: error %v, want one line with %q", port, err, want)
		}
	}
}
