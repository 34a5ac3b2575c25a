package investigate

import (
	"math"
	"slices"
	"time"
)

// common finds the stalls that several threads had at the same instant, more often than
// chance would have it, and puts them down to a common cause.
func (a *analysis) common() {
	type end struct {
		k  *kept
		us float64
	}
	var ends []end
	perThread := make(map[*thread]int)
	fraction := false
	for _, k := range a.stalls {
		switch k.kind {
		case LostCPU, Stopped, Unexplained, Blocked, Reload:
		default:
			continue
		}
		if k.at.time.IsZero() || k.thread.name == "" || k.thread.core < 0 {
			continue
		}
		fraction = fraction || k.at.time.Nanosecond() != 0
		ends = append(ends, end{k, k.thread.micros(&k.slot)})
		perThread[k.thread]++
	}
	if len(perThread) < 2 {
		return
	}
	// Times of logging: to the millisecond, or only to the second.
	within := 2 * time.Millisecond
	if !fraction {
		within = time.Second
	}
	slices.SortFunc(ends, func(x, y end) int { return x.k.at.time.Compare(y.k.at.time) })
	wanted := max(2, (3*len(perThread)+3)/4)
	fewest := math.MaxInt
	for _, n := range perThread {
		fewest = min(fewest, n)
	}
	var groups [][]*kept
	for i := 0; i < len(ends); {
		first := ends[i]
		var group []*kept
		seen := make(map[*thread]bool)
		n := i
		for ; n < len(ends) && ends[n].k.at.time.Sub(first.k.at.time) <= within; n++ {
			e := ends[n]
			if !seen[e.k.thread] && e.us <= 2*first.us && first.us <= 2*e.us {
				seen[e.k.thread] = true
				group = append(group, e.k)
			}
		}
		if len(group) >= wanted {
			groups = append(groups, group)
			i = n
			continue
		}
		i++
	}
	if len(groups) == 0 {
		return
	}
	// How many chance would bring: for each stall of the thread with the fewest, all the
	// others would need one within the time on either side.
	span := float64(a.c.span.to.Sub(a.c.span.from))
	chance := float64(fewest)
	skipped := false
	for _, n := range perThread {
		if n == fewest && !skipped {
			skipped = true
			continue
		}
		chance *= 1 - math.Exp(-float64(n)*2*float64(within)/max(span, float64(within)))
	}
	k := float64(len(groups))
	if k < 3*chance+0.5 || 2*len(groups) < fewest {
		return
	}
	a.commonBy = chance
	for _, g := range groups {
		for _, k := range g {
			k.kind = CommonCause
		}
		a.groups = append(a.groups, g)
	}
}
