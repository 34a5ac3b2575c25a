package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// Version is the version of the JSON schema of a Report. It changes when what readers
// know changes its meaning or goes away, not when there is more.
const Version = 1

// Report is what an experiment found. docs/experiments.md documents its JSON.
type Report struct {
	Version     int         `json:"version"`
	Experiment  string      `json:"experiment"`
	Began       time.Time   `json:"began"`
	Seconds     float64     `json:"seconds"`
	Interrupted bool        `json:"interrupted,omitempty"` // the rows are what there was by then
	Machine     Machine     `json:"machine"`
	Parameters  []Parameter `json:"parameters"`
	Rows        []Row       `json:"rows"`
	Notes       []string    `json:"notes,omitempty"` // a sentence each

	making // while it is made
}

// making is what is known of a report that is being made.
type making struct {
	started      time.Time
	generator    []float64 // Mpps that generators could do alone
	slices, away int       // slices of time, and those in which a thread was off its core
	unclean      int       // trials that were not repeated once more, though somebody took the core
}

// Parameter is a name with a value.
type Parameter struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Row is what was measured under one set of conditions, which the labels name. They
// tell it from all other rows of the report.
type Row struct {
	Labels    []Parameter `json:"labels"`
	Figures   []Figure    `json:"figures"`
	Histogram *Histogram  `json:"histogram,omitempty"`
}

// Figure is a number with its unit. Unit is as Go benchmarks have it: without blanks.
type Figure struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	Estimate

	// Parts are what the same figure was in consecutive parts of the time.
	Parts []float64 `json:"parts,omitempty"`
}

// Estimate is a number that was measured N times.
type Estimate struct {
	Value float64 `json:"value"`
	// Interval has the number in it with 95 % confidence; nil where that is not known.
	Interval *[2]float64 `json:"interval_95,omitempty"`
	N        int         `json:"n,omitempty"`
}

// Width returns how wide the interval is, infinity where there is none.
func (e Estimate) Width() float64 {
	if e.Interval == nil {
		return math.Inf(1)
	}
	return e.Interval[1] - e.Interval[0]
}

// Histogram counts values of the given unit.
type Histogram struct {
	Unit    string   `json:"unit"`
	Buckets []Bucket `json:"buckets"` // those that are not empty, in rising order
}

// Bucket counts the values from From to To, both included.
type Bucket struct {
	From  uint64 `json:"from"`
	To    uint64 `json:"to"`
	Count uint64 `json:"count"`
}

// Label returns the value of the row's label of that name, or "".
func (r *Row) Label(name string) string {
	for _, l := range r.Labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

// Figure returns the row's figure of that name.
func (r *Row) Figure(name string) (f Figure, ok bool) {
	i := slices.IndexFunc(r.Figures, func(f Figure) bool { return f.Name == name })
	if i < 0 {
		return Figure{}, false
	}
	return r.Figures[i], true
}

// Find returns the first row with those labels, name and value in turn, or nil.
func (r *Report) Find(labels ...string) *Row {
	for i := range r.Rows {
		row := &r.Rows[i]
		ok := true
		for j := 0; j+1 < len(labels); j += 2 {
			ok = ok && row.Label(labels[j]) == labels[j+1]
		}
		if ok {
			return row
		}
	}
	return nil
}

// begin returns a report to be filled in.
func begin(experiment string, parameters ...Parameter) *Report {
	now := time.Now()
	return &Report{
		Version: Version, Experiment: experiment, Began: now.UTC().Truncate(time.Second), Machine: thisMachine(),
		Parameters: parameters, Rows: []Row{}, making: making{started: now},
	}
}

// end says how long it took and sums up.
func (r *Report) end(ctx context.Context) {
	r.Seconds = time.Since(r.started).Seconds()
	r.Interrupted = ctx.Err() != nil
	if len(r.generator) > 0 {
		r.note("The generator alone makes %.1f Mpps at least; it runs in the receive bursts, on the core of the forwarder, and is part of every figure.", slices.Min(r.generator))
	}
	if r.away > 0 {
		r.note("In %d of %d slices a thread was off its core; they count like all others.", r.away, r.slices)
	}
}

func (r *Report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// noteOnce adds a note unless it is there.
func (r *Report) noteOnce(what string) {
	if !slices.Contains(r.Notes, what) {
		r.Notes = append(r.Notes, what)
	}
}

// warn notes what makes measurements worse.
func (r *Report) warn(what string) { r.noteOnce("Warning: " + what + ".") }

// parameter returns a parameter with the value as fmt prints it.
func parameter(name string, value any) Parameter { return Parameter{name, fmt.Sprint(value)} }

// WriteJSON writes the report as one JSON document.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// ReadJSON reads what WriteJSON wrote.
func ReadJSON(in io.Reader) (*Report, error) {
	r := new(Report)
	if err := json.NewDecoder(in).Decode(r); err != nil {
		return nil, fmt.Errorf("a report of an experiment: %w", err)
	}
	if r.Version != Version || r.Experiment == "" {
		return nil, fmt.Errorf("a report of version %d of experiment %q: want version %d", r.Version, r.Experiment, Version)
	}
	return r, nil
}
