package ovslog

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func example() *Event {
	at := time.Date(2026, 11, 30, 14, 49, 54, 194_000_000, time.UTC)
	return &Event{
		Origin:    Origin{Thread: "pmd-c01/id:8", Time: at, Seq: 425},
		Reasons:   []string{ReasonCycles, ReasonQueue},
		Iteration: 420424205,
		Duration:  6833,
		Began:     at.Add(-6_912_345 * time.Nanosecond),
		Causes:    "preempted by sh 95 %, page faults 3 %",
		Table: []Row{
			{Iteration: 420424206, Cycles: 2218},
			{Iteration: 420424205, Cycles: 15716010, Packets: 32, CyclesPerPacket: 491125, PacketsPerBatch: 32, QueueFill: 256, Upcalls: 1, CyclesPerUpcall: 152333},
			{Iteration: 420424204, Cycles: 123456789012345, Packets: 1, CyclesPerPacket: 123456789012345, PacketsPerBatch: 1},
		},
		Culprit:   1,
		HasHeader: true,
	}
}

func TestAppendGolden(t *testing.T) {
	for form, name := range []string{OneMessage: "one-message", TwoMessages: "two-messages"} {
		got := string(example().Append(nil, Form(form)))
		file := "testdata/" + name + ".txt"
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestOneMessageReadsPlain reads our own form as somebody would who knows Open
// vSwitch's only: a regular expression for the header, the first eight fields of
// lines for the rows.
func TestOneMessageReadsPlain(t *testing.T) {
	text := string(example().Append(nil, OneMessage))
	got := plainHeader.FindStringSubmatch(text)
	want := []string{"2026-11-30T14:49:54.194Z", "00425", "pmd-c01/id:8", "Excessive total cycles, Vhost RX queue full", "420424205", "6833"}
	if len(got) == 0 {
		t.Fatalf("the expression doesn't match:\n%s", text)
	}
	if diff := cmp.Diff(want, got[1:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rows := regexp.MustCompile(`(?m)^ +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+)\b`).FindAllString(text, -1)
	if len(rows) != 3 {
		t.Errorf("%d rows, want 3", len(rows))
	}
	if n := strings.Count(text, "|WARN|"); n != 1 {
		t.Errorf("%d messages, want 1", n)
	}
}

// TestBytes writes what was read from real logs and wants the same bytes.
func TestBytes(t *testing.T) {
	logs := samples(t)
	// Lines that are no event's, and unused places of the history.
	others := regexp.MustCompile(`(?m)^(\S+\|(INFO|ERR)\||\S+\|WARN\|(Dropped|failed|upcall_cb|netdev@)|   0  ).*\n`)
	for _, name := range names(logs) {
		if name == "g10" {
			continue // a console's times have no milliseconds
		}
		// Whole messages only: the samples end anywhere, and two have rows whose
		// table begins in the lines that were left out.
		events, _, _ := read(t, logs[name])
		var got []string
		for _, ev := range events {
			if !ev.HasHeader && ev.TableTime.IsZero() {
				continue
			}
			for line := range strings.Lines(string(ev.Append(nil, TwoMessages))) {
				got = append(got, line)
			}
		}
		want := make(map[string]int)
		for line := range strings.Lines(others.ReplaceAllString(logs[name], "")) {
			want[line]++
		}
		unknown := 0
		for _, line := range got {
			if want[line] == 0 {
				t.Errorf("%s: not in the log: %q", name, line)
				if unknown++; unknown > 5 {
					break
				}
			}
		}
		written := make(map[string]bool)
		for _, line := range got {
			written[line] = true
		}
		lost := 0
		for line := range want {
			if !written[line] {
				lost++
			}
		}
		// g01 has the rest of one table.
		if max := map[string]int{"g01": 4}[name]; lost > max {
			t.Errorf("%s: %d of %d lines not written", name, lost, len(want))
		}
	}
}

// TestAppendHostile wants text of others to stay in its place.
func TestAppendHostile(t *testing.T) {
	ev := example()
	ev.Thread = "a)|WARN|x\n"
	ev.Reasons = []string{"b): iter=1 duration=2 us\nSuspicious iteration (c"}
	for _, form := range []Form{OneMessage, TwoMessages} {
		events, _, _ := read(t, string(ev.Append(nil, form)))
		if len(events) != 1 || events[0].Iteration != ev.Iteration || events[0].Duration != ev.Duration || len(events[0].Table) != 3 {
			t.Errorf("form %d: got %d events: %+v", form, len(events), events)
		}
	}
}

func TestAppendEmpty(t *testing.T) {
	if b := new(Event).Append(nil, OneMessage); len(b) != 0 {
		t.Errorf("an event of nothing: %q", b)
	}
}
