package report

import (
	"math"
	"strconv"

	"github.com/pmdperf/pmdperf/internal/human"
)

// Histogram says how often which values occurred.
type Histogram struct {
	Title string
	// Micros says that values are microseconds; otherwise they are numbers of Unit.
	Micros bool
	Unit   string
	Bins   []Bin // rising, each beginning where the one before ends
	// Percentiles are the values that so many percent of all don't exceed.
	Percentiles []Percentile
}

// Bin counts values above From and up to To, which is infinite in a bin without end.
type Bin struct {
	From, To float64
	Count    uint64
}

// Percentile is a value that so many percent of all values don't exceed; 100 is the
// largest.
type Percentile struct {
	Percent float64
	Value   float64
	Sign    string // before the value: how exact it is, "≤"
}

// The measures of a histogram's picture.
const (
	plotWidth, plotHeight = 360.0, 132.0
	plotTop, plotBottom   = 22.0, 18.0 // room for the percentiles and for the scale
)

// plot is a histogram's picture, in SVG's coordinates. Bins are of one width: those of
// the quantities that range over decades rise by a constant factor, so that the scale
// is logarithmic; the height of a bar is that of the logarithm of its count.
type plot struct {
	Title   string
	Total   string
	Bars    []bar
	Ticks   []tick
	Marks   []tick
	Cells   []Fact // percentiles
	Base    float64
	W, H    float64
	Caption string // for those who don't see it
}

type bar struct {
	X, Y, W, H float64
	Title      string
}

type tick struct {
	X     float64
	Text  string
	Align string // text-anchor
}

func newPlot(h *Histogram) *plot {
	first, last := -1, -1
	var total, most uint64
	for i, b := range h.Bins {
		if b.Count == 0 {
			continue
		}
		if first < 0 {
			first = i
		}
		last, total, most = i, total+b.Count, max(most, b.Count)
	}
	if first < 0 {
		return nil
	}
	// A bin of nothing on either side shows that there is nothing.
	first, last = max(first-1, 0), min(last+1, len(h.Bins)-1)
	bins := h.Bins[first : last+1]
	p := &plot{Title: clean(h.Title), Total: human.Count(total), W: plotWidth, H: plotHeight, Base: plotHeight - plotBottom}
	width := plotWidth / float64(len(bins))
	room := p.Base - plotTop
	scale := math.Log10(float64(most)) + 1 // a count of one has a height, too
	for i, b := range bins {
		if b.Count == 0 {
			continue
		}
		height := max(room*(math.Log10(float64(b.Count))+1)/scale, 1)
		p.Bars = append(p.Bars, bar{
			X: tenth(float64(i)*width + width*.06), Y: tenth(p.Base - height), W: tenth(width * .88), H: tenth(height),
			Title: h.rangeText(b) + ": " + human.Count(b.Count),
		})
	}
	every := max(1, (len(bins)+4)/5)
	for i := every; i < len(bins); i += every {
		x, text := float64(i)*width, h.text(bins[i].From)
		if !h.Micros && bins[i].To-bins[i].From <= 1 { // a bin of one whole number
			x, text = x+width/2, h.text(bins[i].To)
		}
		if x < plotWidth-30 {
			p.Ticks = append(p.Ticks, tick{tenth(x), text, "middle"})
		}
	}
	p.Caption = p.Title + ", " + p.Total + " values"
	free := 0.0 // from where on there is room for a label
	for _, c := range h.Percentiles {
		name := "p" + strconv.FormatFloat(c.Percent, 'f', -1, 64)
		if c.Percent == 100 {
			name = "max"
		}
		text := clean(c.Sign) + h.text(c.Value)
		p.Cells = append(p.Cells, Fact{name, text})
		p.Caption += ", " + name + " " + text
		x := width * position(bins, c.Value)
		mark := tick{X: tenth(x), Align: "middle"}
		if room := float64(len(name))*5 + 4; x-room/2 >= free {
			mark.Text, free = name, x+room/2
			if x+room/2 > plotWidth {
				mark.Align = "end"
			}
		}
		p.Marks = append(p.Marks, mark)
	}
	return p
}

// position returns where v is, in bins.
func position(bins []Bin, v float64) float64 {
	for i, b := range bins {
		switch {
		case v > b.To:
		case v <= b.From:
			return float64(i)
		case math.IsInf(b.To, 1):
			return float64(i) + .5
		case b.From > 0:
			return float64(i) + math.Log(v/b.From)/math.Log(b.To/b.From)
		default:
			return float64(i) + (v-b.From)/(b.To-b.From)
		}
	}
	return float64(len(bins))
}

func (h *Histogram) text(v float64) string {
	if h.Micros {
		return duration(v)
	}
	return human.Short(v)
}

func (h *Histogram) rangeText(b Bin) string {
	unit := ""
	if !h.Micros && h.Unit != "" {
		unit = " " + clean(h.Unit)
	}
	switch {
	case math.IsInf(b.To, 1):
		return "above " + h.text(b.From) + unit
	case !h.Micros && b.To-b.From <= 1:
		return h.text(b.To) + unit
	}
	return "above " + h.text(b.From) + " up to " + h.text(b.To) + unit
}

func tenth(v float64) float64 { return math.Round(v*10) / 10 }
