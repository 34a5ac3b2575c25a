package prom

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of metrics into docs/metrics.md")

// table returns the list of metrics in Markdown.
func table(prefix string, wanted func(*family) bool) string {
	var b strings.Builder
	b.WriteString("| name | type | labels | what |\n|---|---|---|---|\n")
	for i := range families {
		f := &families[i]
		if !wanted(f) {
			continue
		}
		var labels []string
		for _, l := range f.labels {
			labels = append(labels, "`"+l+"`")
		}
		fmt.Fprintf(&b, "| `%s%s` | %v | %s | %s |\n", prefix, f.name, f.kind, strings.Join(labels, " "), f.help)
	}
	return b.String()
}

// TestDocs compares the lists of metrics in docs/metrics.md with the code.
func TestDocs(t *testing.T) {
	const path = "../../docs/metrics.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, list := range []struct{ name, want string }{
		{"pmd", table(prefixPMD, func(*family) bool { return true })},
		{"main", table(prefixMain, func(f *family) bool { return f.main })},
	} {
		begin, end := "<!-- list "+list.name+" -->\n", "<!-- end -->\n"
		head, rest, ok := strings.Cut(text, begin)
		got, tail, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("no %q ... %q in the page", begin, end)
		}
		if *update {
			text = head + begin + list.want + end + tail
		} else if diff := cmp.Diff(got, list.want); diff != "" {
			t.Errorf("list %s (-page +code; -update writes it):\n%s", list.name, diff)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
