package report

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pmdperf/pmdperf/internal/human"
)

// lane is the overview of one thread as SVG, which needs no script: for each of a
// number of columns the longest stall that ended there.
type lane struct {
	Name  string
	Count string
	Paths []lanePath
	W, H  int
}

// lanePath are the bars of one colour.
type lanePath struct {
	Class string
	D     []byte // in SVG's language of paths
}

const (
	laneColumns = 500
	laneHeight  = 40
)

// newLanes returns the overview of every thread and series.
func newLanes(p *Page, findingOf []int, s span) []lane {
	type column struct {
		micros  float64
		finding int
	}
	columns := make([][laneColumns]column, len(p.Threads))
	counts := make([]uint64, len(p.Threads))
	lo, hi := math.Inf(1), 0.0
	for i := range p.Stalls {
		st := &p.Stalls[i]
		counts[st.Thread]++
		if st.End.IsZero() {
			continue
		}
		us := max(known(st.Micros), 1e-3)
		lo, hi = min(lo, us), max(hi, us)
		if c := &columns[st.Thread][s.column(st.End)]; us > c.micros {
			*c = column{us, findingOf[i]}
		}
	}
	height := func(us float64) float64 { // of the shortest a fifth
		if hi <= lo {
			return laneHeight
		}
		return laneHeight * (.2 + .8*math.Log(us/lo)/math.Log(hi/lo))
	}
	var lanes []lane
	for i := range p.Threads {
		l := lane{Name: clean(p.Threads[i].Name), Count: plural(counts[i], "stall"), W: laneColumns, H: laneHeight}
		for x, c := range columns[i] {
			if c.micros > 0 {
				l.bar(colour(c.finding), x, height(c.micros))
			}
		}
		lanes = append(lanes, l)
		for j := range p.Series {
			if p.Series[j].Thread == i {
				lanes = append(lanes, seriesLane(&p.Series[j], s))
			}
		}
	}
	for j := range p.Series {
		if p.Series[j].Thread < 0 {
			lanes = append(lanes, seriesLane(&p.Series[j], s))
		}
	}
	return lanes
}

// seriesLane returns the overview of a series: of each column the highest value.
func seriesLane(x *Series, s span) lane {
	var columns [laneColumns]float64
	most := 0.0
	for _, pt := range x.Points {
		if math.IsNaN(pt.Value) || math.IsInf(pt.Value, 0) {
			continue
		}
		first, last := s.column(pt.From), s.column(pt.To)
		for i := first; i <= max(first, last-1); i++ {
			columns[i] = max(columns[i], pt.Value)
		}
		most = max(most, pt.Value)
	}
	l := lane{Name: clean(x.Name), W: laneColumns, H: laneHeight}
	if most > 0 {
		l.Count = "up to " + human.Short(most) + " " + clean(x.Unit)
	}
	class := "c-series"
	if x.Alarm {
		class = "c-alarm"
	}
	for i, v := range columns {
		if v > 0 {
			l.bar(class, i, laneHeight*v/most)
		}
	}
	return l
}

// bar adds a bar at a column.
func (l *lane) bar(class string, x int, height float64) {
	i := slices.IndexFunc(l.Paths, func(p lanePath) bool { return p.Class == class })
	if i < 0 {
		i = len(l.Paths)
		l.Paths = append(l.Paths, lanePath{Class: class})
	}
	l.Paths[i].D = fmt.Appendf(l.Paths[i].D, "M%d.5 %dV%.1f", x, laneHeight, laneHeight-height)
}

// column returns the column of a time.
func (s *span) column(t time.Time) int {
	at := (s.micros(t) - s.from) / (s.to - s.from) * laneColumns
	return int(min(max(at, 0), laneColumns-1))
}

// colours is how many findings have colours of their own.
const colours = 7

// colour returns the class of a finding's colour.
func colour(finding int) string {
	if finding < 0 {
		return "c-none"
	}
	return fmt.Sprintf("c-%d", finding%colours)
}
