package observe

import (
	"fmt"
	"strings"
	"time"

	"github.com/pmdperf/pmdperf/internal/human"
	"github.com/pmdperf/pmdperf/suspicious/cause"
)

// stamp is how times are written: in UTC, as Open vSwitch's log has them.
const stamp = "2006-01-02T15:04:05.000000Z"

func short(d time.Duration) string { return human.Duration(d.Seconds()) }

func onCore(core int) string {
	if core < 0 {
		return "on any core"
	}
	return fmt.Sprintf("on core %d", core)
}

// String returns the record as a line of text.
func (t *Thread) String() string {
	if !t.Watched {
		return fmt.Sprintf("%s  %-14s  thread %d is gone", t.Time.UTC().Format(stamp), t.Name, t.TID)
	}
	return fmt.Sprintf("%s  %-14s  watched: thread %d of process %d, %s", t.Time.UTC().Format(stamp), t.Name, t.TID, t.PID, onCore(t.Core))
}

// String returns the record as a line of text.
func (s *Spell) String() string {
	took := short(s.Took)
	if s.Lasts {
		took = "over " + took
	}
	what := map[Kind]string{OffCore: "off its core", Interrupt: "in an interrupt", Pause: "stood still"}[s.Kind]
	return fmt.Sprintf("%s  %-14s  %s %s: %s", s.Begin.UTC().Format(stamp), s.Thread, took, what, causeList(s.Causes))
}

// causeList writes causes with their parts, and the evidence of the first.
func causeList(causes []cause.Cause) string {
	if causes = merge(causes); len(causes) == 1 {
		c := &causes[0]
		return fmt.Sprintf("%s, %s (%s)", c.Title(), c.How, c.Evidence)
	}
	var parts []string
	for _, c := range causes {
		parts = append(parts, fmt.Sprintf("%s %s, %s", c.Title(), short(c.Part), c.How))
	}
	return strings.Join(parts, "; ")
}

// String returns the record as a line of text.
func (i *Iteration) String() string {
	about := ""
	if i.Estimated {
		about = "about "
	}
	line := fmt.Sprintf("%s  %-14s  iteration %d took %s (%s), began %s%s: ", i.Logged.UTC().Format(stamp), i.Thread,
		i.Iteration, short(i.Took), strings.Join(i.Reasons, ", "), about, i.Begin.UTC().Format("15:04:05.000000Z"))
	if !i.Watched {
		return line + "its thread was not watched then"
	}
	return line + causeList(i.Causes)
}

// String returns the record as lines of text.
func (s *Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "observed for %v, %d threads", s.Took.Round(100*time.Millisecond), len(s.Threads))
	for i := range s.Threads {
		s.Threads[i].write(&b, s.Threshold)
	}
	for _, c := range s.Cores {
		fmt.Fprintf(&b, "\ninterrupts of core %d: ", c.Core)
		for n, l := range c.Lines {
			if n > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s %s", l.Name, human.Count(uint64(l.N)))
		}
		if len(c.Lines) == 0 {
			b.WriteString("none were counted")
		}
		if c.Knows {
			fmt.Fprintf(&b, "; %s in those of at least 5us", short(c.Timed))
		}
	}
	if s.Iterations > 0 {
		fmt.Fprintf(&b, "\nsuspicious iterations in the log: %d, %d of them with time off the core", s.Iterations, s.Explained)
	}
	if s.Unread > 0 {
		fmt.Fprintf(&b, "\nlines of the log that could not be read: %d", s.Unread)
	}
	return b.String()
}

func (t *ThreadSummary) write(b *strings.Builder, threshold time.Duration) {
	fmt.Fprintf(b, "\n%s, thread %d %s: ", t.Name, t.TID, onCore(t.Core))
	if t.Switches {
		share := 100 * t.Off.Seconds() / max(t.Watched.Seconds(), 1e-9)
		fmt.Fprintf(b, "off its core for %s, %s %%, in %s spells, the longest %s; ", short(t.Off), human.Decimals(share, 2), human.Count(uint64(t.Spells)), short(t.Longest))
	}
	fmt.Fprintf(b, "%s over %v", human.Count(uint64(t.Over)), threshold)
	if t.Wait >= 0 {
		fmt.Fprintf(b, "; waited for a core for %s", short(t.Wait))
	}
	fmt.Fprintf(b, "; %s page faults", human.Count(uint64(t.Faults)))
	for _, c := range t.Causes {
		fmt.Fprintf(b, "\n  %s: %s in %s spells", c.Title, short(c.Took), human.Count(uint64(c.Times)))
	}
	for i, c := range t.Sharers {
		if i == 0 {
			b.WriteString("\n  had its core in spells of any length: ")
		} else {
			b.WriteString(", ")
		}
		fmt.Fprintf(b, "%s %s", c.Title, short(c.Took))
	}
}
