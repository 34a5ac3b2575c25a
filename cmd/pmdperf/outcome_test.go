package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/pmdperf/pmdperf/internal/dataplane"
)

// TestLostPackets: counts that don't add up are printed, and are an error.
func TestLostPackets(t *testing.T) {
	o := outcome{result: dataplane.Result{Ports: []dataplane.PortResult{
		{Name: "mem0", Rx: 9, Tx: 7, Drops: 2, Out: 7},
		{Name: "mem1", Rx: 9, Tx: 7, Drops: 1, Out: 7},
	}}}
	for _, as := range []format{formatText, formatJSON} {
		var b bytes.Buffer
		err := o.print(&b, as)
		if err == nil || !strings.Contains(err.Error(), "port mem1: received 9") {
			t.Errorf("%s: error is %v, want one that names mem1", as, err)
		}
		if !strings.Contains(b.String(), "mem1") {
			t.Errorf("%s: output lacks mem1: %q", as, b.String())
		}
	}
}
