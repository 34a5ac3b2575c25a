package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the page")

// TestPage wants docs/results.md to be what docs/results makes it.
func TestPage(t *testing.T) {
	const name = "../../docs/results.md"
	var got bytes.Buffer
	if err := run([]string{"../../docs/results"}, &got); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(name, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s is not what docs/results makes it: 'go run ./internal/results docs/results >docs/results.md' (-want +got):\n%s", name, diff)
	}
}

// TestPublished: every figure that others published has its place on the page.
func TestPublished(t *testing.T) {
	page, err := os.ReadFile("../../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(page), "\n")
	has := func(parts ...string) bool {
		for _, l := range lines {
			ok := true
			for _, p := range parts {
				ok = ok && strings.Contains(l, "| "+p+" |")
			}
			if ok {
				return true
			}
		}
		return false
	}
	for cell, change := range overheadPublished() {
		if !has(cell[0], cell[1], "detailed", change) {
			t.Errorf("overhead: nothing of %v, %s", cell, change)
		}
	}
	for _, p := range reloadPublished {
		if !has(p.scheme, p.min, p.average, p.max) {
			t.Errorf("reload: nothing of %+v", p)
		}
	}
	for traffic, change := range profilesPublished() {
		if !has(traffic, "VXLAN", change) {
			t.Errorf("profiles: nothing of %s, %s", traffic, change)
		}
	}
	for cell, change := range vhostPublished() {
		if !has(cell[0], cell[1], "own", change) {
			t.Errorf("vhost: nothing of %v, %s", cell, change)
		}
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		name, text, want string
	}{
		{"", "", "has no results"},
		{"overhead", "{", "overhead.json: a report of an experiment"},
		{"overhead", `{"version":1,"experiment":"reload"}`, "it is of experiment reload"},
		{"self", `{"version":2,"experiment":"self"}`, "want version 1"},
		{"causes", `[]`, "causes.json"},
	} {
		if tt.name != "" {
			path := filepath.Join(dir, tt.name+".json")
			if err := os.WriteFile(path, []byte(tt.text), 0o644); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(path)
		}
		var out bytes.Buffer
		if err := run([]string{dir}, &out); err == nil || !strings.Contains(err.Error(), tt.want) || out.Len() > 0 {
			t.Errorf("%+v: got %v, %q", tt, err, &out)
		}
		if tt.name != "" {
			os.Remove(filepath.Join(dir, tt.name+".json"))
		}
	}
	if run(nil, new(bytes.Buffer)) == nil {
		t.Error("no directory is accepted")
	}
}

// TestCauses: the table of causes has a row for each, tried or not.
func TestCauses(t *testing.T) {
	dir := t.TempDir()
	const doc = `{"user":true,"rows":[{"provocation":"nanosleep","made":100,"named":99,"first":98,"wrong":1,"share":0.875},{"provocation":"steal","skipped":"no hypervisor"}]}`
	if err := os.WriteFile(filepath.Join(dir, "causes.json"), []byte(doc), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{dir}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"the probes of an ordinary user", "| nanosleep | 100 | 99 | 98 | 1 | 87.5 |", "| steal (not tried: no hypervisor) |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
}
