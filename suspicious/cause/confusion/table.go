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

// A Row is what came of one provocation, made several times.
type Row struct {
	Provocation string
	Kind        cause.Kind // what ought to be named
	Name        string     // and, if not empty, its name

	Made    int // times that it made an iteration slow
	Named   int // of those, times that it was among the causes
	First   int // of those, times that it was the first of them
	Wrong   int // times that something else was named with confidence, for half of the time or more
	Idle    int // times that it was tried and made no iteration slow
	Spoilt  int // times that the iteration was far longer than it can have made it
	Skipped string

	Share  float64 // of the iteration, that the named cause explained on average
	Titles map[string]int
	Misses []string // what was said instead, a few
}

// A Table has one row for each provocation.
type Table struct {
	Probes []cause.Status
	Rows   []Row
}

// Write prints the table.
func (t *Table) Write(w io.Writer) error {
	for _, s := range t.Probes {
		if _, err := fmt.Fprintln(w, "probe", s); err != nil {
			return err
		}
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\nprovocation\tmade\tspoilt\tnamed\tfirst\twrong\tshare\tfirst causes")
	for _, r := range t.Rows {
		if r.Skipped != "" {
			fmt.Fprintf(tw, "%s\t-\t-\t-\t-\t-\t-\tskipped: %s\n", r.Provocation, r.Skipped)
			continue
		}
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\t%d\t%.0f %%\t%s\n", r.Provocation, r.Made, r.Spoilt, r.Named, r.First, r.Wrong, 100*r.Share, r.titles())
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, r := range t.Rows {
		for _, m := range r.Misses {
			if _, err := fmt.Fprintf(w, "%s: %s\n", r.Provocation, m); err != nil {
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

// answer is what was said of one slow iteration.
type answer struct {
	took   time.Duration
	causes []cause.Cause

	// The thread itself counted that it was preempted, or that it had to be put back on
	// its core, or that it slept more often than was made: then a task that is named was
	// there, and the runtime at work.
	preempted, slept bool
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
func (r *Row) judge(said []answer) {
	const misses = 5
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
	// Half of the time with certainty for something that it was not.
	wrong := !isFirst && first.Kind != cause.Unknown && first.Kind != r.Kind && first.How > cause.Inferred && first.Share >= 0.5
	if first.Kind == cause.Preempted && best.preempted || first.Kind == cause.Runtime && best.slept {
		wrong = false
	}
	if wrong {
		r.Wrong++
	}
	if (wrong || share == 0) && len(r.Misses) < misses {
		var all []string
		for _, c := range best.causes {
			all = append(all, c.String())
		}
		r.Misses = append(r.Misses, strings.Join(all, "; "))
	}
}

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
