package main

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/dataplane"
)

func soFar(seconds int, rx uint64) dataplane.Result {
	return dataplane.Result{
		Elapsed: time.Duration(seconds) * time.Second,
		Ports:   []dataplane.PortResult{{Rx: rx - 1, Tx: rx - 4, Drops: 3, Missed: 7}, {Rx: 1}},
	}
}

// TestProgressLines: where lines stay there is one after a second and then one every
// 5 s, with the rate since the one before.
func TestProgressLines(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&console{w: &b}, 10*time.Second)
	for s := 1; s <= 10; s++ {
		p.show(soFar(s, uint64(s*s)*1e6))
	}
	p.end()
	want := `pmdperf: 1 s of 10 s: 1.000 Mpps, received 1000000, dropped 3, missed 7
pmdperf: 6 s of 10 s: 7.000 Mpps, received 36000000, dropped 3, missed 7
`
	if got := b.String(); got != want {
		t.Errorf("progress is\n%swant\n%s", got, want)
	}
}

// TestProgressInPlace: on a terminal every line covers the one before, and the end
// leaves nothing. A message takes its place.
func TestProgressInPlace(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&console{w: &b}, 0)
	p.inPlace = true
	r := soFar(1, 5e6)
	r.Stale = 1
	p.show(r)
	p.show(soFar(2, 5e6))
	fmt.Fprintln(p.to, "a message")
	p.show(soFar(3, 5e6))
	p.end()
	const long, short = "1 s: 5.000 Mpps, received 5000000, dropped 3, missed 7, 1 PMD silent", "2 s: 0.000 Mpps, received 5000000, dropped 3, missed 7"
	const last = "3 s: 0.000 Mpps, received 5000000, dropped 3, missed 7"
	blanks := func(n int) string { return string(bytes.Repeat([]byte(" "), n)) }
	want := "\r" + long + "\r" + short + blanks(len(long)-len(short)) + "\r" + blanks(len(short)) + "\ra message\n\r" + last + "\r" + blanks(len(last)) + "\r"
	if got := b.String(); got != want {
		t.Errorf("progress is\n%q, want\n%q", got, want)
	}
}
