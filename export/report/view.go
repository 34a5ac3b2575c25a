package report

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/pmdperf/pmdperf/internal/human"
)

// view is what the template gets: texts that are clean, numbers that are written.
type view struct {
	Style  template.CSS
	Script template.JS
	Data   template.JS
	Policy string

	Title, Lead, Program, Made string

	Facts    []Fact
	Warnings []string
	Findings []findingView
	Lanes    []lane
	Ticks    []string // times at the overview's edges and in between
	Threads  []threadView
	Plots    bool        // there are histograms
	Stalls   []stallView // the longest first, then others to which findings lead
	Shown    int         // number of the longest among them
	Total    string      // number of all stalls
	All      bool        // Stalls are all of them
	Near     []nearView
	Columns  []string // of the neighborhoods
	Events   []lineView
	Sources  []Source
}

type findingView struct {
	Number     int
	Class      string
	Title      string
	Confidence string
	Text       []string
	Facts      []Fact
	Count      string // of its stalls, empty if there are none
	Links      []stallLink
	Evidence   []lineView
	Steps      []Step
}

// stallLink leads to a stall by its place in the order of time.
type stallLink struct {
	At   int
	Text string
}

type lineView struct {
	Where, Text string
	At          int // of a stall, negative if none
}

type threadView struct {
	Name   string
	Facts  []Fact
	Shares []shareView
	Plots  []*plot
}

type shareView struct {
	Name, Percent string
	X, W          float64
	Class         string
}

type stallView struct {
	At                         int
	Class                      string
	Time, Thread, Length       string
	Iteration, Reasons, Causes string
	Source                     string
}

// nearView is the neighborhood of a stall.
type nearView struct {
	stallView
	Rows []rowView
}

type rowView struct {
	Culprit bool
	Cells   []string
}

// How much of the stalls is in the page without its script. The script has them all.
const (
	shownStalls = 100
	shownNear   = 10
	shownLinks  = 5
)

func newView(p *Page) (*view, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	order, findingOf, s := order(p.Stalls), findingOf(p), newSpan(p)
	json, err := newData(p, order, findingOf, s).marshal()
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	v := &view{
		Style: template.CSS(pageCSS), Script: template.JS(pageJS), Data: template.JS(json), Policy: policy(),
		Title: clean(p.Title), Lead: clean(p.Lead), Program: clean(p.Program),
		Facts: cleanFacts(p.Facts), Warnings: cleanAll(p.Warnings),
		Shown: shownStalls, Total: human.Count(uint64(len(p.Stalls))), All: len(p.Stalls) <= shownStalls,
	}
	if !p.Made.IsZero() {
		v.Made = p.Made.UTC().Format("2006-01-02 15:04:05")
	}
	place := make([]int, len(p.Stalls))
	for at, i := range order {
		place[i] = at
	}
	shown := longest(p.Stalls, order, shownStalls)
	for i := range p.Findings {
		v.Findings = append(v.Findings, newFindingView(p, i, place, &shown))
	}
	for _, i := range shown {
		v.Stalls = append(v.Stalls, newStallView(p, i, place[i], findingOf[i]))
	}
	v.near(p, shown, place, findingOf)
	if !s.epoch.IsZero() {
		v.Lanes = newLanes(p, findingOf, s)
		for i := range 5 {
			v.Ticks = append(v.Ticks, s.tick(i, 4))
		}
	}
	for i := range p.Threads {
		v.Threads = append(v.Threads, newThreadView(&p.Threads[i]))
		v.Plots = v.Plots || len(v.Threads[i].Plots) > 0
	}
	for i := range p.Events {
		v.Events = append(v.Events, newLineView(&p.Events[i], place))
	}
	for _, src := range p.Sources {
		v.Sources = append(v.Sources, Source{clean(src.Name), clean(src.Kind), clean(src.Note)})
	}
	return v, nil
}

// check returns what is wrong with the page's references.
func (p *Page) check() error {
	for i := range p.Stalls {
		st := &p.Stalls[i]
		if st.Thread < 0 || st.Thread >= len(p.Threads) {
			return fmt.Errorf("report: stall %d is of thread %d of %d", i, st.Thread, len(p.Threads))
		}
		if st.Culprit < -1 || st.Culprit >= len(st.Rows) {
			return fmt.Errorf("report: stall %d has culprit %d of %d rows", i, st.Culprit, len(st.Rows))
		}
	}
	for i := range p.Findings {
		for _, j := range p.Findings[i].Stalls {
			if j < 0 || j >= len(p.Stalls) {
				return fmt.Errorf("report: finding %d names stall %d of %d", i, j, len(p.Stalls))
			}
		}
	}
	for _, lines := range p.lines() {
		for i := range lines {
			if lines[i].Stall >= len(p.Stalls) {
				return fmt.Errorf("report: line %q names stall %d of %d", clean(lines[i].Text), lines[i].Stall, len(p.Stalls))
			}
		}
	}
	for i := range p.Series {
		if p.Series[i].Thread >= len(p.Threads) {
			return fmt.Errorf("report: series %d is of thread %d of %d", i, p.Series[i].Thread, len(p.Threads))
		}
	}
	return nil
}

// lines returns all lists of lines.
func (p *Page) lines() [][]Line {
	all := [][]Line{p.Events}
	for i := range p.Findings {
		all = append(all, p.Findings[i].Evidence)
	}
	return all
}

// findingOf returns of every stall the first finding that it belongs to, or -1.
func findingOf(p *Page) []int {
	of := make([]int, len(p.Stalls))
	for i := range of {
		of[i] = -1
	}
	for f := len(p.Findings) - 1; f >= 0; f-- {
		for _, i := range p.Findings[f].Stalls {
			of[i] = f
		}
	}
	return of
}

// newFindingView also adds the stalls that it links to to those that are shown.
func newFindingView(p *Page, i int, place []int, shown *[]int) findingView {
	f := &p.Findings[i]
	v := findingView{Number: i + 1, Class: colour(i), Title: clean(f.Title), Confidence: clean(f.Confidence), Text: cleanAll(f.Text), Facts: cleanFacts(f.Facts)}
	if n := len(f.Stalls); n > 0 {
		v.Count = plural(uint64(n), "stall")
	}
	for _, j := range longest(p.Stalls, f.Stalls, shownLinks) {
		if !slices.Contains(*shown, j) {
			*shown = append(*shown, j)
		}
		v.Links = append(v.Links, stallLink{place[j], duration(p.Stalls[j].Micros)})
	}
	for i := range f.Evidence {
		v.Evidence = append(v.Evidence, newLineView(&f.Evidence[i], place))
	}
	for _, s := range f.Steps {
		v.Steps = append(v.Steps, Step{clean(s.Text), clean(s.Command)})
	}
	return v
}

func newLineView(l *Line, place []int) lineView {
	v := lineView{clean(l.Source), clean(l.Text), -1}
	if l.Number > 0 {
		v.Where += ":" + strconv.Itoa(l.Number)
	}
	if l.Stall >= 0 {
		v.At = place[l.Stall]
	}
	return v
}

func newStallView(p *Page, i, at, finding int) stallView {
	st := &p.Stalls[i]
	var causes []string
	for _, c := range st.Causes {
		causes = append(causes, fmt.Sprintf("%s (%s, %.0f %%)", clean(c.Title), duration(c.Micros), c.Percent))
	}
	return stallView{
		At: at, Class: colour(finding), Time: moment(st.End), Thread: clean(p.Threads[st.Thread].Name), Length: duration(st.Micros),
		Iteration: human.Count(st.Iteration), Reasons: strings.Join(cleanAll(st.Reasons), ", "), Causes: strings.Join(causes, ", "),
		Source: clean(st.Source),
	}
}

// near takes the neighborhoods of the longest of the stalls shown.
func (v *view) near(p *Page, shown, place, findingOf []int) {
	cols, notes := usedColumns(p.Stalls)
	for _, c := range cols {
		v.Columns = append(v.Columns, c.name)
	}
	if notes {
		v.Columns = append(v.Columns, noteColumn)
	}
	for _, i := range shown {
		st := &p.Stalls[i]
		if len(st.Rows) == 0 {
			continue
		}
		if len(v.Near) == shownNear {
			break
		}
		n := nearView{stallView: newStallView(p, i, place[i], findingOf[i])}
		for j := range st.Rows {
			row := rowView{Culprit: j == st.Culprit}
			for _, c := range cols {
				row.Cells = append(row.Cells, human.Count(c.value(&st.Rows[j])))
			}
			if notes {
				row.Cells = append(row.Cells, clean(st.Rows[j].Note))
			}
			n.Rows = append(n.Rows, row)
		}
		v.Near = append(v.Near, n)
	}
}

func newThreadView(t *Thread) threadView {
	v := threadView{Name: clean(t.Name), Facts: cleanFacts(t.Facts)}
	x := 0.0
	for i, s := range t.Shares {
		w := max(0, min(known(s.Percent), 100-x))
		v.Shares = append(v.Shares, shareView{clean(s.Name), human.Percent(s.Percent), x, tenth(w), "s-" + strconv.Itoa(i%4)})
		x += w
	}
	for i := range t.Histograms {
		if plot := newPlot(&t.Histograms[i]); plot != nil {
			v.Plots = append(v.Plots, plot)
		}
	}
	return v
}

func cleanFacts(facts []Fact) []Fact {
	cleaned := make([]Fact, len(facts))
	for i, f := range facts {
		cleaned[i] = Fact{clean(f.Name), clean(f.Value)}
	}
	return cleaned
}

// plural returns "1 stall" or "12,345 stalls".
func plural(n uint64, what string) string {
	if n != 1 {
		what += "s"
	}
	return human.Count(n) + " " + what
}

// policy returns the content security policy: nothing but the page's own script and
// style, by their hashes.
func policy() string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src " + hash(pageJS) + "; style-src " + hash(pageCSS) + "; img-src data:; base-uri 'none'; form-action 'none'"
}
