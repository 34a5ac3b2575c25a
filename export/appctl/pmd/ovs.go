package pmd

import (
	"context"
	"io"

	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/perf"
)

// report is the answer of a command that Open vSwitch has.
type report struct {
	*call
	print func(w io.Writer)
	data  func() any
}

func (r report) write(w io.Writer) {
	r.print(w)
	io.WriteString(w, r.lines())
}

func (r report) json() any { return r.data() }

// printout is memory for pmd-perf-show.
type printout struct {
	report ovs.PerfReport
	text   []byte
}

func (c *call) printPerf(w io.Writer, o ovs.Options) {
	p := c.printouts.Get().(*printout)
	defer c.printouts.Put(p)
	p.report.Build(c.snaps, o)
	p.text, _ = p.report.AppendText(p.text[:0])
	w.Write(p.text)
}

// document is the JSON of pmd-perf-show and pmd-stats-show.
type document struct {
	*ovs.Document
	remarks
}

// newDocument returns the document of what was looked at. Without histograms it
// has just counters and the histories.
func (c *call) newDocument(o ovs.Options) any {
	d := c.document(o)
	if o.NoHistograms {
		for i := range d.Threads {
			d.Threads[i].Histograms = nil
		}
	}
	return document{d, c.remarks}
}

func perfShow(ctx context.Context, c *call) (answer, error) {
	o := ovs.Options{NoHistograms: c.flags["-nh"], MainThread: c.MainThread, Fine: !c.flags["-nh"], Reports: c.Reports}
	rows := func(option, what string) int {
		n := c.numbers[option]
		if n > history.Shown {
			c.note("the history is of the last %d %s, which is all that %s %d can show", history.Shown, what, option, n)
			n = history.Shown
		}
		return int(n)
	}
	o.Iterations = rows("-it", "iterations")
	o.Milliseconds = rows("-ms", "milliseconds")
	if err := c.look(ctx, perf.Want{Iterations: o.Iterations, Millis: o.Milliseconds}); err != nil {
		return nil, err
	}
	if c.MainThread {
		c.addMain()
	}
	return report{c,
		func(w io.Writer) { c.printPerf(w, o) },
		func() any { return c.newDocument(o) }}, nil
}

func statsShow(ctx context.Context, c *call) (answer, error) {
	if err := c.look(ctx, perf.Want{}); err != nil {
		return nil, err
	}
	c.addMain()
	return report{c,
		func(w io.Writer) { io.WriteString(w, ovs.BuildStats(c.snaps, ovs.Options{}).String()) },
		func() any { return c.newDocument(ovs.Options{NoHistograms: true}) }}, nil
}

// cleared is the answer of pmd-stats-clear: an empty text, like the original's.
type cleared struct {
	Cores      []int `json:"cleared_cores"`
	MainThread bool  `json:"main_thread_cleared"`
}

func (cleared) write(io.Writer) {}
func (c cleared) json() any     { return c }

func statsClear(ctx context.Context, c *call) (answer, error) {
	done := cleared{Cores: []int{}}
	for _, r := range c.pmds {
		done.Cores = append(done.Cores, r.Core())
	}
	if _, named := c.core(); !named && c.registry.HasShared() {
		c.registry.Shared().Clear()
		done.MainThread = true
	}
	err := c.change(ctx, "not cleared", func(ctx context.Context, _ int, r *perf.Recorder) error { return r.Clear(ctx) })
	return done, err
}

// rxqData is the JSON of pmd-rxq-show.
type rxqData struct {
	Seconds int         `json:"seconds"` // that the usage is of, at most
	Threads []rxqThread `json:"threads"`
	remarks
}

type rxqThread struct {
	Core     int        `json:"core"`
	NUMA     int        `json:"numa"`
	Isolated bool       `json:"isolated"`
	Queues   []rxqQueue `json:"queues"`
	Overhead *int       `json:"overhead_percent_of_all_cycles,omitempty"`
}

type rxqQueue struct {
	Port    string `json:"port"`
	Queue   int    `json:"queue"`
	Enabled bool   `json:"enabled"`
	Percent *int   `json:"busy_percent_of_all_cycles,omitempty"` // absent in the first seconds
}

func rxqShow(ctx context.Context, c *call) (answer, error) {
	if err := c.look(ctx, perf.Want{}); err != nil {
		return nil, err
	}
	seconds := ovs.UsageSeconds(int(c.numbers["-secs"]))
	r := ovs.BuildRxq(c.snaps, seconds, ovs.Options{})
	return report{c, func(w io.Writer) { io.WriteString(w, r.String()) }, func() any {
		d := rxqData{Seconds: seconds, Threads: []rxqThread{}, remarks: c.remarks}
		for _, b := range r.Blocks {
			t := rxqThread{Core: b.Thread.Core, NUMA: b.Thread.NUMA, Isolated: *b.Isolated, Queues: []rxqQueue{}}
			for _, q := range b.Queues {
				t.Queues = append(t.Queues, rxqQueue{q.Port, q.Queue, q.Enabled, percent(q.Usage)})
			}
			if b.Overhead != nil {
				t.Overhead = percent(*b.Overhead)
			}
			d.Threads = append(d.Threads, t)
		}
		return d
	}}, nil
}

func percent(u ovs.Usage) *int {
	if !u.Known {
		return nil
	}
	return &u.Percent
}

// sleepData is the JSON of pmd-sleep-show.
type sleepData struct {
	Default uint64        `json:"default_max_sleep_us"`
	Threads []sleepThread `json:"threads"`
	remarks
}

type sleepThread struct {
	Core     int    `json:"core"`
	NUMA     int    `json:"numa"`
	MaxSleep uint64 `json:"max_sleep_us"`
}

func sleepShow(ctx context.Context, c *call) (answer, error) {
	if err := c.look(ctx, perf.Want{}); err != nil {
		return nil, err
	}
	r := ovs.BuildSleep(c.snaps, c.MaxSleep, ovs.Options{})
	return report{c, func(w io.Writer) { io.WriteString(w, r.String()) }, func() any {
		d := sleepData{Default: uint64(max(0, c.MaxSleep).Microseconds()), Threads: []sleepThread{}, remarks: c.remarks}
		for _, b := range r.Blocks {
			d.Threads = append(d.Threads, sleepThread{b.Thread.Core, b.Thread.NUMA, *b.MaxSleep})
		}
		return d
	}}, nil
}
