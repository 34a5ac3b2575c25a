package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"
)

// Page is what a report tells. Parts that are empty are left out. Write does not
// change it.
type Page struct {
	Title   string
	Lead    string    // a sentence below the title: what was looked at, and what came of it
	Program string    // that made it, with its version
	Made    time.Time // when

	Facts    []Fact    // the few figures to be seen first
	Warnings []string  // what was wrong with what was read
	Findings []Finding // the most important first
	Threads  []Thread
	Stalls   []Stall // of all threads, in any order
	Series   []Series
	Events   []Line // what else happened, or was counted
	Sources  []Source
}

// Fact is a figure and what it is of.
type Fact struct{ Name, Value string }

// Thread is a poll-mode thread.
type Thread struct {
	Name       string
	Core       int     // -1 if unknown
	Hz         float64 // ticks in a second, 0 if unknown
	Facts      []Fact
	Shares     []Share // of its time, at most 100 % together
	Histograms []Histogram
}

// Share is a part of a thread's time.
type Share struct {
	Name    string
	Percent float64
}

// Series is something that was counted over time.
type Series struct {
	Name   string
	Unit   string // of a value, "packets"
	Thread int    // index of the thread that it is of, negative if of none
	// Alarm says that a rise is bad news: it is shown across the threads' timelines.
	Alarm  bool
	Points []Point // in the order of time
}

// Point is how much was counted in a time.
type Point struct {
	From, To time.Time
	Value    float64
}

// Source is something that was read.
type Source struct{ Name, Kind, Note string }

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
)

// Write writes the page as an HTML file.
func (p *Page) Write(w io.Writer) error {
	t, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	v, err := newView(p)
	if err != nil {
		return err
	}
	if err := t.Execute(w, v); err != nil {
		return fmt.Errorf("report: write the page: %w", err)
	}
	return nil
}
