package cause

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	if run, wait, ok := parseSchedstat([]byte("1184163 835688 6\n")); run != 1184163 || wait != 835688 || !ok {
		t.Error("schedstat", run, wait, ok)
	}
	stat := "31 (a) b) (c) R 1 2 3 0 -1 4194304 107 9 3 8 0 0 0 0 20 0 1 0 99 1000 10 184\n"
	if state, minor, major, ok := parseStat([]byte(stat)); state != 'R' || minor != 107 || major != 3 || !ok {
		t.Error("stat", state, minor, major, ok)
	}
	for text, want := range map[string]int{"running\n": unknownCall, "-1 0x7ffe 0x7f00\n": noCall, "35 0x1 0x2 0x0\n": 35} {
		if call, ok := parseSyscall([]byte(text)); call != want || !ok {
			t.Error("syscall", text, call, ok)
		}
	}
	v1 := "nr_periods 9\nnr_throttled 4\nthrottled_time 5000\nnr_bursts 0\n"
	if throttled, count, ok := parseCPUStat([]byte(v1)); throttled != 5000 || count != 4 || !ok {
		t.Error("cpu.stat of version 1", throttled, count, ok)
	}
	v2 := "usage_usec 77\nnr_periods 9\nnr_throttled 4\nthrottled_usec 5\n"
	if throttled, count, ok := parseCPUStat([]byte(v2)); throttled != 5000 || count != 4 || !ok {
		t.Error("cpu.stat of version 2", throttled, count, ok)
	}
	if _, _, ok := parseCPUStat([]byte("usage_usec 77\n")); ok {
		t.Error("cpu.stat without a controller was taken")
	}
	if steal, irq, ok := parseCoreTimes([]byte("cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 1 2 3 4 5 6 7 8 0 0\ncpu11 0 0 0 0 0 0 0 0 0 0\n"), 1); steal != 8 || irq != 13 || !ok {
		t.Error("/proc/stat", steal, irq, ok)
	}
	if pid, ok := parseTgid([]byte("Name:\tx\nUmask:\t0022\nTgid:\t12\n")); pid != 12 || !ok {
		t.Error("status", pid, ok)
	}

	var lines []Line
	interrupts := "            CPU0       CPU1       \n" +
		"  24:          7          8   PCI-MSI 1-edge      eth0-rx\n" +
		" LOC:       1000       2000   Local timer interrupts\n" +
		" ERR:          3\n"
	if !parseLines([]byte(interrupts), 1, func(name string, n int64) { lines = append(lines, Line{name, n}) }) {
		t.Error("/proc/interrupts was not taken")
	}
	if diff := cmp.Diff([]Line{{"24 eth0-rx", 8}, {"LOC Local timer interrupts", 2000}}, lines); diff != "" {
		t.Errorf("/proc/interrupts (-want +got):\n%s", diff)
	}
	if parseLines([]byte(interrupts), 2, func(string, int64) {}) {
		t.Error("/proc/interrupts has a core too many")
	}

	if v1, v2 := parseCgroups([]byte("2:cpu,cpuacct:/a\n1:cpuset:/c\n0::/b\n")); v1 != "/a" || v2 != "/b" {
		t.Error("cgroup", v1, v2)
	}
	mounts := "30 1 0:1 /box /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" +
		"31 1 0:2 / /sys/fs/cgroup/unified rw shared:1 - cgroup2 cgroup2 rw\n"
	m1, m2 := parseMounts([]byte(mounts))
	if m1 != (cgroupMount{"/box", "/sys/fs/cgroup/cpu"}) || m2 != (cgroupMount{"/", "/sys/fs/cgroup/unified"}) {
		t.Error("mountinfo", m1, m2)
	}
}

// FuzzParse feeds every parser of text files.
func FuzzParse(f *testing.F) {
	f.Add([]byte("cpu0 1 2 3 4 5 6 7 8\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if run, wait, ok := parseSchedstat(b); ok && (run < 0 || wait < 0) {
			t.Error("schedstat is negative")
		}
		if _, minor, major, ok := parseStat(b); ok && (minor < 0 || major < 0) {
			t.Error("faults are negative")
		}
		if call, ok := parseSyscall(b); ok && call < unknownCall {
			t.Error("system call", call)
		}
		if throttled, count, ok := parseCPUStat(b); ok && (throttled < 0 || count < 0) {
			t.Error("cpu.stat is negative")
		}
		if steal, irq, ok := parseCoreTimes(b, 0); ok && (steal < 0 || irq < 0) {
			t.Error("/proc/stat is negative")
		}
		if pid, ok := parseTgid(b); ok && pid <= 0 {
			t.Error("process", pid)
		}
		parseLines(b, 0, func(name string, n int64) {
			if n < 0 || name == "" {
				t.Error("line", name, n)
			}
		})
		parseMounts(b)
		if v1, v2 := parseCgroups(b); v1 != "" && v1[0] != '/' || v2 != "" && v2[0] != '/' {
			t.Error("groups", v1, v2)
		}
	})
}

// record returns a record of perf_event_open(2).
func record(kind uint32, misc uint16, words ...uint64) []byte {
	b := native.AppendUint32(nil, kind)
	b = native.AppendUint16(b, misc)
	b = native.AppendUint16(b, uint16(8+8*len(words)))
	for _, w := range words {
		b = native.AppendUint64(b, w)
	}
	return b
}

// ids packs a process and a thread, as records have them.
func ids(pid, tid uint32) uint64 {
	b := native.AppendUint32(native.AppendUint32(nil, pid), tid)
	return native.Uint64(b)
}

func TestParsePerf(t *testing.T) {
	for _, tt := range []struct {
		name string
		wide bool
		ring [][]byte
		want []event
		ok   bool
	}{
		{"own", false, [][]byte{
			record(perfSwitch, perfMiscOut|perfMiscPreempt, ids(1, 5), 100),
			record(perfSwitch, 0, ids(1, 5), 200),
			record(perfSwitch, perfMiscOut, ids(1, 5), 300),
			record(9, 0, 1, 2, 3),
			record(perfLost, 0, 1, 4),
		}, []event{
			{time: 100, kind: evOut, pid: -1, state: taskRunning, call: unknownCall},
			{time: 200, kind: evIn, pid: -1, call: unknownCall},
			{time: 300, kind: evOut, pid: -1, state: taskAsleep, call: unknownCall},
			{kind: evLost},
		}, true},
		{"core", true, [][]byte{
			record(perfSwitchWide, perfMiscOut|perfMiscPreempt, ids(7, 8), ids(1, 5), 100),
			record(perfSwitchWide, 0, ids(1, 5), ids(7, 8), 100),
			record(perfSwitchWide, perfMiscOut, ids(9, 9), ids(7, 8), 150),
			record(perfSwitchWide, 0, ids(9, 9), ids(1, 5), 200),
		}, []event{
			{time: 100, kind: evOut, pid: 8, state: taskRunning, call: unknownCall},
			{time: 150, kind: evOther, pid: 9, call: unknownCall},
			{time: 200, kind: evIn, pid: 9, call: unknownCall},
		}, true},
		{"cut off", false, [][]byte{record(perfSwitch, 0, ids(1, 5), 100)[:12]}, nil, false},
		{"no size", false, [][]byte{{14, 0, 0, 0, 0, 0, 0, 0}}, nil, false},
		{"no time", false, [][]byte{record(perfSwitch, 0)}, nil, false},
		{"core, no ids", true, [][]byte{record(perfSwitchWide, 0, 1)}, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []event
			ok := parsePerf(bytes.Join(tt.ring, nil), 5, tt.wide, func(e event) { got = append(got, e) })
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(event{})); diff != "" || ok != tt.ok {
				t.Errorf("%v (-want +got):\n%s", ok, diff)
			}
		})
	}
}

// FuzzPerf feeds records to the parser and what it finds to the joiner of spells.
func FuzzPerf(f *testing.F) {
	f.Add(record(perfSwitch, perfMiscOut, ids(1, 5), 100), false)
	f.Fuzz(func(t *testing.T, b []byte, wide bool) {
		w := newSwitches(0, func(int) string { return "" })
		parsePerf(b, 5, wide, w.add)
		spells, _, _, _ := w.between(0, 1<<62)
		it := Iteration{Start: 0, End: 1000}
		sum := time.Duration(0)
		for _, c := range Attribute(it, Evidence{Switches: true, Spells: spells}) {
			sum += c.Part
		}
		if sum > it.Duration() {
			t.Errorf("the parts add up to %v of %v", sum, it.Duration())
		}
	})
}
