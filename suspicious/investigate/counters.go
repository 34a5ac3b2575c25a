package investigate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	maxRises = 1000
	// around is how far from a rise a stall may be to be next to it: times of logs and of
	// counters are those of different clocks and polls.
	around = 100 * time.Millisecond
)

// isDrop reports whether a counter counts packets that went nowhere, by its name.
func isDrop(name string) bool {
	name = strings.ToLower(name)
	for _, part := range [...]string{"drop", "miss", "nombuf", "no_buf", "discard", "overrun", "rx_no", "out_of_buffer", "tx_failure", "tx_retries", "contention", "lost", "err"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// counters lines the rises of drop counters up with the stalls.
func (a *analysis) counters() {
	a.r.Counters = a.c.series
	for i := range a.c.series {
		s := &a.c.series[i]
		if isDrop(s.Name) {
			a.rises(s)
		}
	}
	slices.SortStableFunc(a.r.Rises, func(x, y Rise) int { return -cmp.Compare(x.Amount, y.Amount) })
	if len(a.r.Rises) > maxRises {
		a.r.Rises = a.r.Rises[:maxRises]
	}
}

func (a *analysis) rises(s *Series) {
	for i := 1; i < len(s.Points); i++ {
		p, q := s.Points[i-1], s.Points[i]
		amount := q.Value - p.Value
		if q.Value < p.Value {
			amount = q.Value // it started anew
		}
		if !(amount > 0) {
			continue
		}
		r := Rise{Counter: s.Name, From: p.Time, To: q.Time, Amount: amount, Place: s.Place}
		longest := -1
		lo, _ := slices.BinarySearchFunc(a.r.Stalls, p.Time.Add(-around), func(s Stall, t time.Time) int { return s.Time.Compare(t) })
		for k := lo; k < len(a.r.Stalls); k++ {
			stall := &a.r.Stalls[k]
			began := stall.Time.Add(-time.Duration(stall.Micros * 1e3))
			if began.After(q.Time.Add(around)) {
				// Those after it end later still, but may be longer.
				if stall.Time.After(q.Time.Add(around + 10*time.Second)) {
					break
				}
				continue
			}
			if stall.Kind == Clock || stall.Time.IsZero() {
				continue
			}
			r.Stalls++
			if longest < 0 || stall.Micros > a.r.Stalls[longest].Micros {
				longest = k
			}
		}
		over := human(q.Time.Sub(p.Time))
		if longest < 0 {
			r.Text = fmt.Sprintf("%s rose by %s in %s without any stall", s.Name, grouped(amount), over)
		} else {
			at := &a.r.Stalls[longest]
			r.Stall = &longest
			r.Text = fmt.Sprintf("%s rose by %s in the %s around the %s stall %s", s.Name, grouped(amount), over, micros(at.Micros), of(at))
			if r.Stalls > 1 {
				r.Text += fmt.Sprintf(", the longest of %d", r.Stalls)
			}
		}
		a.r.Rises = append(a.r.Rises, r)
	}
}

func of(s *Stall) string {
	switch {
	case s.Core >= 0:
		return "on core " + itoa(s.Core)
	case s.Thread != "":
		return "of " + s.Thread
	}
	return "of a thread without a name"
}

// human writes a time as people say it: "2 s", "500 ms".
func human(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

// grouped writes a number with its digits in groups: "4,211".
func grouped(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// drops makes a finding of what drop counters say about the stalls.
func (a *analysis) drops() {
	var with, without float64
	f := &Finding{Kind: Drops, Confidence: Medium}
	var spans float64 // of the rises, in us
	for i := range a.r.Rises {
		r := &a.r.Rises[i]
		spans += float64(r.To.Sub(r.From)) / 1e3
		if r.Stall == nil {
			without += r.Amount
		} else {
			with += r.Amount
		}
		f.Count++
		if len(f.Evidence) < maxEvidence {
			f.Evidence = append(f.Evidence, Evidence{r.Place, r.Text, r.Stall})
		}
		if r.Stall != nil && len(f.Stalls) < maxLinked && !slices.Contains(f.Stalls, *r.Stall) {
			f.Stalls = append(f.Stalls, *r.Stall)
		}
	}
	switch {
	case f.Count == 0 && len(a.c.series) == 0:
		return
	case f.Count == 0:
		f.Title = "no drop counter rose"
		f.Text = []string{fmt.Sprintf("Looked at %d counters.", len(a.c.series))}
		f.Because = "the counters are there"
		a.add(f)
		return
	}
	total := with + without
	f.Title = fmt.Sprintf("drop counters rose by %s, %.0f %% of it next to stalls", grouped(total), 100*with/total)
	f.Because = "the times fit"
	if span := a.c.span.micros(); span > 0 && len(a.r.Stalls) > 0 {
		// Where stalls are everywhere, being next to one says nothing.
		var stalled float64
		for _, t := range a.threads {
			stalled = math.Max(stalled, t.stalled)
		}
		if stalled > span/2 {
			f.Confidence, f.Because = Low, "there are stalls everywhere, so that any rise is next to one"
		}
	}
	if without > with {
		f.Text = append(f.Text, "Most of it happened without a stall: bursts that the ring can't hold, a peer that doesn't take its packets, or missing buffers do that. The name of the counter tells which.")
	} else {
		f.Text = append(f.Text, "The stalls cost packets.")
	}
	f.Next = []Step{{"ovs-vsctl get Interface NAME statistics", "all counters of an interface"}, {"ovs-appctl coverage/show | grep drop", "drops of the datapath"}}
	a.add(f)
}
