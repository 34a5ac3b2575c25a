package report

import (
	"math"
	"time"
)

// span is the time that a page is about.
type span struct {
	epoch    time.Time
	from, to float64 // microseconds from epoch on
}

// micros returns where t is.
func (s *span) micros(t time.Time) float64 {
	return thousandths(float64(t.Sub(s.epoch)) / float64(time.Microsecond))
}

// believable is how long a stall may be, in microseconds, that begins before all others
// end and still widens the time that a page is about. Some logs are of clocks whose
// frequency is wrong by a factor of 10^9.
const believable = 60e6

// newSpan returns the time that the page is about, which has a length.
func newSpan(p *Page) span {
	var first, last time.Time
	see := func(t time.Time) {
		if t.IsZero() {
			return
		}
		if first.IsZero() || t.Before(first) {
			first = t
		}
		if last.IsZero() || t.After(last) {
			last = t
		}
	}
	for i := range p.Stalls {
		see(p.Stalls[i].End)
	}
	for i := range p.Series {
		for _, pt := range p.Series[i].Points {
			see(pt.From)
			see(pt.To)
		}
	}
	most := max(believable, float64(last.Sub(first))/1e3)
	for i := range p.Stalls {
		if st := &p.Stalls[i]; !st.End.IsZero() && known(st.Micros) <= most {
			see(st.End.Add(-time.Duration(known(st.Micros) * 1e3)))
		}
	}
	s := span{epoch: first.UTC().Truncate(time.Millisecond)}
	s.from, s.to = s.micros(first), s.micros(last)
	margin := max((s.to-s.from)/50, 500) // for what lies at the edge to be seen
	s.from, s.to = s.from-margin, s.to+margin
	return s
}

// tick returns the time at the i-th of n parts, as exact as a look at the overview is.
func (s *span) tick(i, n int) string {
	t := s.epoch.Add(time.Duration((s.from + (s.to-s.from)*float64(i)/float64(n)) * 1e3))
	switch width := s.to - s.from; {
	case width < 10e6:
		return t.Format("15:04:05.000")
	case width < 24*3600e6:
		return t.Format("15:04:05")
	}
	return t.Format("01-02 15:04")
}

func thousandths(v float64) float64 {
	if v > 1e12 { // beyond which a float has none
		return v
	}
	return math.Round(v*1e3) / 1e3
}
