package confusion

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pmdperf/pmdperf/suspicious/cause"
)

// A Table has one row for each provocation.
type Table struct {
	User bool `json:"user"` // the probes had an ordinary user's privileges
	Core int  `json:"core"` // of the loop

	// How quiet the machine was before and after: the share of its core that others took
	// from the loop, 0 to 1, and the longest that anything slept longer than it wanted.
	Others float64       `json:"others"`
	Late   time.Duration `json:"late_ns"`

	Probes []cause.Status `json:"probes"`
	Rows   []Row          `json:"rows"`
}

// A Row is what came of one provocation, made several times.
type Row struct {
	Provocation string     `json:"provocation"`
	Kind        cause.Kind `json:"kind"`           // what ought to be named
	Name        string     `json:"name,omitempty"` // and, if not empty, its name

	Made    int    `json:"made"`    // times that it made an iteration slow
	Named   int    `json:"named"`   // of those, times that it was among the causes
	First   int    `json:"first"`   // of those, times that it was the first of them
	Wrong   int    `json:"wrong"`   // times that something was named with confidence that was not so
	Idle    int    `json:"idle"`    // times that it was tried and made no iteration slow
	Spoilt  int    `json:"spoilt"`  // times that the iteration was far longer than it can have made it
	Skipped string `json:"skipped"` // why it was not tried

	Share  float64        `json:"share"`  // of the iteration, that the named cause explained on average, 0 to 1
	Titles map[string]int `json:"titles"` // what was named first, and how often
	Misses []string       `json:"misses"` // all that was said where it was not named or something was wrong, a few
}

// Quiet reports whether others left the machine alone. If they didn't, causes other than
// those provoked are real, and readings come late.
func (t *Table) Quiet() bool { return t.Others < 0.02 && t.Late < 5*time.Millisecond }

// NamedShare returns how often the cause was among those named, 0 to 1.
func (r *Row) NamedShare() float64 { return float64(r.Named) / float64(max(r.Made, 1)) }

// WrongShare returns how often a wrong one was named with confidence, 0 to 1.
func (r *Row) WrongShare() float64 { return float64(r.Wrong) / float64(max(r.Made, 1)) }

// Write prints the table.
func (t *Table) Write(w io.Writer) error {
	for _, s := range t.Probes {
		if _, err := fmt.Fprintln(w, "probe", s); err != nil {
			return err
		}
	}
	if !t.Quiet() {
		_, err := fmt.Fprintf(w, "\nothers use the machine: while nothing was provoked they had %.0f %% of the loop's core, and sleeps took up to %v too long\n",
			100*t.Others, t.Late.Round(10*time.Microsecond))
		if err != nil {
			return err
		}
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\nprovocation\tmade\tnamed\tfirst\twrong\tshare\tspoilt\tfirst causes")
	for _, r := range t.Rows {
		if r.Skipped != "" {
			fmt.Fprintf(tw, "%s\t-\t-\t-\t-\t-\t-\tskipped: %s\n", r.Provocation, r.Skipped)
			continue
		}
		if r.Made == 0 {
			fmt.Fprintf(tw, "%s\t0\t-\t-\t-\t-\t%d\t\n", r.Provocation, r.Spoilt)
			continue
		}
		fmt.Fprintf(tw, "%s\t%d\t%.1f %%\t%d\t%.1f %%\t%.0f %%\t%d\t%s\n",
			r.Provocation, r.Made, 100*r.NamedShare(), r.First, 100*r.WrongShare(), 100*r.Share, r.Spoilt, r.titles())
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, r := range t.Rows {
		for _, m := range r.Misses {
			if _, err := fmt.Fprintf(w, "\n%s: %s\n", r.Provocation, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// titles returns what was named first, and how often, most often first.
func (r *Row) titles() string {
	var list []string
	for title := range r.Titles {
		list = append(list, title)
	}
	slices.SortFunc(list, func(a, b string) int {
		if d := r.Titles[b] - r.Titles[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	const most = 4
	var parts []string
	for i, title := range list {
		if i == most {
			parts = append(parts, fmt.Sprintf("%d more", len(list)-most))
			break
		}
		parts = append(parts, fmt.Sprintf("%s (%d)", title, r.Titles[title]))
	}
	return strings.Join(parts, ", ")
}

// answer is what was said of one slow iteration, and what is so.
type answer struct {
	took   time.Duration
	causes []cause.Cause
	truth  truth
}

// share returns the share of the cause that the row wants, and whether it is first.
func (r *Row) share(causes []cause.Cause) (share float64, first bool) {
	for i, c := range causes {
		if c.Kind == r.Kind && (r.Name == "" || c.Name == r.Name) {
			share += c.Share
			first = first || i == 0
		}
	}
	return share, first
}

// judge enters what was said of the iterations that one provocation made slow. It
// counts as named if it was in any of them: others may have made more than one slow.
func (r *Row) judge(said []answer, p provoked) {
	best := slices.MaxFunc(said, func(a, b answer) int {
		x, _ := r.share(a.causes)
		y, _ := r.share(b.causes)
		return cmp.Compare(x*float64(a.took), y*float64(b.took))
	})
	share, isFirst := r.share(best.causes)
	r.Made++
	r.Share += share
	if share > 0 {
		r.Named++
	}
	if isFirst {
		r.First++
	}
	first := best.causes[0]
	if r.Titles == nil {
		r.Titles = make(map[string]int)
	}
	r.Titles[first.Kind.String()+named1(first)]++
	wrong := slices.ContainsFunc(best.causes, func(c cause.Cause) bool { return confident(&c) && !best.truth.allows(&c, p) })
	if wrong {
		r.Wrong++
	}
	const misses = 5
	if (wrong || share == 0) && len(r.Misses) < misses {
		var all []string
		for _, c := range best.causes {
			all = append(all, c.String())
		}
		m := fmt.Sprintf("%v, of which it ran for %v, waited for a core for %v and slept for %v: %s",
			best.took, best.truth.CPU, best.truth.Wait, best.truth.Sleep, strings.Join(all, "; "))
		if wrong {
			m = "wrong: " + m
		}
		r.Misses = append(r.Misses, m)
	}
}

// confident reports whether a cause is said to be known, and to be the main one.
func confident(c *cause.Cause) bool { return c.How > cause.Inferred && c.Share >= 0.5 }

// named1 adds a name to a kind where there are few of them.
func named1(c cause.Cause) string {
	if c.Name == "" || c.Kind == cause.Work || c.Kind == cause.Upcalls {
		return ""
	}
	return " " + c.Name
}

// done turns sums into averages.
func (r *Row) done() {
	if r.Made > 0 {
		r.Share /= float64(r.Made)
	}
}
