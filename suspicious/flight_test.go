package suspicious

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the example in docs/flight-record.md anew")

const page = "../docs/flight-record.md"

// section returns the part of the page under a heading.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, after, ok := strings.Cut(text, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("no heading %q on the page", heading)
	}
	if i := strings.Index(after, "\n#"); i >= 0 {
		after = after[:i]
	}
	return after
}

// firstColumn returns the names in the first column of the table in a section.
func firstColumn(section string) (names []string) {
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") {
			cell, _, _ := strings.Cut(line[1:], "|")
			for _, m := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(cell, -1) {
				names = append(names, m[1])
			}
		}
	}
	return names
}

// The page describes every member, in its order, and no other; and all reasons.
func TestFlightPage(t *testing.T) {
	text := read(t, page)
	seen := make(map[reflect.Type]bool)
	var look func(reflect.Type)
	look = func(typ reflect.Type) {
		for typ.Kind() == reflect.Slice || typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if !strings.HasPrefix(typ.Name(), "Flight") && typ.Name() != "Cause" || seen[typ] {
			return
		}
		seen[typ] = true
		var want []string
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			want = append(want, name)
			look(typ.Field(i).Type)
		}
		if diff := cmp.Diff(want, firstColumn(section(t, text, "### "+typ.Name()))); diff != "" {
			t.Errorf("%s (-code +page):\n%s", typ.Name(), diff)
		}
	}
	look(reflect.TypeFor[FlightRecord]())
	if n := strings.Count(text, "\n### Flight") + strings.Count(text, "\n### Cause"); n != len(seen) || n < 5 {
		t.Errorf("%d kinds of object on the page, %d in the code", n, len(seen))
	}
	var reasons []string
	for r := range NumReasons {
		reasons = append(reasons, r.String())
	}
	if diff := cmp.Diff(reasons, firstColumn(section(t, text, "## Reasons"))); diff != "" {
		t.Errorf("reasons (-code +page):\n%s", diff)
	}
	var kinds []string
	for k := range NumCauseKinds {
		kinds = append(kinds, k.String())
	}
	if diff := cmp.Diff(kinds, firstColumn(section(t, text, "## Kinds of cause"))); diff != "" {
		t.Errorf("kinds of cause (-code +page):\n%s", diff)
	}
}

// The event on the page is what the code writes. -update writes it there.
func TestFlightExample(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flight")
	f := NewFile(FileConfig{Path: path})
	ToFlightRecord(f)(sample())
	line := read(t, path)
	if strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") {
		t.Fatalf("not one line: %q", line)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(line), "", "  "); err != nil {
		t.Fatal(err)
	}
	text := read(t, page)
	head, rest, _ := strings.Cut(text, "```json\n")
	got, tail, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("the page has no event")
	}
	if want := indented.String(); got != want {
		if *update {
			if err := os.WriteFile(page, []byte(head+"```json\n"+want+"```\n"+tail), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		t.Errorf("(-code +page):\n%s", cmp.Diff(want, got))
	}

	// What is read is what was written.
	var back FlightRecord
	if err := json.Unmarshal([]byte(line), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*sample().Flight(), back); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
}

// A line says how many before it could not be written.
func TestFlightLost(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	f := NewFile(FileConfig{Path: filepath.Join(dir, "flight")})
	sink := ToFlightRecord(f)
	sink(sample())
	sink(sample())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	sink(sample())
	var r FlightRecord
	if err := json.Unmarshal([]byte(read(t, filepath.Join(dir, "flight"))), &r); err != nil || r.Lost != 2 {
		t.Errorf("%d lost, %v", r.Lost, err)
	}
}
