package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pmdperf/pmdperf/suspicious/investigate"
)

// captures are the directories that the examples' files are copies of.
func captures() []string {
	return []string{"testdata/investigate", "../../suspicious/ovslog/testdata/logs", "../../export/ovs/testdata/ovs-3.1"}
}

func capture(t *testing.T, name string) []byte {
	t.Helper()
	for _, dir := range captures() {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			return b
		}
	}
	t.Fatalf("%s is in none of %v", name, captures())
	return nil
}

// An example of the cookbook.
type example struct {
	line  int
	files []string // "name=capture"
	block []string // a command, and what it prints, with "..." for what is left out
}

func examples(text string) (all []example) {
	files := regexp.MustCompile(`^<!-- files: (.*) -->$`)
	var next *example
	inside := false
	for i, line := range strings.Split(text, "\n") {
		switch m := files.FindStringSubmatch(line); {
		case m != nil:
			next = &example{line: i + 1, files: strings.Fields(m[1])}
		case line == "```console":
			inside = true
			if next == nil {
				next = &example{line: i + 1}
			}
		case inside && line == "```":
			all = append(all, *next)
			next, inside = nil, false
		case inside:
			next.block = append(next.block, line)
		}
	}
	return all
}

// missing returns the first line of a block that isn't in the output, where it should be:
// right after the one before, or later if "..." is between them.
func missing(block []string, output string) string {
	lines := strings.Split(output, "\n")
	skip := false
	for _, want := range block {
		if want == "..." {
			skip = true
			continue
		}
		i := slices.IndexFunc(lines, func(s string) bool { return strings.TrimRight(s, " ") == want })
		if i < 0 || i > 0 && !skip {
			return want
		}
		lines, skip = lines[i+1:], false
	}
	return ""
}

// TestCookbook runs every command of the cookbook and looks for what should be looked for.
func TestCookbook(t *testing.T) {
	text, err := os.ReadFile("../../docs/drop-investigation.md")
	if err != nil {
		t.Fatal(err)
	}
	all := examples(string(text))
	if n := strings.Count(string(text), "```console"); len(all) != n || n < 15 {
		t.Fatalf("%d examples, want %d, and 15 or more", len(all), n)
	}
	for _, e := range all {
		dir := t.TempDir()
		for _, f := range e.files {
			name, from, _ := strings.Cut(f, "=")
			if err := os.WriteFile(filepath.Join(dir, name), capture(t, from), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		command, ok := strings.CutPrefix(e.block[0], "$ pmdperf ")
		if !ok || len(e.files) == 0 {
			t.Errorf("line %d: %q with files %v", e.line, e.block[0], e.files)
			continue
		}
		t.Run(e.files[0], func(t *testing.T) {
			t.Chdir(dir)
			var stdout, stderr bytes.Buffer
			if status := run(strings.Fields(command), strings.NewReader(""), &stdout, &stderr); status != 0 || stderr.Len() > 0 {
				t.Fatalf("line %d: status %d: %s", e.line, status, &stderr)
			}
			if line := missing(e.block[1:], stdout.String()); line != "" {
				t.Errorf("line %d: %q is not where it should be in\n%s", e.line, line, &stdout)
			}
		})
	}
}

// TestInvestigationFits wants what is printed without --all to fit a screen.
func TestInvestigationFits(t *testing.T) {
	const screen = 60
	files, err := filepath.Glob("../../suspicious/ovslog/testdata/logs/*.log")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, name := range files {
		var stdout, stderr bytes.Buffer
		if status := run([]string{"investigate", name}, strings.NewReader(""), &stdout, &stderr); status != 0 {
			t.Errorf("%s: status %d: %s", name, status, &stderr)
		}
		if n := strings.Count(stdout.String(), "\n"); n > screen {
			t.Errorf("%s: %d lines", name, n)
		}
		if strings.Contains(stdout.String(), "\x1b") {
			t.Errorf("%s: colours, but no terminal", name)
		}
	}
}

// TestInvestigateDocs wants every member of the JSON to be described.
func TestInvestigateDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/investigate-json.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]string) // by heading
	for part := range strings.SplitSeq(string(text), "\n### ") {
		name, body, _ := strings.Cut(part, "\n")
		sections[name] = body
	}
	seen := make(map[reflect.Type]bool)
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		for typ.Kind() == reflect.Slice || typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] || !strings.HasSuffix(typ.PkgPath(), "/suspicious/investigate") {
			return
		}
		seen[typ] = true
		body, ok := sections[typ.Name()]
		if !ok {
			t.Errorf("no section %q", typ.Name())
		}
		for _, f := range reflect.VisibleFields(typ) {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous || tag == "" || tag == "-" {
				continue
			}
			if !strings.Contains(body, "`"+tag+"`") {
				t.Errorf("%s: %q is not described", typ.Name(), tag)
			}
			visit(f.Type)
		}
	}
	visit(reflect.TypeFor[investigate.Result]())
	for _, k := range investigate.Kinds() {
		if !strings.Contains(sections["Kinds of finding"], "| `"+string(k)+"` |") {
			t.Errorf("kind %q is not described", k)
		}
	}
}
