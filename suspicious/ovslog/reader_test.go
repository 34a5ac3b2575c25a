package ovslog

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// samples returns real logs by name.
func samples(t testing.TB) map[string]string {
	t.Helper()
	names, err := filepath.Glob("testdata/logs/*.log")
	if err != nil || len(names) < 20 {
		t.Fatalf("sample logs: %d, %v", len(names), err)
	}
	m := make(map[string]string)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		m[strings.TrimSuffix(filepath.Base(name), ".log")] = string(text)
	}
	return m
}

func names[V any](m map[string]V) []string {
	var s []string
	for name := range m {
		s = append(s, name)
	}
	slices.Sort(s)
	return s
}

// read returns all events and all other records of a log.
func read(t testing.TB, text string) ([]*Event, []Record, Stats) {
	t.Helper()
	r := NewReader(strings.NewReader(text))
	var events []*Event
	var others []Record
	for rec := range r.Records() {
		if ev, ok := rec.(*Event); ok {
			events = append(events, ev.Clone())
		} else {
			others = append(others, rec)
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return events, others, r.Stats()
}

// plainHeader is what somebody writes who has read about the format.
var plainHeader = regexp.MustCompile(`(?m)^(\S+)\|(\d+)\|pmd_perf\((pmd-c\d+/id:\d+)\)\|WARN\|Suspicious iteration \(([^)]*)\): iter=(\d+) duration=(\d+) us`)

var plainTable = regexp.MustCompile(`(?m)^(\S+)\|(\d+)\|pmd_perf\((pmd-c\d+/id:\d+)\)\|WARN\|Neighborhood of suspicious iteration:\n +iter.*\n((?: +\d.*\n?)*)`)

// count reads a log that nothing was done to with regular expressions, and returns
// headers and tables in lines of text.
func count(text string) (headers, tables []string) {
	for _, m := range plainHeader.FindAllStringSubmatch(text, -1) {
		seq, _ := strconv.Atoi(m[2])
		headers = append(headers, fmt.Sprint(m[1], seq, m[3:]))
	}
	for _, m := range plainTable.FindAllStringSubmatch(text, -1) {
		if m[4] == "" {
			continue
		}
		seq, _ := strconv.Atoi(m[2])
		who := fmt.Sprint(m[1], seq, m[3])
		var fields []string
		last := -1
		for row := range strings.Lines(m[4]) {
			f := strings.Fields(row)
			iter, _ := strconv.Atoi(f[0])
			if iter == 0 {
				continue // an unused place
			}
			if last >= 0 && iter > last { // the lines before it, and its table's first, are missing
				tables = append(tables, who+fmt.Sprint(fields))
				who, fields = "0001-01-01T00:00:00.000Z0", nil
			}
			last = iter
			fields = append(fields, f...)
		}
		tables = append(tables, who+fmt.Sprint(fields))
	}
	return headers, tables
}

// told returns events as count does.
func told(events []*Event) (headers, tables []string) {
	stamp := func(ev *Event) string {
		s := ev.Time.Format(stampLayout)
		return s
	}
	seen := make(map[int]bool)
	for _, ev := range events {
		if ev.HasHeader {
			headers = append(headers, fmt.Sprint(stamp(ev), int(ev.Seq), []string{ev.Thread, strings.Join(ev.Reasons, ", "), fmt.Sprint(ev.Iteration), fmt.Sprint(ev.Duration)}))
		}
		if len(ev.Table) > 0 && !seen[ev.TableLine] {
			seen[ev.TableLine] = true
			var fields []string
			for _, r := range ev.Table {
				for _, v := range []uint64{r.Iteration, r.Cycles, r.Packets, r.CyclesPerPacket, r.PacketsPerBatch, r.QueueFill, r.Upcalls, r.CyclesPerUpcall} {
					fields = append(fields, fmt.Sprint(v))
				}
			}
			tables = append(tables, fmt.Sprint(ev.TableTime.Format(stampLayout), int(ev.TableSeq), ev.Thread, fields))
		}
	}
	return headers, tables
}

// TestSamples compares what the reader makes of real logs with an independent
// count.
func TestSamples(t *testing.T) {
	logs := samples(t)
	for _, name := range names(logs) {
		t.Run(name, func(t *testing.T) {
			text := logs[name]
			if name == "g10" { // a console's times have no milliseconds
				text = regexp.MustCompile(`(?m)^(\S{19})Z`).ReplaceAllString(text, "$1.000Z")
			}
			wantHeaders, wantTables := count(text)
			events, _, stats := read(t, logs[name])
			gotHeaders, gotTables := told(events)
			// Threads of several cores are told when their tables end.
			for _, s := range [][]string{wantHeaders, wantTables, gotHeaders, gotTables} {
				slices.Sort(s)
			}
			if diff := cmp.Diff(wantHeaders, gotHeaders); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(wantTables, gotTables); diff != "" {
				t.Errorf("tables (-want +got):\n%s", diff)
			}
			if len(wantHeaders) != strings.Count(text, "Suspicious iteration (") {
				t.Errorf("the count counts %d headers", len(wantHeaders))
			}
			var joined, apart int
			for _, ev := range events {
				switch i := slices.IndexFunc(ev.Table, func(r Row) bool { return r.Iteration == ev.Iteration }); {
				case ev.HasHeader && i != ev.Culprit:
					t.Errorf("iteration %d: culprit %d, want %d", ev.Iteration, ev.Culprit, i)
				case ev.HasHeader && i >= 0:
					joined++
				default:
					apart++
				}
			}
			t.Logf("%d with header and table, %d with one of them; %+v", joined, apart, stats)
			for _, l := range stats.Lost {
				t.Errorf("line %d is not read: %q", l.Line, l.Text)
			}
		})
	}
}

// TestOwnForm reads what it writes, in both forms.
func TestOwnForm(t *testing.T) {
	logs := samples(t)
	for _, name := range names(logs) {
		events, _, _ := read(t, logs[name])
		for form, form2 := range []Form{OneMessage, TwoMessages} {
			var text []byte
			for i, ev := range events {
				if ev.Time.IsZero() && form2 == OneMessage {
					continue // a table without header stays as it was
				}
				if form2 == OneMessage {
					ev = ev.Clone()
					ev.Began = ev.Time.Add(-1234567)
					ev.Began = ev.Began.Truncate(1000)
					if i%2 == 0 {
						ev.Causes = "preempted by sh 93 %, blocked in system call ppoll 7 %"
					}
					events[i].Began, events[i].Causes = ev.Began, ev.Causes
				}
				text = ev.Append(text, form2)
			}
			again, _, stats := read(t, string(text))
			want := slices.Clone(events)
			if form2 == OneMessage {
				want = slices.DeleteFunc(want, func(ev *Event) bool { return ev.Time.IsZero() })
			}
			ignore := cmpopts.IgnoreFields(Event{}, "TableTime", "TableSeq", "TableLine", "Line")
			if form2 == TwoMessages {
				ignore = cmpopts.IgnoreFields(Event{}, "TableLine", "Line", "Began", "Causes")
			}
			if diff := cmp.Diff(want, again, ignore, cmpopts.SortSlices(byPlace)); diff != "" {
				t.Errorf("%s, form %d (-want +got):\n%.3000s", name, form, diff)
			}
			if stats.Unread > 0 {
				t.Errorf("%s, form %d: %+v", name, form, stats)
			}
		}
	}
}

func byPlace(a, b *Event) bool {
	first := func(e *Event) uint64 {
		if e.HasHeader {
			return e.Iteration
		}
		return e.Table[0].Iteration
	}
	return first(a) < first(b)
}
