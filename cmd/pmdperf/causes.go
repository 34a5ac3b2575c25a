package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/explain"
)

// causeCounts counts events by the cause that explains most. Any goroutine may use it.
type causeCounts struct {
	mu   sync.Mutex
	pmds map[string]map[string]uint64 // by name of the PMD and title of the cause
}

// causeCount is how many events of a PMD had a cause.
type causeCount struct {
	PMD    string `json:"pmd"`
	Cause  string `json:"cause"`
	Events uint64 `json:"events"`
}

// add counts a report; it is a suspicious.Sink.
func (c *causeCounts) add(r *suspicious.Report) {
	if len(r.Causes) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pmds == nil {
		c.pmds = make(map[string]map[string]uint64)
	}
	if c.pmds[r.Name] == nil {
		c.pmds[r.Name] = make(map[string]uint64)
	}
	c.pmds[r.Name][countedAs(r.Causes[0])]++
}

// countedAs returns the title of a cause without what differs from event to event.
func countedAs(c suspicious.Cause) string {
	switch c.Kind {
	case suspicious.CauseWork, suspicious.CauseUpcalls:
		c.Name = ""
	}
	return c.Title()
}

// list returns the counts by PMD, the most frequent cause first.
func (c *causeCounts) list() []causeCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []causeCount
	for _, pmd := range slices.Sorted(maps.Keys(c.pmds)) {
		for title, n := range c.pmds[pmd] {
			all = append(all, causeCount{pmd, title, n})
		}
	}
	slices.SortFunc(all, func(a, b causeCount) int {
		return cmp.Or(cmp.Compare(a.PMD, b.PMD), cmp.Compare(b.Events, a.Events), cmp.Compare(a.Cause, b.Cause))
	})
	return all
}

// showCauses writes the counts, a line for every PMD that has some.
func showCauses(w io.Writer, counts []causeCount) {
	for i, c := range counts {
		switch {
		case i == 0:
			fmt.Fprintf(w, "%s: events by cause: ", c.PMD)
		case c.PMD != counts[i-1].PMD:
			fmt.Fprintf(w, "\n%s: events by cause: ", c.PMD)
		default:
			fmt.Fprint(w, "; ")
		}
		fmt.Fprintf(w, "%s %d", c.Cause, c.Events)
	}
	if len(counts) > 0 {
		fmt.Fprintln(w)
	}
}

// announce says which probes run, and which don't and why. Loops with the same are
// named together.
func announce(all []explain.Status, say func(string)) {
	var names []string
	for i, s := range all {
		names = append(names, s.Name)
		if i+1 < len(all) && slices.Equal(s.Probes, all[i+1].Probes) && fmt.Sprint(s.Err) == fmt.Sprint(all[i+1].Err) {
			continue
		}
		var run, off []string
		for _, p := range s.Probes {
			switch {
			case p.Runs:
				what, _, _ := strings.Cut(p.Probe, " (")
				run = append(run, what)
			case !strings.HasPrefix(p.Why, "not needed"):
				off = append(off, p.String())
			}
		}
		if s.Err != nil {
			off = append(off, s.Err.Error())
		}
		if len(run) == 0 {
			run = []string{"none"}
		}
		say(fmt.Sprintf("probes of %s: %s", strings.Join(names, " and "), strings.Join(run, ", ")))
		for _, o := range off {
			say("no probe of " + o)
		}
		names = nil
	}
}
