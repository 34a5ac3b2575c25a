package pmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/perf"
)

// commandsPage returns the sections of docs/commands.md, by the usages in their
// headings.
func commandsPage(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]string)
	for _, s := range regexp.MustCompile(`(?m)^###? `).Split(string(page), -1) {
		heading, text, _ := strings.Cut(s, "\n")
		if usage, ok := strings.CutPrefix(heading, "`"); ok {
			sections[strings.TrimSuffix(usage, "`")] = text
		}
	}
	return sections
}

// TestDocs: the page for operators has every command with its usage and no other.
func TestDocs(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "pmd")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := appctl.Listen(appctl.Config{RunDir: dir, Name: "docs", Exit: func() {}}, Commands(new(perf.Registry), Options{})...)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := appctl.Dial(soon(t), s.SocketPath())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	list, err := c.Call(soon(t), "list-commands")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for line := range strings.Lines(list) {
		if usage, ok := strings.CutPrefix(line, "  "); ok { // and not the title
			want = append(want, strings.Join(strings.Fields(usage), " "))
		}
	}
	for usage := range commandsPage(t) {
		got = append(got, usage)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/commands.md (-registered +documented):\n%s", diff)
	}
}

// TestDocsExamples: the examples of JSON have no members that answers have not, and
// those of our own commands' texts have their columns.
func TestDocsExamples(t *testing.T) {
	t.Parallel()
	l := start(t, Options{}, perf.Detailed)
	l.loops[0].reload.Store(true)
	await(t, "there was a reload", func() bool {
		var v reloadsAnswer
		l.data(t, &v, "pmdperf/reloads")
		return v.Threads[1].Count > 0
	})
	example := regexp.MustCompile("(?s)\n```json\n(.*?)\n```\n")
	for usage, section := range commandsPage(t) {
		name, _, _ := strings.Cut(usage, " ")
		m := example.FindStringSubmatch(section)
		if !strings.Contains(name, "/") {
			if m != nil {
				t.Errorf("%s has no JSON form, but an example", name)
			}
			continue
		}
		if m == nil {
			t.Errorf("%s: no example of its JSON", name)
			continue
		}
		var answer any
		l.data(t, &answer, name)
		known := make(map[string]bool)
		members("", answer, known)
		// What doesn't occur in the lab is in the goldens.
		own, isOwn := strings.CutPrefix(name, "pmdperf/")
		goldens, err := filepath.Glob("testdata/" + own + "*.json")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range goldens {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var v any
			if err := json.Unmarshal(data, &v); err != nil {
				t.Fatal(err)
			}
			members("", v, known)
		}
		var v any
		if err := json.Unmarshal([]byte(m[1]), &v); err != nil {
			t.Errorf("%s: %v in the example", name, err)
			continue
		}
		documented := make(map[string]bool)
		members("", v, documented)
		for path := range documented {
			if !known[path] {
				t.Errorf("%s: the example has %s, answers have not", name, path)
			}
		}
		if isOwn && name != "pmdperf/events" { // which are none in the lab
			head, _, _ := strings.Cut(l.call(t, name), "\n")
			head, _, _ = strings.Cut(head, ": ") // and not the value, of pmdperf/clock
			if !strings.Contains(strings.Join(strings.Fields(section), " "), strings.Join(strings.Fields(head), " ")) {
				t.Errorf("%s: the example of its text lacks %q", name, head)
			}
		}
	}
}

// members adds the paths of all members of objects in v, say ".threads[].core".
func members(path string, v any, to map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			to[path+"."+name] = true
			members(path+"."+name, value, to)
		}
	case []any:
		for _, value := range v {
			members(path+"[]", value, to)
		}
	}
}
