package cause

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
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
	keepConts  = 64
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

	continued chan os.Signal // the process was, after a stop

	mu       sync.Mutex // guards what follows
	task     *taskProbe
	system   *systemProbe
	lines    *lineProbe // may be nil
	bpf      *bpfProbe  // the source, if it is that
	source   source     // may be nil
	switches *switches
	runtime  *collector // nil for another process
	rounds   int

	first   stamped[taskReading]
	tasks   ring[stamped[taskReading]]
	systems ring[stamped[systemReading]]
	counts  ring[stamped[[]Line]]
	vain    int64       // when a signal was last waited for that didn't come
	conts   ring[int64] // when the process was continued after a stop
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
		tid: tid, core: core, own: pid == os.Getpid(), price: faultPrice(),
		stop: make(chan struct{}), done: make(chan struct{}), continued: make(chan os.Signal, 1),
		tasks:   ring[stamped[taskReading]]{size: keepTask},
		systems: ring[stamped[systemReading]]{size: keepSystem},
		counts:  ring[stamped[[]Line]]{size: keepLines},
		conts:   ring[int64]{size: keepConts},
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

// run is the reader. A ticker wakes it; a sleep in a system call would keep the runtime's
// monitor awake, and that doubles how often it parks the loop.
func (p *Probes) run(ready chan<- struct{}) {
	defer close(p.done)
	if p.own {
		// Nobody in a stopped process sees that it is stopped, but what ends every stop by
		// a signal is one that can be seen. The process goes on with or without a handler.
		signal.Notify(p.continued, unix.SIGCONT)
		defer signal.Stop(p.continued)
	}
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
	p.readContinued()
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
	if p.runtime != nil {
		s.v.runtime = p.runtime.read()
	}
	s.done = monotonic()
	if p.first.done == 0 {
		p.first = s
	}
	p.tasks.push(s)
}

// settle waits for the news that the process was continued, if that may be on its way: the
// thread slept for long until just now, the reader was silent, and no source of switches
// tells of stops. It doesn't wait often in vain.
func (p *Probes) settle(from, to int64) {
	const pause = int64(300 * time.Millisecond)
	if p.states || !p.own || to-from < silentLeast || monotonic()-p.vain < pause || !p.slept(from, to) {
		return
	}
	for {
		p.readContinued()
		ev := Evidence{From: from, To: to}
		p.silence(&ev)
		if len(ev.Silences) == 0 || len(ev.Continued) > 0 {
			return
		}
		left := ev.Silences[len(ev.Silences)-1].To + int64(contLag) - monotonic()
		if left <= 0 {
			p.vain = monotonic()
			return
		}
		p.mu.Unlock()
		time.Sleep(min(time.Duration(left), 5*readEvery))
		p.mu.Lock()
	}
}

// silentLeast is how long the reader reads nothing when it is silent, in ns.
const silentLeast = int64(5 * readEvery)

// slept reports whether the thread slept for most of a stretch of time.
func (p *Probes) slept(from, to int64) bool {
	p.drain()
	spells, _, _, _ := p.switches.between(from, to)
	sum := int64(0)
	for i := range spells {
		if out, in := spells[i].within(from, to); !spells[i].runnable() {
			sum += in - out
		}
	}
	return p.source == nil || sum > (to-from)/2
}

// readContinued takes note of a signal that continued the process.
func (p *Probes) readContinued() {
	select {
	case <-p.continued:
		p.conts.push(monotonic())
	default:
	}
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

// Totals returns what the thread's counters say since the probes were opened.
func (p *Probes) Totals() (t ThreadCounts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readTask()
	last := p.first
	for s := range p.tasks.all() {
		if s.v.state != 0 { // or it was gone by then
			last = s
		}
	}
	return counts(&p.first, &last)
}

// counts returns what was counted from one reading to another, switches apart.
func counts(a, b *stamped[taskReading]) ThreadCounts {
	return ThreadCounts{
		Over:   time.Duration(b.begun - a.begun),
		CPU:    difference(a.v.cpu, b.v.cpu),
		Wait:   difference(a.v.wait, b.v.wait),
		Off:    -1,
		Faults: int64(max(0, difference(a.v.minor, b.v.minor)) + max(0, difference(a.v.major, b.v.major))),
		Major:  int64(max(0, difference(a.v.major, b.v.major))),
	}
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
	p.settle(from, to)
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
		ev.Spells, ev.Interrupts, ev.Gaps, ev.Switches = p.switches.between(from, to)
		ev.Switches = ev.Switches && missing(ev.Gaps, from, to) <= (to-from)/2
		if ev.Timed = p.timed && ev.Switches; ev.Timed {
			ev.Pauses, ev.Ticking = p.switches.pauses(from, to)
		}
	}
	p.threadCounts(&ev)
	p.systemCounts(&ev)
	p.silence(&ev)
	return ev
}

// missing returns how much of a stretch of time lies in gaps.
func missing(gaps []Gap, from, to int64) (sum int64) {
	for _, g := range gaps {
		sum += max(0, min(g.To, to)-max(g.From, from))
	}
	return sum
}

func (p *Probes) threadCounts(ev *Evidence) {
	a, b, ok := bracket(&p.tasks, ev.From, ev.To)
	if !ok {
		return
	}
	t := counts(&a, &b)
	ev.Thread = &t
	p.offBetween(a.begun, b.begun, &t)
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
		Over:    t.Over,
		Cycles:  b.v.runtime.cycles - a.v.runtime.cycles,
		Pauses:  b.v.runtime.pauses - a.v.runtime.pauses,
		Others:  b.v.runtime.others - a.v.runtime.others,
		Marking: a.v.runtime.debt() > floor,
	}
}

// offBetween sums up for how long the thread was off its core.
func (p *Probes) offBetween(from, to int64, t *ThreadCounts) {
	if p.source == nil {
		return
	}
	spells, _, gaps, complete := p.switches.between(from, to)
	if !complete || len(gaps) > 0 {
		return
	}
	t.Off = 0
	for i := range spells {
		out, in := spells[i].within(from, to)
		t.Off += time.Duration(in - out)
		s := &spells[i]
		switch length := time.Duration(s.In - s.Out); {
		case s.In == 0 || s.In > to:
		case s.runnable():
			t.Preempted += length
		default:
			t.Asleep += length
			t.Sleeps++
		}
	}
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
	ev.System.Lines = Moved(x.v, y.v)
}

// silence finds what the thread was seen doing, and when nothing was read for long.
func (p *Probes) silence(ev *Evidence) {
	var before stamped[taskReading]
	for s := range p.tasks.all() {
		if before.done != 0 && s.begun > ev.From && before.begun < ev.To {
			// A reading that is held up is silent too.
			if s.begun-before.begun >= silentLeast {
				ev.Silences = append(ev.Silences, Gap{before.begun, s.begun})
			}
		}
		before = s
		if s.begun >= ev.From && s.done <= ev.To && s.v.state != 0 {
			ev.Samples = append(ev.Samples, sampleOf(s.begun, &s.v))
		}
	}
	end := ev.To
	for _, g := range ev.Silences {
		end = max(end, g.To)
	}
	for t := range p.conts.all() {
		if t >= ev.From && t <= end+int64(contLag) {
			ev.Continued = append(ev.Continued, t)
		}
	}
}
