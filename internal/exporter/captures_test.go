package exporter

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/internal/ovslab"
	"github.com/pmdperf/pmdperf/internal/promlab"
)

// TestCaptures has a switch answer with real captures: every number in them comes out,
// under the right name.
func TestCaptures(t *testing.T) {
	files, err := filepath.Glob("../../export/ovs/testdata/ovs-3.1/*.stats.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".stats.txt")
		t.Run(name, func(t *testing.T) {
			perf, stats, rxq := capture(t, name+".txt"), capture(t, name+".stats.txt"), capture(t, name+".rxq.txt")
			s := newFakeSwitch(t, map[string]string{perfShow: perf, statsShow: stats, rxqShow: rxq})
			e, log := newExporter(t, patienceOfTests, s.path)
			text := scrape(t, e)
			got := parseSamples(t, text)
			if got["ovs_pmd_up{}"] != 1 {
				t.Fatalf("the target is down: %s", log)
			}
			want := expect(perf, stats, rxq)
			if len(want) < 30 {
				t.Fatalf("only %d values in the texts", len(want))
			}
			for k, v := range want {
				if have, ok := got[k]; !ok || have != v {
					t.Errorf("%s is %v (there: %v), want %v", k, have, ok, v)
				}
			}
			promlab.CheckMetrics(t, text)
		})
	}
}

var update = flag.Bool("update", false, "write the goldens in testdata anew")

// TestFormats has a switch answer in the layouts of all versions: every number in them
// comes out, and nothing that the version doesn't tell. Goldens have all but the buckets.
func TestFormats(t *testing.T) {
	for _, version := range []struct{ name, perf, stats, rxq string }{
		{"2.10", "2.10", "2.10", "2.10"},
		{"2.11", "2.11", "2.10", "2.10"},
		{"2.12", "2.11", "2.10", "2.12"},
		{"2.16", "2.16", "2.16", "2.16"},
		{"2.17", "2.17", "2.17", "2.16"},
		{"3.2", "3.2", "2.17", "3.1"},
		{"4.0", "4.0", "4.0", "3.1"},
	} {
		t.Run(version.name, func(t *testing.T) {
			read := func(name string) string {
				text, err := os.ReadFile("../../export/ovs/testdata/formats/" + name + ".txt")
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			perf, stats, rxq := read(version.perf+".perf"), read(version.stats+".stats"), read(version.rxq+".rxq")
			s := newFakeSwitch(t, map[string]string{perfShow: perf, statsShow: stats, rxqShow: rxq})
			e, log := newExporter(t, patienceOfTests, s.path)
			e.targets[0].texts.hz = 2.3e9
			text := scrape(t, e)
			got := parseSamples(t, text)
			if got["ovs_pmd_up{}"] != 1 {
				t.Fatalf("the target is down: %s", log)
			}
			for k, v := range expect(perf, stats, rxq) {
				if have, ok := got[k]; !ok || have != v {
					t.Errorf("%s is %v (there: %v), want %v", k, have, ok, v)
				}
			}
			promlab.CheckMetrics(t, text)
			var golden strings.Builder
			for _, k := range slices.Sorted(maps.Keys(got)) {
				if !strings.Contains(k, "_bucket{") {
					fmt.Fprintf(&golden, "%s %v\n", k, got[k])
				}
			}
			file := filepath.Join("testdata", version.name+".metrics")
			if *update {
				if err := os.WriteFile(file, []byte(golden.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), golden.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOVS reads a real Open vSwitch between two looks with ovs-appctl: no number may be
// below that of the look before, or above that of the look after. The numbers of packets
// are the same in all three.
func TestOVS(t *testing.T) {
	lab := ovslab.Start(t, ovslab.Options{PMDs: 2, Ports: 2, Queues: 2})
	path, err := appctl.Resolve(lab.RunDir, lab.Name)
	if err != nil {
		t.Fatal(err)
	}
	e, log := newExporter(t, patienceOfTests, path)
	const packets = 20
	for i := range packets {
		lab.Appctl(t, "netdev-dummy/receive", "p0", fmt.Sprintf("in_port(1),eth(src=50:54:00:00:00:%02x,dst=50:54:00:00:00:ff),"+
			"eth_type(0x0800),ipv4(src=10.0.0.%d,dst=10.0.0.200,proto=17)", i, i))
	}
	received := func(s samples) (sum float64) {
		for _, core := range []string{"0", "1"} {
			sum += s[key("ovs_pmd_rx_packets_total", `numa="0"`, `cpu="`+core+`"`)]
		}
		return sum
	}
	look := func() samples {
		return expect(lab.Appctl(t, perfShow), lab.Appctl(t, statsShow), lab.Appctl(t, rxqShow))
	}
	for end := time.Now().Add(patienceOfTests); received(look()) < packets; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the switch received too few packets")
		}
	}
	for range 5 {
		before := look()
		text := scrape(t, e)
		after := look()
		got := parseSamples(t, text)
		if got["ovs_pmd_up{}"] != 1 {
			t.Fatalf("the switch is down: %s", log)
		}
		if len(before) < 450 { // of 7 histograms of 32 bins for 2 PMDs alone
			t.Fatalf("only %d values in the texts", len(before))
		}
		for k, low := range before {
			have, ok := got[k]
			high := after[k]
			if high < low || strings.Contains(k, "usage_ratio") {
				continue // an iteration took a second, or it is no counter
			}
			if !ok || have < low || have > high {
				t.Errorf("%s is %v (there: %v), but was %v before and %v after", k, have, ok, low, high)
			}
		}
		if n := received(got); n != packets {
			t.Errorf("%v packets received, want %d", n, packets)
		}
		// This switch computes with a tick a second, and sleeps most of the time.
		thread := []string{`numa="0"`, `cpu="0"`}
		slept, of := got[key("ovs_pmd_sleep_seconds_total", thread...)], got[key("ovs_pmd_measured_seconds", thread...)]
		if ticksPerSecond() > 0 && (slept <= 0 || slept > of+1) {
			t.Errorf("a thread slept %v s of %v s", slept, of)
		}
		if v := got[key("ovs_pmd_context_switches_total", append(thread, `kind="voluntary"`)...)]; v <= 0 {
			t.Errorf("a thread that sleeps was switched off its core %v times", v)
		}
		promlab.CheckMetrics(t, text)
	}
}
