package evidence

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/internal/mangle"
	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/suspicious/investigate"
)

const logs = "../../suspicious/ovslog/testdata/logs"

func log(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(logs, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// names returns the names of all captured logs.
func names(t testing.TB) (all []string) {
	t.Helper()
	files, err := filepath.Glob(logs + "/*.log")
	if err != nil || len(files) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	for _, f := range files {
		all = append(all, strings.TrimSuffix(filepath.Base(f), ".log"))
	}
	return all
}

// investigated returns the result for a text on standard input.
func investigated(t testing.TB, text string) *investigate.Result {
	t.Helper()
	c := &Collector{Case: investigate.NewCase(), Stdin: strings.NewReader(text)}
	if err := c.Add(t.Context(), "-"); err != nil {
		t.Fatal(err)
	}
	return c.Case.Result()
}

// essence is what must be the same whatever was done to a log: all that doesn't name
// lines. Without prefixes threads, times and numbers are gone, and what follows from
// them.
func essence(r *investigate.Result, noPrefix bool) []string {
	var all []string
	for _, s := range r.Stalls {
		if noPrefix {
			// Without threads there is one clock for all.
			s.Neighborhood = slices.Clone(s.Neighborhood)
			for i := range s.Neighborhood {
				s.Neighborhood[i].Micros = 0
			}
			if !s.Reported {
				continue
			}
		}
		line := fmt.Sprint("stall ", s.Iteration, " ", s.Micros, " ", s.Cycles, s.Packets, s.Upcalls, s.Fill, s.Reported, s.Reasons, s.Known, s.Culprit, s.Neighborhood)
		if !noPrefix {
			line += fmt.Sprint(" ", s.Thread, s.Core, s.Epoch, s.Time, s.Kind, s.Lost, s.Loss)
		}
		all = append(all, line)
	}
	slices.Sort(all)
	for i, f := range r.Findings {
		if noPrefix {
			if i == 0 {
				all = append(all, fmt.Sprint("finding ", f.Kind))
			}
			continue
		}
		all = append(all, fmt.Sprint("finding ", f.Kind, f.Title, f.Threads, f.Confidence, f.Because, f.Lost, f.Count, f.Text, f.Loss, f.Next))
		for _, e := range f.Evidence {
			all = append(all, "evidence "+e.Text)
		}
	}
	if noPrefix {
		return all
	}
	for _, p := range r.PMDs {
		h := p.Lengths
		p.Lengths = nil
		all = append(all, fmt.Sprintf("PMD %v %v", p, h))
	}
	for _, th := range r.Thresholds {
		th.Place = investigate.Place{}
		all = append(all, fmt.Sprintf("threshold %v", th))
	}
	return append(all, fmt.Sprint(r.From, r.To))
}

// compare investigates what was done to a log, whose own essence is want.
func compare(t *testing.T, name string, want []string, mangled string, noPrefix bool) {
	t.Helper()
	got := essence(investigated(t, mangled), noPrefix)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%.2500s", name, diff)
	}
}

// TestManglings does everything to a log that people and programs do.
func TestManglings(t *testing.T) {
	some := []string{"two-pmds", "upcalls-dpctl-del", "vhost-txonly", "idle-sigstop", "g07"}
	if need.Long() {
		some = names(t)
	}
	for _, m := range mangle.All() {
		t.Run(m.Name, func(t *testing.T) {
			for _, name := range some {
				text := log(t, name)
				compare(t, name, essence(investigated(t, text), m.NoPrefix), m.Do(text), m.NoPrefix)
			}
		})
	}
}

// excerpt returns the beginning of a log, up to a header.
func excerpt(text string) string {
	const lines = 60
	n := 0
	for i := range text {
		if text[i] != '\n' {
			continue
		}
		n++
		if line, _, _ := strings.Cut(text[i+1:], "\n"); n >= lines && strings.Contains(line, "|Suspicious") {
			return text[:i+1]
		}
	}
	return text
}

// TestPairs does everything after everything else; in the short version only some of
// the pairs, to one short log; else to the beginnings of all logs and to some whole ones.
func TestPairs(t *testing.T) {
	const every = 16
	texts := map[string]string{"idle-sigstop": log(t, "idle-sigstop")}
	if need.Long() {
		for _, name := range names(t) {
			texts["beginning of "+name] = excerpt(log(t, name))
		}
		for _, name := range []string{"two-pmds", "upcalls-500flows", "busy-null-fwd"} {
			texts[name] = log(t, name)
		}
	}
	wants := make(map[string][2][]string) // with prefixes and without
	for name, text := range texts {
		r := investigated(t, text)
		wants[name] = [2][]string{essence(r, false), essence(r, true)}
	}
	for i, a := range mangle.All() {
		for k, b := range mangle.All() {
			if !mangle.Possible(a, b) || !need.Long() && (i+k)%every != 0 {
				continue
			}
			t.Run(a.Name+"/"+b.Name, func(t *testing.T) {
				for name, text := range texts {
					want, noPrefix := wants[name][0], a.NoPrefix || b.NoPrefix
					if noPrefix {
						want = wants[name][1]
					}
					compare(t, name, want, b.Do(a.Do(text)), noPrefix)
				}
			})
		}
	}
}
