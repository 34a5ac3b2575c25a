package ovslog

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestParseStamp(t *testing.T) {
	at := time.Date(2026, 11, 30, 14, 49, 54, 194_000_000, time.UTC)
	second := at.Truncate(time.Second)
	for text, want := range map[string]time.Time{
		"2026-11-30T14:49:54.194Z|":            at,
		"2026-11-30 14:49:54,194 ":             at,
		"2026-11-30T14:49:54Z":                 second,
		"2026-11-30T16:49:54.194+02:00 host":   at,
		"2026-11-30T08:19:54.194-0630":         at,
		"2026-11-30T14:49:54.194000000Z":       at,
		"Nov 30 14:49:54 host":                 time.Date(0, 11, 30, 14, 49, 54, 0, time.UTC),
		"Jan  2 03:04:05":                      time.Date(0, 1, 2, 3, 4, 5, 0, time.UTC),
		"2026-11-30T14:49:54.1940000000000001": at,
	} {
		if got, _, ok := parseStamp([]byte(text)); !ok || !got.Equal(want) {
			t.Errorf("%q: %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "2026-13-30T14:49:54Z", "2026-11-30T24:49:54Z", "Foo 30 14:49:54", "anF 30 14:49:54", "2026-11-30T14:4", "2026/11/30T14:49:54Z"} {
		if got, _, ok := parseStamp([]byte(text)); ok {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestNotRows has eight numbers that are no row of a table.
func TestNotRows(t *testing.T) {
	head := header2("pmd-c00/id:6", "10:00:00.000", 1, 100, 300) + "2026-11-30T10:00:00.000Z|00002|pmd_perf(pmd-c00/id:6)|WARN|" + neighborhood + "\n" + heading + "\n"
	for _, line := range []string{
		"   100 5000 10 499 10 0 0 0",                    // 500 cycles a packet
		"   100 5000 0 3 0 0 0 0",                        // without packets
		"   100 5000 10 500 11 0 0 0",                    // more packets in a batch than there are
		"   100 5000 10 500 10 0 0 7",                    // without upcalls
		"   12 100 5000 10 500 10 0 0 0",                 // nine
		"   100 5000 10 500 10 0 0",                      // seven
		"   100 5000 10 500 10 0 0 0x",                   // hexadecimal
		"   100 5000 10 500 10 0 0 99999999999999999999", // 67 bits
		"   got 3 of 100 5000 10 500 10 0 0 0 and no more",
	} {
		events, _, stats := read(t, head+line+"\n")
		if len(events) != 1 || len(events[0].Table) > 0 || stats.Unread != 1 {
			t.Errorf("%q: %+v %+v", line, events, stats)
		}
	}
	events, _, stats := read(t, head+"   100 5000 10 500 10 0 0 0\n")
	if len(events) != 1 || len(events[0].Table) != 1 || events[0].Culprit != 0 {
		t.Errorf("a row: %+v", stats)
	}
}

// TestParseRow compares the short way with the long one.
func TestParseRow(t *testing.T) {
	row := Row{Iteration: 12345678901234567, Cycles: 1234567890, Packets: 32, CyclesPerPacket: 38580246, PacketsPerBatch: 32, QueueFill: 256, Upcalls: 7, CyclesPerUpcall: 1000000}
	text := row.append(nil)
	var got Row
	if ok := parseRow(text, &got); !ok || got != row {
		t.Errorf("%q: %+v, %v", text, got, ok)
	}
	for i := range text {
		for _, c := range []byte("x\n-") {
			bad := append([]byte(nil), text...)
			bad[i] = c
			if parseRow(bad, &got) {
				t.Fatalf("%q: %+v", bad, got)
			}
		}
	}
	if parseRow(text[:len(text)-1], &got) {
		t.Error("a shorter row")
	}
}

// TestColumns reads numbers of every length, and with every character spoilt.
func TestColumns(t *testing.T) {
	const digits = "9081726354123456789"
	check := func(name string, width int, parse func(b []byte) (uint64, bool)) {
		for n := range width {
			text := []byte(digits[:min(n, len(digits))] + strings.Repeat(" ", width))[:width]
			want, err := strconv.ParseUint(strings.TrimRight(string(text), " "), 10, 64)
			if got, ok := parse(text); ok != (err == nil) || got != want && ok {
				t.Errorf("%s: %q is %d, %v, want %d", name, text, got, ok, want)
			}
			for i := range text {
				for _, c := range []byte{'x', '\n', '/', ':', 0, 0x10, 0x80, 0xb0, 0xff, ' ', '7'} {
					bad := append([]byte(nil), text...)
					bad[i] = c
					_, err := strconv.ParseUint(strings.TrimRight(string(bad), " "), 10, 64)
					if _, ok := parse(bad); ok != (err == nil && bad[width-1] == ' ') {
						t.Errorf("%s: %q: %v", name, bad, ok)
					}
				}
			}
		}
	}
	check("column", 13, func(b []byte) (uint64, bool) { return parseColumn((*[13]byte)(b)) })
	check("wide column", 20, func(b []byte) (uint64, bool) { return parseWide((*[20]byte)(b)) })
}

// TestNoTime has messages without a time follow lines that have one, which were not wrapped
// off them.
func TestNoTime(t *testing.T) {
	for _, before := range []string{
		"[2024-05-01 10:00:00] step one",
		"2024-05-01T10:00:00.000Z|00010|pmd_perf(pmd-c01/id:8)|WARN|Suspicious iteration (Excessive total cycles): iter=5 dur",
		"2024-05-01T10:00:00.000Z|00011|bridge|INFO|",
	} {
		text := before + "\n00012|dpif_netdev|INFO|There are 2 pmd threads on numa node 1\n"
		var got []Record
		r := NewReader(strings.NewReader(text))
		for rec := range r.Records() {
			got = append(got, rec)
		}
		if len(got) != 1 {
			t.Errorf("after %q: %d records, want 1; lost %v", before, len(got), r.Stats().Lost)
			continue
		}
		if n, ok := got[0].(*Threads); !ok || n.Count != 2 || n.NUMA != 1 || n.Seq != 12 || n.Line != 2 || !n.Time.IsZero() {
			t.Errorf("after %q: %+v", before, got[0])
		}
	}
}
