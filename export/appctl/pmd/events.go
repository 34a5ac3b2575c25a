package pmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/suspicious"
)

// defaultEvents is how many events are listed where the client doesn't say.
const defaultEvents = 20

// eventsAnswer is the list of pmdperf/events, newest first.
type eventsAnswer struct {
	Events []event `json:"events"`

	reports []*suspicious.Report
	remarks
}

// event is an event without its neighborhood, with the members of
// suspicious.FlightRecord.
type event struct {
	*suspicious.FlightRecord
	Lost    *struct{} `json:"lost,omitempty"`    // is for files
	Polled  *struct{} `json:"polled,omitempty"`  // is for the neighborhood
	Records *struct{} `json:"records,omitempty"` // is what the event's ID gets
}

// eventAnswer is one event.
type eventAnswer struct{ *suspicious.Report }

func events(_ context.Context, c *call) (answer, error) {
	a := &eventsAnswer{Events: []event{}}
	var kept, reports []*suspicious.Report
	if c.Events == nil {
		a.note("this program keeps no events")
	} else {
		kept = c.Events.Last()
	}
	core, one := c.core()
	for _, r := range kept {
		if !one || r.Core == core {
			reports = append(reports, r)
		}
	}
	if c.hasWord {
		for _, r := range reports {
			if r.ID == c.word {
				return eventAnswer{r}, nil
			}
		}
		return nil, fmt.Errorf("there is no event %q among the last %d: pmdperf/events lists those that there are", c.word, len(reports))
	}
	n := uint64(defaultEvents)
	if given, ok := c.numbers["-n"]; ok {
		n = given
	}
	if all := uint64(len(reports)); all > n {
		a.note("older events that are not shown: %d; -n says how many are", all-n)
		reports = reports[:n]
	}
	a.reports = reports
	for _, r := range reports {
		a.Events = append(a.Events, event{FlightRecord: r.Flight()})
	}
	return a, nil
}

func (a *eventsAnswer) json() any { return a }

func (a *eventsAnswer) write(w io.Writer) {
	if len(a.reports) == 0 {
		io.WriteString(w, "no events\n"+a.lines())
		return
	}
	tab := newTable("-event", "core", "iteration", "-ended", "us", "sleep us", "rx", "tx", "-most at", "merged", "-reasons", "-cause")
	for _, r := range a.reports {
		rec, us := r.Culprit(), microsOf(r.Hz)
		tab.row(r.ID, count(uint64(r.Core)), count(r.Iteration), moment(r.Time),
			us.of(float64(rec.Cycles)), us.of(float64(rec.Sleep)), count(uint64(rec.Rx)), count(uint64(rec.Tx)), slowest(r, r.Iteration),
			count(r.MergedCount), r.Reasons.String(), mainCause(r))
	}
	io.WriteString(w, tab.String()+a.lines())
}

func (a eventAnswer) json() any { return a.Flight() }

// write writes the event with its neighborhood, oldest iteration first, as time goes on.
func (a eventAnswer) write(w io.Writer) {
	rec, us := a.Culprit(), microsOf(a.Hz)
	fmt.Fprintf(w, "%s on %s: iteration %d took %s us, ended %s\n", a.ID, a.Name, a.Iteration, us.of(float64(rec.Cycles)), moment(a.Time))
	for reason := range a.Reasons.All() {
		fmt.Fprintf(w, "%s: %s, threshold %s\n", reason.Text(), amount(a.Report, reason, a.Values[reason]), amount(a.Report, reason, a.Thresholds[reason]))
	}
	for _, c := range a.Causes {
		fmt.Fprintf(w, "cause: %s\n", c)
	}
	if a.MergedCount > 0 {
		fmt.Fprintf(w, "further suspicious iterations in its neighborhood: %d\n", a.MergedCount)
		for _, m := range a.Merged {
			if causes := a.MergedCauses[m.Iteration]; causes != nil {
				fmt.Fprintf(w, "  %d: %s\n", m.Iteration, suspicious.Explanation(causes))
			}
		}
	}
	if a.HeldBack > 0 {
		fmt.Fprintf(w, "events held back before it by the rate limit: %d\n", a.HeldBack)
	}
	tab := newTable("", "iteration", "offset us", "us", "sleep us", "rx", "tx", "batches", "fill", "drops", "upcalls", "upcall us", "-most at", "-after")
	for i := range a.Records {
		r, n := &a.Records[i], a.First+uint64(i)
		mark := ""
		if n == a.Iteration {
			mark = "*"
		} else if r.Flags&history.Suspicious != 0 {
			mark = "+"
		}
		offset := "-" + us.of(float64(rec.End-r.End))
		if r.End >= rec.End {
			offset = us.of(float64(r.End - rec.End))
		}
		var after []string
		for gap := range history.NumGaps {
			if r.Flags.After(gap) {
				after = append(after, gap.String())
			}
		}
		tab.row(mark, count(n), offset, us.of(float64(r.Cycles)), us.of(float64(r.Sleep)), count(uint64(r.Rx)), count(uint64(r.Tx)),
			count(uint64(r.Batches)), count(uint64(r.Fill)), count(uint64(r.Drops)), count(uint64(r.Upcalls)), us.of(float64(r.UpcallCycles)),
			slowest(a.Report, n), strings.Join(after, ","))
	}
	io.WriteString(w, tab.String())
}

// slowest names the rx queue that took most of iteration n.
func slowest(r *suspicious.Report, n uint64) string {
	q, ok := r.SlowestQueue(n)
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%s:%d", q.Port, q.ID)
}

// mainCause is the cause that explains most.
func mainCause(r *suspicious.Report) string {
	if len(r.Causes) == 0 {
		return "-"
	}
	return r.Causes[0].Title()
}

// amount is a value of a reason with its unit.
func amount(r *suspicious.Report, reason suspicious.Reason, n uint64) string {
	switch reason {
	case suspicious.Cycles, suspicious.PollGap, suspicious.Gap, suspicious.Adaptive:
		return microsOf(r.Hz).of(float64(n)) + " us"
	case suspicious.CyclesPerPacket, suspicious.CyclesPerUpcall:
		return count(n) + " cycles"
	}
	return count(n)
}
