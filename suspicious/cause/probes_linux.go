package cause

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// How often each group of counters is read, in multiples of readEvery, and how many
// readings are kept: two seconds of the first two.
const (
	systemEvery = 10
	linesEvery  = 100
	followEvery = 1000

	keepTask   = 2048
	keepSystem = 256
	keepLines  = 32
)

// source delivers context switches.
type source interface {
	drain(add func(event)) (all bool)
	close()
}

// Probes watch one thread. A goroutine of their own reads counters every millisecond
// and fetches what the kernel recorded; the thread itself does nothing for it.
//
// Any goroutine may call the methods, Close only once and last.
type Probes struct {
	tid, core int
	own       bool // the thread is of this process
	named     bool
	states    bool
	timed     bool
	price     int64
	report    []Status
	stop      chan struct{}
	done      chan struct{}

	mu       sync.Mutex // guards what follows
	task     *taskProbe
	system   *systemProbe
	lines    *lineProbe // may be nil
	bpf      *bpfProbe  // the source, if it is that
	source   source     // may be nil
	switches *switches
	runtime  *collector // nil for another process
	reader   procFile   // schedstat of the reader's thread
	rounds   int
	buf      [128]byte

	tasks   ring[stamped[taskReading]]
	systems ring[stamped[systemReading]]
	counts  ring[stamped[[]Line]]
}

// Open starts watching the thread tid, of this process or another, which is the only
// one on core; core is -1 if it is on none of its own. What the privileges or the
// system don't allow is left out; Report says what. The error says that there is no such
// thread.
func Open(tid, core int, o Options) (*Probes, error) {
	pid, err := processOf(tid)
	if err != nil {
		return nil, fmt.Errorf("no thread %d: %w", tid, err)
	}
	p := &Probes{
		reader: procFile{-1},
		tid:    tid, core: core, own: pid == os.Getpid(), price: faultPrice(),
		stop: make(chan struct{}), done: make(chan struct{}),
		tasks:   ring[stamped[taskReading]]{size: keepTask},
		systems: ring[stamped[systemReading]]{size: keepSystem},
		counts:  ring[stamped[[]Line]]{size: keepLines},
	}
	p.openSource(o.Most)
	var more []Status
	p.task, more = openTask(pid, tid)
	p.report = append(p.report, more...)
	p.system, more = openSystem(pid, tid, core)
	p.report = append(p.report, more...)
	p.lines, more = openLines(core)
	p.report = append(p.report, more...)
	err = nil
	if p.own {
		p.runtime = newCollector()
	} else {
		err = errors.New("the thread is of another process")
	}
	p.report = append(p.report, statusOf("Go runtime's collections and stops", err))
	ready := make(chan struct{})
	go p.run(ready)
	<-ready
	return p, nil
}

// openSource opens the most telling source of context switches that there is.
func (p *Probes) openSource(most Source) {
	const (
		bpfWhat  = "context switches by BPF (who ran instead, state, system call, interrupts)"
		coreWhat = "context switches of the core by perf_event_open (who ran instead)"
		ownWhat  = "context switches of the thread by perf_event_open (when, preempted or not)"
	)
	better := errors.New("not needed: a better one runs")
	unwanted := errors.New("not wanted")
	found := false
	try := func(s Source, what string, open func() error) {
		var err error
		switch {
		case found:
			err = better
		case s < most:
			err = unwanted
		default:
			err = open()
			found = err == nil
		}
		p.report = append(p.report, statusOf(what, err))
	}
	try(BPF, bpfWhat, func() (err error) {
		if p.bpf, err = openBPF(p.tid, p.core); err == nil {
			p.source, p.named, p.states, p.timed = p.bpf, true, true, p.bpf.irqs
		}
		return err
	})
	try(PerfCore, coreWhat, func() error {
		if !p.pinned() {
			return errNoCore
		}
		s, err := openPerfWide(p.tid, p.core)
		if err == nil {
			p.source, p.named = s, true
		}
		return err
	})
	try(PerfThread, ownWhat, func() error {
		s, err := openPerf(p.tid)
		if err == nil {
			p.source = s
		}
		return err
	})
	p.switches = newSwitches(monotonic(), callName)
}

// pinned reports whether the thread may run on its core only.
func (p *Probes) pinned() bool {
	var set unix.CPUSet
	if p.core < 0 || unix.SchedGetaffinity(p.tid, &set) != nil {
		return false
	}
	return set.Count() == 1 && set.IsSet(p.core)
}

// Report says which probes run, and why the others don't.
func (p *Probes) Report() []Status { return slices.Clone(p.report) }

// Close stops the probes. What Mark returned is gone then.
func (p *Probes) Close() error {
	close(p.stop)
	<-p.done
	if p.source != nil {
		p.source.close()
	}
	p.reader.close()
	p.task.close()
	p.system.close()
	if p.lines != nil {
		p.lines.close()
	}
	return nil
}

// Mark returns a word that the kernel changes whenever the thread left its core or came
// back, and at times that it did not. The loop may compare it with what it was a pass
// ago, which costs no system call. It is nil where no source has one, and must not be
// read after Close.
func (p *Probes) Mark() *uint64 {
	switch s := p.source.(type) {
	case *bpfProbe:
		return s.word(headNext)
	case *perfProbe:
		return &s.page().Data_head
	}
	return nil
}

// run is the reader. It keeps to one thread, so that it can tell a stop of the process
// from a want of cores: only the latter makes that thread wait. A ticker wakes it in two
// steps then, which costs the core that it runs on a little; a sleep in a system call
// would keep the runtime's monitor awake, and that doubles how often it parks the loop.
func (p *Probes) run(ready chan<- struct{}) {
	defer close(p.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p.mu.Lock()
	p.reader, _ = openProc("/proc/thread-self/schedstat")
	p.mu.Unlock()
	p.round()
	close(ready)
	t := time.NewTicker(readEvery)
	defer t.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-t.C:
			p.round()
		}
	}
}

// round takes the readings that are due.
func (p *Probes) round() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drain()
	p.readTask()
	if p.rounds%systemEvery == 0 {
		p.readSystem()
	}
	if p.rounds%linesEvery == 0 && p.lines != nil && !p.timed {
		p.readLines()
	}
	if p.rounds%followEvery == followEvery-1 {
		p.system.follow()
	}
	p.rounds++
}

// drains is how often an event is looked for that is not there yet.
const drains = 4

// drain fetches the context switches, and reports whether these are all.
func (p *Probes) drain() bool {
	return p.source == nil || p.source.drain(func(e event) {
		if e.comm == "" && e.pid > 0 && (e.kind == evOut || e.kind == evOther && p.switches.open != nil) {
			e.comm = commOf(e.pid)
		}
		p.switches.add(e)
	})
}

func (p *Probes) readTask() {
	var s stamped[taskReading]
	s.v.cpu, s.begun = p.task.readCPU()
	p.task.read(&s.v)
	s.v.reader = -1
	if _, wait, ok := parseSchedstat(p.reader.readOnce(p.buf[:])); ok {
		s.v.reader = wait
	}
	if p.runtime != nil {
		s.v.runtime = p.runtime.read()
	}
	s.done = monotonic()
	p.tasks.push(s)
}

func (p *Probes) readSystem() {
	s := stamped[systemReading]{begun: monotonic(), v: p.system.read()}
	s.done = monotonic()
	p.systems.push(s)
}

func (p *Probes) readLines() {
	s := stamped[[]Line]{begun: monotonic(), v: p.lines.read()}
	s.done = monotonic()
	p.counts.push(s)
}

// Sample looks what the thread is doing now, for a watchdog.
func (p *Probes) Sample() Sample {
	p.mu.Lock()
	defer p.mu.Unlock()
	var r taskReading
	p.task.read(&r)
	s := sampleOf(monotonic(), &r)
	s.Wchan = p.task.wchan()
	return s
}

func sampleOf(t int64, r *taskReading) Sample {
	s := Sample{Time: t, Call: callName(r.call)}
	if r.state != 0 {
		s.State = string(rune(r.state))
	}
	return s
}

// Between returns what was seen of the time from from to to, in ns of CLOCK_MONOTONIC,
// which must be over. The last two seconds or so are kept. It takes readings of its own
// if the last are too old.
func (p *Probes) Between(from, to int64) Evidence {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last, ok := p.tasks.last(); !ok || last.begun < to {
		p.readTask()
	}
	if last, ok := p.systems.last(); !ok || last.begun < to {
		p.readSystem()
	}
	for range drains {
		if p.drain() {
			break
		}
		time.Sleep(100 * time.Microsecond)
	}

	ev := Evidence{From: from, To: to, Own: p.own, FaultPrice: time.Duration(p.price), Named: p.named, States: p.states}
	if p.source != nil {
		ev.Spells, ev.Interrupts, ev.Switches = p.switches.between(from, to)
		if ev.Timed = p.timed && ev.Switches; ev.Timed {
			ev.Pauses, ev.Ticking = p.switches.pauses(from, to)
		}
	}
	p.threadCounts(&ev)
	p.systemCounts(&ev)
	p.silence(&ev)
	return ev
}

func (p *Probes) threadCounts(ev *Evidence) {
	a, b, ok := bracket(&p.tasks, ev.From, ev.To)
	if !ok {
		return
	}
	over := time.Duration(b.begun - a.begun)
	ev.Thread = &ThreadCounts{
		Over:   over,
		CPU:    difference(a.v.cpu, b.v.cpu),
		Wait:   difference(a.v.wait, b.v.wait),
		Faults: int64(max(0, difference(a.v.minor, b.v.minor)) + max(0, difference(a.v.major, b.v.major))),
		Major:  int64(max(0, difference(a.v.major, b.v.major))),
		Off:    p.offBetween(a.begun, b.begun),
	}
	if p.runtime == nil {
		return
	}
	// Whether a collection was under way at a, judged by the readings before it.
	floor := a.v.runtime.debt()
	for s := range p.tasks.all() {
		if s.begun <= a.begun && s.begun > a.begun-int64(64*readEvery) {
			floor = min(floor, s.v.runtime.debt())
		}
	}
	ev.Go = &GoCounts{
		Over:    over,
		Cycles:  b.v.runtime.cycles - a.v.runtime.cycles,
		Pauses:  b.v.runtime.pauses - a.v.runtime.pauses,
		Others:  b.v.runtime.others - a.v.runtime.others,
		Marking: a.v.runtime.debt() > floor,
	}
}

// offBetween returns how long the thread was off its core, or -1.
func (p *Probes) offBetween(from, to int64) time.Duration {
	if p.source == nil {
		return -1
	}
	spells, _, complete := p.switches.between(from, to)
	if !complete {
		return -1
	}
	off := int64(0)
	for i := range spells {
		out, in := spells[i].within(from, to)
		off += in - out
	}
	return time.Duration(off)
}

// difference returns b - a of a sum that -1 stands in for where it is not known.
func difference(a, b int64) time.Duration {
	if a < 0 || b < a {
		return -1
	}
	return time.Duration(b - a)
}

func (p *Probes) systemCounts(ev *Evidence) {
	a, b, ok := bracket(&p.systems, ev.From, ev.To)
	if !ok {
		return
	}
	ev.System = &SystemCounts{
		Over:          time.Duration(b.begun - a.begun),
		Throttled:     max(0, difference(a.v.throttled, b.v.throttled)),
		ThrottleCount: b.v.count - a.v.count,
		Steal:         time.Duration(b.v.steal-a.v.steal) * tick,
		Interrupt:     time.Duration(b.v.irq-a.v.irq) * tick,
	}
	if p.lines == nil || p.timed || ev.System.Interrupt == 0 {
		return
	}
	if last, ok := p.counts.last(); !ok || last.begun < ev.To {
		p.readLines()
	}
	x, y, ok := bracket(&p.counts, ev.From, ev.To)
	if !ok {
		return
	}
	ev.System.LinesOver = time.Duration(y.begun - x.begun)
	ev.System.Lines = moved(x.v, y.v)
}

// moved returns the five lines that counted most from a to b.
func moved(a, b []Line) []Line {
	was := make(map[string]int64, len(a))
	for _, l := range a {
		was[l.Name] = l.N
	}
	var lines []Line
	for _, l := range b {
		if n := l.N - was[l.Name]; n > 0 {
			lines = append(lines, Line{l.Name, n})
		}
	}
	slices.SortStableFunc(lines, func(x, y Line) int { return cmp.Compare(y.N, x.N) })
	return lines[:min(len(lines), 5)]
}

// silence finds what the thread was seen doing, and the longest time in which nothing
// was read.
func (p *Probes) silence(ev *Evidence) {
	var before stamped[taskReading]
	for s := range p.tasks.all() {
		if before.done != 0 && s.begun > ev.From && before.begun < ev.To {
			// A reading that is held up is silent too.
			if gap := time.Duration(s.begun - before.begun); gap > ev.Silent {
				ev.Silent, ev.SilentFrom, ev.SilentWait = gap, before.begun, gap
				if wait := difference(before.v.reader, s.v.reader); wait >= 0 {
					ev.SilentWait = min(wait, gap)
				}
			}
		}
		before = s
		if s.begun >= ev.From && s.done <= ev.To && s.v.state != 0 {
			ev.Samples = append(ev.Samples, sampleOf(s.begun, &s.v))
		}
	}
}
