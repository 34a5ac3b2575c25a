package report

import (
	"encoding/json"
	"math"
	"strconv"
)

// data is what the page's script gets, as JSON. Stalls are in the order of time, their
// properties in a list each, as there may be many. Times are microseconds from Epoch on.
type data struct {
	Epoch    float64       `json:"epoch"` // milliseconds since 1970
	Yearless bool          `json:"yearless,omitempty"`
	From     float64       `json:"from"`
	To       float64       `json:"to"`
	Threads  []threadData  `json:"threads"`
	Findings []findingData `json:"findings"`
	Words    []string      `json:"words"`
	Stalls   stallData     `json:"stalls"`
	Columns  []string      `json:"columns"` // of all neighborhoods
	Series   []seriesData  `json:"series"`
}

type threadData struct {
	Name string  `json:"name"`
	Hz   float64 `json:"hz,omitempty"`
}

type findingData struct {
	Title  string `json:"title"`
	Stalls []int  `json:"stalls"`
}

type stallData struct {
	Thread    []int        `json:"thread"`
	End       []*float64   `json:"end"` // null if unknown
	Micros    []float64    `json:"us"`
	Iteration []num        `json:"iteration"`
	Finding   []int        `json:"finding"` // the first that it belongs to, or -1
	Detail    []detailData `json:"detail"`
}

type detailData struct {
	Source  int         `json:"source,omitempty"`  // index into Words
	Reasons []int       `json:"reasons,omitempty"` // indices into Words
	Causes  []causeData `json:"causes,omitempty"`
	Culprit int         `json:"culprit"`
	Rows    [][]num     `json:"rows,omitempty"` // by Columns; a note is an index into Words
}

type causeData struct {
	Title    string  `json:"title"`
	Micros   float64 `json:"us"`
	Percent  float64 `json:"percent"`
	How      string  `json:"how"`
	Evidence string  `json:"evidence,omitempty"`
}

type seriesData struct {
	Name   string       `json:"name"`
	Unit   string       `json:"unit"`
	Thread int          `json:"thread"`
	Alarm  bool         `json:"alarm,omitempty"`
	Points [][3]float64 `json:"points"` // from, to, value
}

// num is a whole number. JavaScript's numbers are exact up to 2^53; larger ones become
// strings, of which the page wants nothing but their digits.
type num uint64

// MarshalJSON writes n as a number if that is exact, else as a string.
func (n num) MarshalJSON() ([]byte, error) {
	if n > 1<<53 {
		return strconv.AppendQuote(nil, strconv.FormatUint(uint64(n), 10)), nil
	}
	return strconv.AppendUint(nil, uint64(n), 10), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *num) UnmarshalJSON(b []byte) error {
	if len(b) > 1 && b[0] == '"' {
		b = b[1 : len(b)-1]
	}
	v, err := strconv.ParseUint(string(b), 10, 64)
	*n = num(v)
	return err
}

// words collects texts that recur, each once. The first is the empty one.
type words struct {
	all   []string
	index map[string]int
}

func (w *words) add(s string) int {
	if w.index == nil {
		w.all, w.index = []string{""}, map[string]int{"": 0}
	}
	s = clean(s)
	i, ok := w.index[s]
	if !ok {
		i = len(w.all)
		w.all, w.index[s] = append(w.all, s), i
	}
	return i
}

// column is a column of neighborhoods.
type column struct {
	name  string // in the page
	value func(*Row) uint64
	rare  bool // only shown if there is anything in it
}

func columns() []column {
	return []column{
		{"iteration", func(r *Row) uint64 { return r.Iteration }, false},
		{"cycles", func(r *Row) uint64 { return r.Cycles }, false},
		{"sleep µs", func(r *Row) uint64 { return uint64(known(r.SleepMicros) + .5) }, true},
		{"rx", func(r *Row) uint64 { return r.Rx }, false},
		{"tx", func(r *Row) uint64 { return r.Tx }, true},
		{"drops", func(r *Row) uint64 { return r.Drops }, true},
		{"cycles/pkt", func(r *Row) uint64 { return r.CyclesPerPacket }, false},
		{"pkts/batch", func(r *Row) uint64 { return r.PacketsPerBatch }, false},
		{"queue fill", func(r *Row) uint64 { return r.Fill }, false},
		{"upcalls", func(r *Row) uint64 { return r.Upcalls }, false},
		{"cycles/upcall", func(r *Row) uint64 { return r.CyclesPerUpcall }, false},
	}
}

// noteColumn is the last column, if any row has a note.
const noteColumn = "note"

// usedColumns returns the columns that the page's neighborhoods need.
func usedColumns(stalls []Stall) (used []column, notes bool) {
	all := columns()
	filled := make([]bool, len(all))
	for i := range stalls {
		for j := range stalls[i].Rows {
			r := &stalls[i].Rows[j]
			notes = notes || r.Note != ""
			for k := range all {
				filled[k] = filled[k] || !all[k].rare || all[k].value(r) > 0
			}
		}
	}
	for k := range all {
		if filled[k] || !all[k].rare {
			used = append(used, all[k])
		}
	}
	return used, notes
}

// newData returns the data of a page whose stalls are to be shown in that order.
func newData(p *Page, order, findingOf []int, s span) *data {
	d := &data{
		Epoch: float64(s.epoch.UnixMicro()) / 1e3, Yearless: s.epoch.Year() <= 0, From: s.from, To: s.to,
		Threads: []threadData{}, Findings: []findingData{}, Columns: []string{}, Series: []seriesData{},
		Stalls: stallData{Thread: []int{}, End: []*float64{}, Micros: []float64{}, Iteration: []num{}, Finding: []int{}, Detail: []detailData{}},
	}
	for i := range p.Threads {
		d.Threads = append(d.Threads, threadData{clean(p.Threads[i].Name), known(p.Threads[i].Hz)})
	}
	place := make([]int, len(p.Stalls)) // of a stall in the order
	for at, i := range order {
		place[i] = at
	}
	for i := range p.Findings {
		f := findingData{Title: clean(p.Findings[i].Title), Stalls: []int{}}
		for _, j := range p.Findings[i].Stalls {
			f.Stalls = append(f.Stalls, place[j])
		}
		d.Findings = append(d.Findings, f)
	}
	cols, notes := usedColumns(p.Stalls)
	for _, c := range cols {
		d.Columns = append(d.Columns, c.name)
	}
	if notes {
		d.Columns = append(d.Columns, noteColumn)
	}
	var w words
	for _, i := range order {
		st, t := &p.Stalls[i], &d.Stalls
		t.Thread = append(t.Thread, st.Thread)
		if st.End.IsZero() {
			t.End = append(t.End, nil)
		} else {
			t.End = append(t.End, new(s.micros(st.End)))
		}
		t.Micros = append(t.Micros, thousandths(known(st.Micros)))
		t.Iteration = append(t.Iteration, num(st.Iteration))
		t.Finding = append(t.Finding, findingOf[i])
		t.Detail = append(t.Detail, newDetail(st, cols, notes, &w))
	}
	w.add("")
	d.Words = w.all
	for i := range p.Series {
		d.Series = append(d.Series, newSeries(&p.Series[i], s))
	}
	return d
}

func newDetail(st *Stall, cols []column, notes bool, w *words) detailData {
	d := detailData{Source: w.add(st.Source), Culprit: st.Culprit}
	for _, r := range st.Reasons {
		d.Reasons = append(d.Reasons, w.add(r))
	}
	for _, c := range st.Causes {
		d.Causes = append(d.Causes, causeData{clean(c.Title), thousandths(known(c.Micros)), known(c.Percent), clean(c.How), clean(c.Evidence)})
	}
	for i := range st.Rows {
		row := make([]num, 0, len(cols)+1)
		for _, c := range cols {
			row = append(row, num(c.value(&st.Rows[i])))
		}
		if notes {
			row = append(row, num(w.add(st.Rows[i].Note)))
		}
		d.Rows = append(d.Rows, row)
	}
	return d
}

func newSeries(x *Series, s span) seriesData {
	d := seriesData{Name: clean(x.Name), Unit: clean(x.Unit), Thread: x.Thread, Alarm: x.Alarm, Points: [][3]float64{}}
	for _, p := range x.Points {
		if !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0) {
			d.Points = append(d.Points, [3]float64{s.micros(p.From), s.micros(p.To), p.Value})
		}
	}
	return d
}

// marshal returns the data as JSON that may stand in a script element: encoding/json
// writes <, > and & as escapes.
func (d *data) marshal() ([]byte, error) { return json.Marshal(d) }
