package ovs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readCaptures returns the texts of real outputs of OVS 3.1 by file name, of those
// whose name ends in suffix.
func readCaptures(t testing.TB, command string) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/ovs-3.1/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	texts := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if commandOf(f) == command {
			texts[strings.TrimSuffix(filepath.Base(f), ".txt")] = string(text)
		}
	}
	if len(texts) == 0 {
		t.Fatalf("no captures of %s", command)
	}
	return texts
}

// commandOf tells from a capture's file name which command printed it.
func commandOf(file string) string {
	switch {
	case strings.Contains(file, "stats"):
		return "pmd-stats-show"
	case strings.Contains(file, ".rxq."):
		return "pmd-rxq-show"
	}
	return "pmd-perf-show"
}

// A parsed capture written again is the capture, and every line of it was read.
func TestCapturesRoundTrip(t *testing.T) {
	parsers := map[string]func(string) (string, []Line, error){
		"pmd-perf-show": func(s string) (string, []Line, error) {
			r, err := ParsePerf(s)
			if err != nil {
				return "", nil, err
			}
			return r.String(), r.Unread, nil
		},
		"pmd-stats-show": func(s string) (string, []Line, error) {
			r, err := ParseStats(s)
			if err != nil {
				return "", nil, err
			}
			return r.String(), r.Unread, nil
		},
		"pmd-rxq-show": func(s string) (string, []Line, error) {
			r, err := ParseRxq(s)
			if err != nil {
				return "", nil, err
			}
			return r.String(), r.Unread, nil
		},
	}
	total := 0
	for command, parse := range parsers {
		for name, want := range readCaptures(t, command) {
			total++
			got, unread, err := parse(want)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if len(unread) > 0 {
				t.Errorf("%s: unread lines: %v", name, unread)
			}
			if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("%s: written again it differs (-want +got):\n%s", name, diff)
			}
		}
	}
	if total != 63 {
		t.Errorf("%d captures read, want 63", total)
	}
}
