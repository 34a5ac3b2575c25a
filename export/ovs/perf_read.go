package ovs

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParsePerf reads the output of pmd-perf-show. It returns a [*SyntaxError] if the text
// is not empty and no block can be read from it; single lines that can't be read are in
// the report's Unread.
func ParsePerf(text string) (*PerfReport, error) {
	var p perfParser
	p.scan(text, p.line)
	p.giveUp()
	p.unread = append(p.unread, p.head...)
	unread, err := p.result(len(p.blocks) > 0, "pmd-perf-show")
	if err != nil {
		return nil, err
	}
	return &PerfReport{Blocks: p.blocks, Unread: unread}, nil
}

// perfParser reads pmd-perf-show line by line.
type perfParser struct {
	reader
	blocks []PerfBlock
	stage  stage
	titles []Line // a title line, until the line that it is the title of
	// Time and duration come before the heading that makes them a block.
	head           []Line
	time, duration string
}

// stage says what the parser expects next besides a new block or history.
type stage int

const (
	wantBlock stage = iota
	wantRow
	wantHistogramTitles
	wantBin
	wantAverageTitles
	wantAverages
	wantIteration
	wantMillisecond
	wantNothing
)

func (p *perfParser) line(n int, s string) bool {
	if p.heading(n, s) {
		return true
	}
	if p.stage == wantBlock || len(p.head) > 0 {
		return false
	}
	b := &p.blocks[len(p.blocks)-1]
	if titles := historyTitles(s); titles != nil {
		return p.history(b, titles)
	}
	switch p.stage {
	case wantRow:
		if s == "Histograms" {
			p.expect(wantHistogramTitles, Line{n, s})
			return true
		}
		r, ok := parseRow(s)
		if !ok || b.row(r.Label) != nil {
			return false
		}
		b.Rows = append(b.Rows, r)
		return true
	case wantHistogramTitles:
		titles := columns(s)
		if slices.ContainsFunc(titles, isDigits) {
			return false
		}
		for _, t := range titles {
			b.Histograms = append(b.Histograms, Histogram{Title: t})
		}
		p.expect(wantBin)
		return true
	case wantBin:
		if strings.Trim(s, "-") == "" {
			p.expect(wantAverageTitles)
			return true
		}
		return addBins(b.Histograms, words(s))
	case wantAverageTitles:
		if slices.ContainsFunc(columns(s), isNumber) {
			return false
		}
		p.expect(wantAverages, Line{n, s})
		return true
	case wantAverages:
		titles, numbers := columns(p.titles[0].Text), words(s)
		if len(titles) != len(numbers) || !all(numbers, isNumber) {
			return false
		}
		for i := range titles {
			b.Averages = append(b.Averages, Average{titles[i], numbers[i]})
		}
		p.expect(wantNothing)
		return true
	case wantIteration:
		return b.Iterations.add(s)
	case wantMillisecond:
		return b.Milliseconds.add(s)
	}
	return false
}

// durationMark begins a line that only pmd-perf-show has.
const durationMark = "Measurement duration:"

// heading reads the lines that begin a block.
func (p *perfParser) heading(n int, s string) bool {
	if v, ok := strings.CutPrefix(s, "Time:"); ok {
		v = strings.Trim(v, blanks)
		if _, err := time.Parse("15:04:05.000", v); err != nil {
			return false
		}
		if p.time != "" || p.duration != "" {
			p.dropHead()
		}
		p.giveUp()
		p.time = v
		p.head = append(p.head, Line{n, s})
		return true
	}
	if v, ok := strings.CutPrefix(s, durationMark); ok {
		v, ok = strings.CutSuffix(v, "s")
		v = strings.Trim(v, blanks)
		if !ok || !isNumber(v) {
			return false
		}
		if p.duration != "" {
			p.dropHead()
		}
		p.giveUp()
		p.duration = v
		p.head = append(p.head, Line{n, s})
		return true
	}
	t, ok := parseThread(s)
	if !ok {
		return false
	}
	p.giveUp()
	p.blocks = append(p.blocks, PerfBlock{Time: p.time, Duration: p.duration, Thread: t})
	p.head, p.time, p.duration = nil, "", ""
	p.expect(wantRow)
	return true
}

// dropHead gives up a time or duration that no heading followed.
func (p *perfParser) dropHead() {
	p.unread = append(p.unread, p.head...)
	p.head, p.time, p.duration = nil, "", ""
}

// giveUp notes that the title line read last stays without what it announces.
func (p *perfParser) giveUp() {
	p.unread = append(p.unread, p.titles...)
	p.titles = nil
}

// expect goes to a stage, which may have a title line that waits for its content.
func (p *perfParser) expect(s stage, titles ...Line) {
	p.stage, p.titles = s, titles
}

// history begins a history; false means that the block already has one of its kind.
func (p *perfParser) history(b *PerfBlock, titles []string) bool {
	table, next := &b.Iterations, wantIteration
	if titles[0] == "ms" {
		table, next = &b.Milliseconds, wantMillisecond
	}
	if *table != nil {
		return false
	}
	p.giveUp()
	*table = &Table{Columns: titles}
	p.expect(next)
	return true
}

// parseRow reads a counter: [- ]label: value [(figure, figure ...)].
func parseRow(s string) (r Row, ok bool) {
	label, rest, ok := strings.Cut(s, ":")
	if !ok {
		return r, false
	}
	if l, detail := strings.CutPrefix(label, "-"); detail {
		label, r.Detail = strings.Trim(l, blanks), true
	}
	if !isLabel(label) {
		return r, false
	}
	r.Label = label
	value, figures, hasFigures := strings.Cut(rest, "(")
	v, err := strconv.ParseUint(strings.Trim(value, blanks), 10, 64)
	if err != nil {
		return r, false
	}
	r.Value = v
	if !hasFigures {
		return r, true
	}
	figures, ok = strings.CutSuffix(figures, ")")
	if !ok {
		return r, false
	}
	for f := range strings.SplitSeq(figures, ",") {
		number, unit, _ := strings.Cut(strings.Trim(f, blanks), " ")
		unit = strings.Trim(unit, blanks)
		if !isNumber(number) || unit == "" {
			return r, false
		}
		r.Figures = append(r.Figures, Figure{number, unit})
	}
	return r, true
}

// isLabel reports whether s looks like a counter's label: a letter and then letters,
// digits, single blanks and a few signs.
func isLabel(s string) bool {
	if s == "" || s != strings.Trim(s, blanks) || strings.Contains(s, "  ") {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune(" 0123456789.()/_-", rune(c))) {
			return false
		}
	}
	return true
}

// addBins adds a line of the histograms, a wall and a count for each. It returns false,
// and adds nothing, if the line is not complete, the walls don't rise or the row for
// samples beyond the last wall was there already.
func addBins(hists []Histogram, cells []string) bool {
	if len(cells) != 2*len(hists) || len(hists) == 0 {
		return false
	}
	if len(hists[0].Counts) > len(hists[0].Walls) {
		return false
	}
	more := cells[0] == ">"
	walls, counts := make([]uint64, len(hists)), make([]uint64, len(hists))
	for i := range hists {
		wall, count := cells[2*i], cells[2*i+1]
		var err error
		if counts[i], err = strconv.ParseUint(count, 10, 64); err != nil {
			return false
		}
		if more {
			if wall != ">" {
				return false
			}
			continue
		}
		if walls[i], err = strconv.ParseUint(wall, 10, 64); err != nil {
			return false
		}
		if n := len(hists[i].Walls); n > 0 && walls[i] <= hists[i].Walls[n-1] {
			return false
		}
	}
	for i := range hists {
		h := &hists[i]
		h.Counts = append(h.Counts, counts[i])
		if !more {
			h.Walls = append(h.Walls, walls[i])
		}
	}
	return true
}

// all reports whether f is true for all of s.
func all(s []string, f func(string) bool) bool {
	return !slices.ContainsFunc(s, func(x string) bool { return !f(x) })
}
