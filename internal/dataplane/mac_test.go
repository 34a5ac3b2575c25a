package dataplane

import (
	"testing"
	"time"
)

func TestMACTable(t *testing.T) {
	var table macTable
	frame := func(dst, src string) []byte { return []byte(dst + src + "\x08\x00payload") }
	const a, b, group = "\x02\x00\x00\x00\x00\x0a", "\x02\x00\x00\x00\x00\x0b", "\x03\x00\x00\x00\x00\x01"
	for i, step := range []struct {
		frame []byte
		in    uint16
		port  uint16
		ok    bool
	}{
		{frame(b, a), 1, 0, false}, // nobody has seen b yet
		{frame(a, b), 0, 1, true},
		{frame(b, a), 1, 0, true},
		{frame(b, a), 5, 0, true}, // a has moved
		{frame(a, b), 0, 5, true},
		{frame(a, b), 5, 0, false}, // back to where it came from
		{frame(group, b), 2, 0, false},
		{frame(b, group), 3, 2, true}, // a group is nobody's source
		{frame(group, b), 2, 0, false},
		{[]byte("short"), 2, 0, false},
		{nil, 2, 0, false},
	} {
		if port, ok := table.forward(step.frame, step.in); ok != step.ok || ok && port != step.port {
			t.Errorf("step %d: port %d, %v, want %d, %v", i, port, ok, step.port, step.ok)
		}
	}
}

// TestNormal: three ports in a circle, each packet addressed to the next one. Without
// the addresses all would go to the sinks.
func TestNormal(t *testing.T) {
	f := startTest(t, Config{Ports: []string{"mem", "mem", "mem"}, Sinks: 2, Normal: true, Flows: 100})
	time.Sleep(30 * time.Millisecond)
	r := f.Stop()
	if err := r.Unbalanced(); err != nil {
		t.Error(err)
	}
	for i, p := range r.Ports[:3] {
		// All but what came before the destination had sent something itself.
		from := r.Ports[(i+2)%3].Tx
		if p.Out == 0 || p.Out > from || from-p.Out > 3*Burst {
			t.Errorf("%s sent %d, of %d addressed to it", p.Name, p.Out, from)
		}
	}
}

func TestOneWay(t *testing.T) {
	f := startTest(t, Config{Ports: []string{"mem", "mem"}, Normal: true, OneWay: true})
	time.Sleep(10 * time.Millisecond)
	r := f.Stop()
	if a, b := r.Ports[0], r.Ports[1]; a.Rx == 0 || b.Out != a.Rx || b.Rx != 0 {
		t.Errorf("%+v", r.Ports)
	}
}
