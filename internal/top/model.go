package top

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/pmdperf/pmdperf/internal/live"
)

// Millis is how many rows of the millisecond history the model wants of its source.
const Millis = 1000

// Fetcher looks at the target; *live.Source is one. It is never called twice at the
// same time.
type Fetcher interface {
	Fetch(context.Context) (*live.Sample, error)
}

// Model is the state of the screen. It belongs to the program that runs it.
type Model struct {
	ctx      context.Context
	source   Fetcher
	target   string
	interval time.Duration

	width, height int

	last   *live.Sample // the latest look
	shown  picture      // what is on the screen
	failed error        // why the latest look failed
	gone   time.Time    // since when looks fail

	paused    bool
	tableOnly bool
	whole     bool // show what was since the last clear rather than since the look before
	sortBy    int  // column
	reversed  bool
	metric    live.Metric // of the first histogram
	selected  place
}

// place identifies a PMD.
type place struct{ core, numa int }

// picture is what two looks gave.
type picture struct {
	sample *live.Sample // the later one, nil before there is any
	rows   []row
}

// row is a line of the table.
type row struct {
	place
	span  *live.Span // since the look before; nil if the PMD did not answer
	whole *live.Span // since the last clear
	why   string     // why there is nothing to show
}

// New returns the model for one target, which is looked at every interval, until the
// context ends.
func New(ctx context.Context, source Fetcher, target string, interval time.Duration) *Model {
	return &Model{ctx: ctx, source: source, target: target, interval: interval}
}

type (
	looked struct {
		began  time.Time
		sample *live.Sample
		err    error
	}
	lookAgain struct{}
)

// patience is how long a target may take to answer before it counts as gone.
const patience = 3 * time.Second

// Init begins to look.
func (m *Model) Init() tea.Cmd { return m.look }

func (m *Model) look() tea.Msg {
	ctx, cancel := context.WithTimeout(m.ctx, max(patience, m.interval))
	defer cancel()
	began := time.Now()
	s, err := m.source.Fetch(ctx)
	return looked{began, s, err}
}

// Update takes what happened into account.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	case looked:
		m.take(msg)
		wait := max(m.interval-time.Since(msg.began), m.interval/10)
		return m, tea.Tick(wait, func(time.Time) tea.Msg { return lookAgain{} })
	case lookAgain:
		return m, m.look
	}
	return m, nil
}

// take takes the result of a look.
func (m *Model) take(l looked) {
	if l.err != nil {
		if m.failed == nil {
			m.gone = l.began
		}
		m.failed = l.err
		return
	}
	before := m.last
	m.last, m.failed = l.sample, nil
	if !m.paused {
		m.shown = picture{l.sample, rowsOf(l.sample, before)}
		m.sort()
	}
}

func rowsOf(s, before *live.Sample) []row {
	spans, wholes := s.Since(before), s.Since(nil)
	var rows []row
	for i := range spans {
		r := row{place: place{spans[i].Core, spans[i].NUMA}, span: &spans[i], whole: &wholes[i]}
		if r.span.Stalled() {
			r.why = fmt.Sprintf("no iteration was completed in the last %.1f s", r.span.Seconds)
		}
		rows = append(rows, r)
	}
	for _, x := range s.Missing {
		rows = append(rows, row{place: place{x.Core, x.NUMA}, why: x.Reason})
	}
	return rows
}

// window returns the span that the table shows, nil if there is none.
func (m *Model) window(r *row) *live.Span {
	if m.whole {
		return r.whole
	}
	return r.span
}

// sort sorts the rows: by the chosen column, what has no value last, then by core.
func (m *Model) sort() {
	c := &columns[m.sortBy]
	slices.SortStableFunc(m.shown.rows, func(a, b row) int {
		byPlace := cmp.Or(cmp.Compare(a.core, b.core), cmp.Compare(a.numa, b.numa))
		x, y := c.of(m.window(&a), a.place), c.of(m.window(&b), b.place)
		switch {
		case math.IsNaN(x) && math.IsNaN(y):
			return byPlace
		case math.IsNaN(x):
			return 1
		case math.IsNaN(y):
			return -1
		case m.descending():
			return cmp.Or(cmp.Compare(y, x), byPlace)
		}
		return cmp.Or(cmp.Compare(x, y), byPlace)
	})
}

// descending reports whether the largest comes first, as it does by default for
// everything but the names of PMDs.
func (m *Model) descending() bool { return !columns[m.sortBy].name != m.reversed }

// cursor returns the index of the selected row: the first if that PMD is gone.
func (m *Model) cursor() int {
	return max(slices.IndexFunc(m.shown.rows, func(r row) bool { return r.place == m.selected }), 0)
}

// move selects a row that is so many further down.
func (m *Model) move(by int) {
	if n := len(m.shown.rows); n > 0 {
		m.selected = m.shown.rows[min(max(m.cursor()+by, 0), n-1)].place
	}
}

// key does what a key is for.
func (m *Model) key(key string) tea.Cmd {
	switch key {
	case "q", "esc", "ctrl+c":
		return tea.Quit
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "home", "g":
		m.move(-len(m.shown.rows))
	case "end", "G":
		m.move(len(m.shown.rows))
	case "s", "right":
		m.sortBy, m.reversed = m.nextColumn(1), false
	case "S", "left":
		m.sortBy, m.reversed = m.nextColumn(-1), false
	case "r":
		m.reversed = !m.reversed
	case "p", "space":
		m.paused = !m.paused
	case "d":
		m.tableOnly = !m.tableOnly
	case "w":
		m.whole = !m.whole
	case "h", "tab":
		m.metric = (m.metric + 1) % live.NumMetrics
	case "H", "shift+tab":
		m.metric = (m.metric + live.NumMetrics - 1) % live.NumMetrics
	}
	m.sort()
	return nil
}

// nextColumn returns the next of the columns on the screen that can be sorted by.
func (m *Model) nextColumn(step int) int {
	on := fit(m.width)
	at := slices.Index(on, m.sortBy)
	for range on {
		at = (at + step + len(on)) % len(on)
		if columns[on[at]].value != nil || columns[on[at]].name {
			break
		}
	}
	return on[at]
}
