package observe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/perf/tsc"
	"github.com/pmdperf/pmdperf/suspicious/cause"
	"github.com/pmdperf/pmdperf/suspicious/ovslog"
)

// Config says what to observe.
type Config struct {
	// Find returns the process. It is called again when that has ended; an error then
	// means that it is not there yet. nil with Again leaves it at the first.
	Find func() (pid int, err error)
	// Again goes on with the next process when the first has ended.
	Again bool

	Threads   string        // pattern of the threads' names, see Match; "" for "pmd-c*"
	Threshold time.Duration // the shortest spell that is told; 0 for 1 ms
	Log       string        // file with suspicious iterations to explain; "" for none
	Probes    cause.Options
}

const (
	// DefaultThreads is what Open vSwitch calls its poll-mode threads.
	DefaultThreads = "pmd-c*"
	// DefaultThreshold is longer than Open vSwitch lets a thread with little to do sleep.
	DefaultThreshold = time.Millisecond
)

// How often things are looked at.
const (
	tellEvery = 100 * time.Millisecond
	scanEvery = 250 * time.Millisecond
)

// ErrNoThreads says that no thread was there to be observed.
var ErrNoThreads = errors.New("no thread was there to be observed")

// Run observes a process until ctx ends, or until the process has, and hands what it
// finds to tell, from its own goroutine. The last record is the [*Summary]. The error
// says that there is no such process or log, or is [ErrNoThreads]; then there is a summary
// all the same.
func Run(ctx context.Context, cfg Config, tell func(Record)) error {
	if cfg.Threads == "" {
		cfg.Threads = DefaultThreads
	}
	if cfg.Threshold <= 0 {
		cfg.Threshold = DefaultThreshold
	}
	o := &observer{cfg: cfg, tell: tell, hz: tsc.System().Hz(), watched: make(map[int]*watcher), was: make(map[int][]cause.Line), cores: make(map[int]*CoreSummary)}
	var err error
	if o.pid, err = cfg.Find(); err != nil {
		return err
	}
	if cfg.Log != "" {
		if o.log, err = follow(cfg.Log); err != nil {
			return fmt.Errorf("log: %w", err)
		}
		defer o.log.close()
	}
	o.sum = Summary{Begin: time.Now().UTC(), Threshold: cfg.Threshold, Threads: []ThreadSummary{}, Cores: []CoreSummary{}}
	if _, err := tasks(o.pid, cfg.Threads); err != nil {
		return err
	}
	o.run(ctx)
	if len(o.sum.Threads) == 0 {
		return ErrNoThreads
	}
	return nil
}

// observer is an observation under way.
type observer struct {
	cfg     Config
	tell    func(Record)
	hz      float64
	pid     int // 0 while the process is not there
	log     *follower
	watched map[int]*watcher // by thread id
	late    []*watcher       // gone, but the log may still tell of them
	was     map[int][]cause.Line
	cores   map[int]*CoreSummary
	sum     Summary
	aside   aside
}

func (o *observer) run(ctx context.Context) {
	defer o.aside.back()
	o.scan()
	ticks := time.NewTicker(tellEvery)
	defer ticks.Stop()
	scanned := time.Now()
	for ctx.Err() == nil && (o.pid != 0 || o.cfg.Again) {
		select {
		case <-ctx.Done():
		case now := <-ticks.C:
			o.spells(false)
			o.iterations(now, false)
			if now.Sub(scanned) >= scanEvery {
				o.scan()
				scanned = now
			}
		}
	}
	o.spells(true)
	o.iterations(time.Now(), true)
	for _, tid := range slices.Sorted(maps.Keys(o.watched)) {
		o.end(o.watched[tid])
	}
	o.finish()
}

// scan looks which threads there are.
func (o *observer) scan() {
	if o.pid == 0 {
		pid, err := o.cfg.Find()
		if err != nil {
			return
		}
		o.pid = pid
	}
	list, err := tasks(o.pid, o.cfg.Threads)
	if err != nil {
		o.pid = 0
	}
	there := make(map[int]bool)
	for _, t := range list {
		there[t.tid] = true
		if w := o.watched[t.tid]; w != nil {
			if w.task == t {
				continue
			}
			o.lose(w) // renamed, moved to another core, or another one
		}
		w, err := watch(t, o.cfg.Probes, o.cfg.Threshold)
		if err != nil {
			continue // it has ended
		}
		o.watched[t.tid] = w
		if _, ok := o.was[t.core]; !ok && t.core >= 0 {
			o.was[t.core] = cause.CoreInterrupts(t.core)
		}
		o.tell(&Thread{Time: time.Now().UTC(), PID: o.pid, TID: t.tid, Name: t.name, Core: t.core, Watched: true, Probes: w.probes.Report()})
	}
	for _, tid := range slices.Sorted(maps.Keys(o.watched)) {
		if !there[tid] {
			o.lose(o.watched[tid])
		}
	}
	var cores unix.CPUSet
	for _, w := range o.watched {
		if w.core >= 0 {
			cores.Set(w.core)
		}
	}
	o.aside.keepOff(cores)
}

// lose ends the watching of a thread that is gone.
func (o *observer) lose(w *watcher) {
	for _, s := range w.tell(monotonic(), true) {
		o.tell(s)
	}
	o.end(w)
	o.tell(&Thread{Time: time.Now().UTC(), PID: o.pid, TID: w.tid, Name: w.name, Core: w.core})
}

// end sums up a thread.
func (o *observer) end(w *watcher) {
	delete(o.watched, w.tid)
	o.sum.Threads = append(o.sum.Threads, w.close())
	const most = 64
	o.late = append(o.late, w)
	o.late = o.late[max(0, len(o.late)-most):]
	if w.core < 0 {
		return
	}
	c := o.cores[w.core]
	if c == nil {
		c = &CoreSummary{Core: w.core, Lines: []cause.Line{}}
		o.cores[w.core] = c
	}
	c.Timed += w.interrupts
	c.Knows = c.Knows || w.timed
}

// spells tells the spells of all threads, in the order of their ends.
func (o *observer) spells(last bool) {
	var list []*Spell
	now := monotonic()
	for _, w := range o.watched {
		list = append(list, w.tell(now, last)...)
	}
	slices.SortStableFunc(list, func(a, b *Spell) int { return a.end().Compare(b.end()) })
	for _, s := range list {
		o.tell(s)
	}
}

// iterations tells what the log has.
func (o *observer) iterations(now time.Time, last bool) {
	if o.log == nil {
		return
	}
	text := o.log.poll(now, last)
	if len(text) == 0 {
		return
	}
	r := ovslog.NewReader(bytes.NewReader(text))
	for rec := range r.Records() {
		e, ok := rec.(*ovslog.Event)
		if !ok || !e.HasHeader {
			continue
		}
		it := join(e, o.watcher(e.Thread), o.hz)
		o.sum.Iterations++
		if len(it.Spells) > 0 {
			o.sum.Explained++
		}
		o.tell(it)
	}
	o.sum.Unread += r.Stats().Unread
}

// watcher returns who watches a thread of the log, or watched it, or nil.
func (o *observer) watcher(thread string) *watcher {
	for _, w := range o.watched {
		if named(thread, w.name) {
			return w
		}
	}
	for _, w := range slices.Backward(o.late) {
		if named(thread, w.name) {
			return w
		}
	}
	return nil
}

// finish tells the summary.
func (o *observer) finish() {
	o.sum.Took = time.Since(o.sum.Begin)
	for _, core := range slices.Sorted(maps.Keys(o.cores)) {
		c := o.cores[core]
		if lines := cause.Moved(o.was[core], cause.CoreInterrupts(core)); lines != nil {
			c.Lines = lines
		}
		o.sum.Cores = append(o.sum.Cores, *c)
	}
	o.tell(&o.sum)
}
