package ovslog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/internal/mangle"
	"github.com/pmdperf/pmdperf/internal/need"
)

// manglings are those of package mangle, and writing the log anew as our recorder would.
func manglings() []mangle.Mangling {
	return append(mangle.All(), mangle.Mangling{Name: "own-form", Do: toOwnForm, NoPrefix: true})
}

// toOwnForm writes the events as our own recorder would.
func toOwnForm(s string) string {
	r := NewReader(strings.NewReader(s))
	var b []byte
	for rec := range r.Records() {
		if ev, ok := rec.(*Event); ok {
			ev.Began = ev.Time
			ev.Causes = "preempted by sh 93 %, blocked in system call ppoll 7 %"
			b = ev.Append(b, OneMessage)
		}
	}
	return string(b)
}

// essence is what must be the same whatever was done to a log, in a line of text an
// event.
func essence(t testing.TB, text string, noPrefix bool) []string {
	t.Helper()
	events, _, _ := read(t, text)
	var all []string
	for _, ev := range events {
		var b strings.Builder
		if !noPrefix {
			fmt.Fprintf(&b, "%s %s %d ", ev.Thread, ev.Time.Format(stampLayout), ev.Seq)
		}
		fmt.Fprint(&b, ev.HasHeader, " ", ev.Reasons, ev.Iteration, " ", ev.Duration, " ", ev.Culprit, ev.Table)
		all = append(all, b.String())
	}
	slices.Sort(all)
	return all
}

// excerpts returns beginnings of samples that are short but have all shapes.
func excerpts(t testing.TB) map[string]string {
	logs := samples(t)
	for name, text := range logs {
		const lines = 60
		n := 0
		for i := range text {
			if text[i] == '\n' {
				if n++; n >= lines && strings.HasPrefix(text[i+1:], "2026-") && strings.Contains(text[i:min(len(text), i+100)], "Suspicious") {
					logs[name] = text[:i+1]
					break
				}
			}
		}
	}
	return logs
}

func TestManglings(t *testing.T) {
	logs := samples(t)
	if !need.Long() {
		logs = excerpts(t)
	}
	for _, m := range manglings() {
		t.Run(m.Name, func(t *testing.T) {
			for _, name := range names(logs) {
				text := logs[name]
				want := essence(t, text, m.NoPrefix)
				got := essence(t, m.Do(text), m.NoPrefix)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%.1500s", name, diff)
				}
			}
		})
	}
}

// TestPairs does everything after everything else: to beginnings of all samples in
// the long version; to that of one, and only some of the pairs, in the short.
func TestPairs(t *testing.T) {
	logs := excerpts(t)
	if !need.Long() {
		for _, name := range names(logs) {
			if name != "two-pmds" {
				delete(logs, name)
			}
		}
	}
	const every = 4 // a quarter of the pairs
	for i, a := range manglings() {
		for k, b := range manglings() {
			if !need.Long() && (i+k)%every != 0 {
				continue
			}
			if !mangle.Possible(a, b) {
				continue
			}
			t.Run(a.Name+"/"+b.Name, func(t *testing.T) {
				for _, name := range names(logs) {
					text := logs[name]
					want := essence(t, text, a.NoPrefix || b.NoPrefix)
					got := essence(t, b.Do(a.Do(text)), a.NoPrefix || b.NoPrefix)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s (-want +got):\n%.1500s", name, diff)
					}
				}
			})
		}
	}
}
