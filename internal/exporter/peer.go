package exporter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/suspicious"
)

// maxReply is the length in bytes of the longest reply that is taken. A thread
// takes some 6 KB of text and 40 KB of JSON, so that hundreds of threads fit.
const maxReply = 16 << 20

// The commands that a target is asked for.
const (
	perfShow  = "dpif-netdev/pmd-perf-show"
	statsShow = "dpif-netdev/pmd-stats-show"
	rxqShow   = "dpif-netdev/pmd-rxq-show"
	sleepShow = "dpif-netdev/pmd-sleep-show"
	events    = "pmdperf/events"
)

// reading is what a target answered: a document if the recorder in it is ours, and
// else the texts of Open vSwitch.
type reading struct {
	sent, arrived time.Time // of pmd-perf-show

	document *document

	perf  *ovs.PerfReport
	stats *ovs.StatsReport
	rxq   *ovs.RxqReport
	sleep *ovs.SleepReport // nil before Open vSwitch 3.2
}

// mostThreads is how many threads a target may have, and how many threads of before are
// remembered: as many as the largest machine that Linux runs on has processors.
const mostThreads = 8192

// check returns an error if there are more threads than there can be: all of them would
// become series.
func (r *reading) check() error {
	n := 0
	if r.document != nil {
		n = len(r.document.Threads) + len(r.document.Missing)
	}
	if r.perf != nil {
		n += len(r.perf.Blocks)
	}
	if r.stats != nil {
		n = max(n, len(r.stats.Blocks))
	}
	if r.rxq != nil {
		n = max(n, len(r.rxq.Blocks))
	}
	if r.sleep != nil {
		n = max(n, len(r.sleep.Blocks))
	}
	if n > mostThreads {
		return fmt.Errorf("the answer is about %d threads, which are too many", n)
	}
	return nil
}

// document is the answer of a program that our recorder is in.
type document struct {
	ovs.Document
	Missing []missing `json:"missing"`

	events []suspicious.FlightRecord // the last ones, newest first
}

// missing is a PMD that did not answer the program that it is in.
type missing struct {
	Name    string   `json:"name"`
	Core    int      `json:"core"`
	NUMA    int      `json:"numa"`
	Seconds *float64 `json:"stalled_seconds"`
}

// peer is the connection to a target. It is not safe for concurrent use.
type peer struct {
	target string
	client *appctl.Client
	text   bool // it has no JSON that we understand
	pid    int  // its process, 0 if unknown
}

func (p *peer) close() {
	if p.client != nil {
		p.client.Close()
		p.client = nil
	}
}

// ask asks the target for everything. A connection of before may belong to a program
// that has ended since: then it is made anew, once.
func (p *peer) ask(ctx context.Context) (*reading, error) {
	reused := p.client != nil
	r, err := p.askOnce(ctx)
	if reused && (errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET)) {
		r, err = p.askOnce(ctx)
	}
	return r, err
}

func (p *peer) askOnce(ctx context.Context) (*reading, error) {
	if err := p.connect(ctx); err != nil {
		return nil, err
	}
	r, err := p.read(ctx)
	if err != nil {
		p.close()
	}
	return r, err
}

func (p *peer) connect(ctx context.Context) error {
	if p.client != nil {
		return nil
	}
	p.text = false
	if err := p.dial(ctx); err != nil {
		return err
	}
	err := p.client.SetJSON(ctx)
	if _, refused := errors.AsType[*appctl.ServerError](err); refused {
		p.text, err = true, nil // Open vSwitch up to 3.3
	}
	if err != nil {
		p.close()
	}
	return err
}

func (p *peer) dial(ctx context.Context) error {
	socket, err := appctl.Resolve("", p.target)
	if err != nil {
		return err
	}
	p.pid = pidOf(socket)
	if p.client, err = appctl.Dial(ctx, socket); err != nil {
		return err
	}
	p.client.LimitReply(maxReply)
	return nil
}

func (p *peer) read(ctx context.Context) (*reading, error) {
	if !p.text {
		r, err := p.readDocument(ctx)
		if r != nil || err != nil {
			return r, err
		}
		// It speaks JSON, but not ours. Texts it has, on a connection of its own.
		p.close()
		if err := p.dial(ctx); err != nil {
			return nil, err
		}
		p.text = true
	}
	return p.readTexts(ctx)
}

// readDocument returns nil if the target's answer is no document.
func (p *peer) readDocument(ctx context.Context) (*reading, error) {
	r := &reading{sent: time.Now()}
	text, err := p.client.Call(ctx, perfShow)
	if err != nil {
		return nil, err
	}
	r.arrived = time.Now()
	if r.document, err = parseDocument(text); r.document == nil || err != nil {
		return nil, err
	}
	if r.document.events, err = p.readEvents(ctx); err != nil {
		return nil, err
	}
	if hasMain(&r.document.Document) {
		return r, nil
	}
	// The main thread, which need not be there, is always in pmd-stats-show.
	text, err = p.client.Call(ctx, statsShow)
	if err != nil {
		return nil, err
	}
	stats, err := parseDocument(text)
	if err != nil {
		return nil, err
	}
	if stats != nil {
		for i := range stats.Threads {
			if t := &stats.Threads[i]; t.Kind == "main" {
				r.document.Threads = append(r.document.Threads, *t)
			}
		}
	}
	return r, nil
}

// readEvents returns the target's last suspicious iterations, none if it keeps none.
func (p *peer) readEvents(ctx context.Context) ([]suspicious.FlightRecord, error) {
	text, err := p.client.Call(ctx, events)
	if _, refused := errors.AsType[*appctl.ServerError](err); refused {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var answer struct {
		Events []suspicious.FlightRecord `json:"events"`
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return nil, fmt.Errorf("%s: the answer is not understood: %w", events, err)
	}
	return answer.Events, nil
}

func hasMain(d *ovs.Document) bool {
	for i := range d.Threads {
		if d.Threads[i].Kind == "main" {
			return true
		}
	}
	return false
}

// parseDocument returns nil without an error if the text is JSON of somebody else.
func parseDocument(text string) (*document, error) {
	var d struct {
		document
		Threads *[]ovs.Recorded `json:"threads"` // tells a document from any other object
	}
	err := json.Unmarshal([]byte(text), &d)
	var other *json.UnmarshalTypeError
	switch {
	case errors.As(err, &other):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the answer is not understood: %w", err)
	case d.Threads == nil || d.Version == 0:
		return nil, nil
	case d.Version != ovs.DocumentVersion:
		return nil, fmt.Errorf("the answer has version %d, this program reads version %d", d.Version, ovs.DocumentVersion)
	}
	d.document.Threads = *d.Threads
	return &d.document, nil
}
