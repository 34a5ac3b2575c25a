package dataplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/perf/tsc"
)

// Forwarder is a set of ports and the PMDs that poll them. Open makes one; Start,
// Reload, Report and Stop may be called by any goroutine.
type Forwarder struct {
	cfg     Config
	ports   []Port
	queues  []rxQueue
	macs    *macTable
	shared  []sharedStats // by port
	pmds    []*pmd
	reports []report // the latest

	control  sync.Mutex // one request at a time
	begun    time.Time
	ended    time.Duration
	shift    int // by which queues are rotated among the PMDs
	reloads  uint64
	stopping bool
	running  sync.WaitGroup // PMDs
	beside   sync.WaitGroup // goroutines beside them
	quit     chan struct{}  // closed to end those
	storms   []uint64       // by injection: what goroutines beside the PMDs did
	letBack  func()
}

// Run opens a forwarder and lets it run for Config.Duration, or until ctx is done
// where that is sooner. The end of ctx is no error. On any error everything that
// was opened is closed, and nothing was forwarded.
func Run(ctx context.Context, cfg Config) (Result, error) {
	f, err := Open(cfg)
	if err != nil {
		return Result{}, err
	}
	if cfg.Opened != nil {
		if err := cfg.Opened(); err != nil {
			f.Stop()
			return Result{}, err
		}
	}
	if err := f.Start(); err != nil {
		return Result{}, err
	}
	var end <-chan time.Time
	if cfg.Duration > 0 {
		timer := time.NewTimer(cfg.Duration)
		defer timer.Stop()
		end = timer.C
	}
	select {
	case <-ctx.Done():
	case <-end:
	}
	return f.Stop(), nil
}

// Open checks the configuration and opens the ports and recorders. The caller calls
// Stop in the end, also without Start.
func Open(cfg Config) (*Forwarder, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	f := &Forwarder{cfg: cfg.withDefaults(), quit: make(chan struct{}), letBack: func() {}}
	f.storms = make([]uint64, len(cfg.Inject))
	if err := f.open(); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *Forwarder) open() error {
	if err := f.openPorts(); err != nil {
		return err
	}
	outputs := f.outputs()
	slow := newSlowPath(&f.cfg, outputs)
	f.macs = new(macTable)
	f.shared = make([]sharedStats, len(f.ports))
	queues, polling := f.assign()
	for i, core := range f.cfg.Cores {
		p, err := f.newPMD(i, core, slow)
		if err != nil {
			return err
		}
		p.queues = queues[i]
		p.rec, err = f.cfg.Registry.New(perf.Config{Core: core, ID: i + 1, Level: f.cfg.Level, Polling: polling[i], BatchSize: Burst})
		if err != nil {
			p.schedule.trouble.close()
			return err
		}
		f.pmds = append(f.pmds, p)
	}
	f.reports = f.newReports()
	return nil
}

func (f *Forwarder) openPorts() error {
	mems := 0
	add := func(p Port, err error) error {
		if err != nil {
			return err
		}
		in := len(f.ports)
		f.ports = append(f.ports, p)
		for q := range p.RxQueues() {
			f.queues = append(f.queues, rxQueue{port: p, in: uint16(in), queue: q, size: p.RxSize(), number: len(f.queues), handing: new(handing)})
		}
		return nil
	}
	for _, spec := range f.cfg.Ports {
		var err error
		if name, ok := strings.CutPrefix(spec, afpacketPrefix); ok {
			err = add(wrap(openAFPacket(name, f.cfg.Queues, len(f.cfg.Cores))))
		} else if name, ok := strings.CutPrefix(spec, afxdpPrefix); ok {
			err = add(wrap(openAFXDP(name, f.cfg.Queues, len(f.cfg.Cores))))
		} else {
			var p *memPort
			if p, err = newMemPort(fmt.Sprintf("mem%d", mems), &f.cfg, true); err == nil {
				f.connect(p, mems)
			}
			err = add(wrap(p, err))
			mems++
		}
		if err != nil {
			return err
		}
	}
	for i := range f.cfg.Sinks {
		if err := add(wrap(newMemPort(fmt.Sprintf("sink%d", i), &f.cfg, false))); err != nil {
			return err
		}
	}
	return nil
}

// connect addresses the packets of the nth port in memory to the next one, and those of
// the last to the first.
func (f *Forwarder) connect(p *memPort, nth int) {
	all := 0
	for _, spec := range f.cfg.Ports {
		if spec == "mem" {
			all++
		}
	}
	next := nth + 1
	if all > 1 {
		next %= all
	}
	p.frames.address(byte(nth+1), byte(next+1))
	for q := range p.queues {
		g := p.queues[q].generator
		g.quiet = g.quiet || f.cfg.OneWay && nth > 0
	}
}

// wrap makes a Port of what a port's constructor returns.
func wrap[P Port](p P, err error) (Port, error) { return p, err }

// outputs returns where the packets of every port may go.
func (f *Forwarder) outputs() [][]uint16 {
	outputs := make([][]uint16, len(f.ports))
	if f.cfg.Drop {
		return outputs
	}
	inputs := len(f.cfg.Ports)
	for in := range inputs {
		if f.cfg.Sinks == 0 {
			outputs[in] = []uint16{uint16((in + 1) % inputs)}
			continue
		}
		for s := range f.cfg.Sinks {
			outputs[in] = append(outputs[in], uint16(inputs+s))
		}
	}
	return outputs
}

// assign deals the queues out to the PMDs, beginning with the one whose turn it is.
func (f *Forwarder) assign() ([][]rxQueue, []perf.Polling) {
	n := len(f.cfg.Cores)
	queues := make([][]rxQueue, n)
	polling := make([]perf.Polling, n)
	for i, q := range f.queues {
		to := (i + f.shift) % n
		queues[to] = append(queues[to], q)
		polling[to].RxQueues = append(polling[to].RxQueues, perf.Queue{Port: q.port.Name(), ID: q.queue, Size: q.port.RxSize()})
	}
	for i := range polling {
		polling[i].MaxSleep = f.cfg.MaxSleep
		for _, p := range f.ports {
			polling[i].TxQueues = append(polling[i].TxQueues, perf.Queue{Port: p.Name(), ID: i})
		}
	}
	return queues, polling
}

func (f *Forwarder) newPMD(index, core int, slow *slowPath) (*pmd, error) {
	// A burst in rx and one on its way to every port: more can't be held.
	pool := NewPool((len(f.ports) + 1) * Burst)
	hz := tsc.System()
	p := &pmd{
		index:      index,
		core:       core,
		emc:        newEMC(uint32(max(f.cfg.EMCInverse, 0))),
		class:      newClassifier(len(slow.rules), f.cfg.FlowLimit),
		slow:       slow,
		rx:         Batch{pool: pool},
		ports:      f.ports,
		tally:      make([]tally, len(f.ports)),
		tx:         make([]txBatch, len(f.ports)),
		flushTicks: hz.Ticks(f.cfg.FlushInterval),
		sendAtOnce: f.cfg.SendAtOnce,
		recSizes:   f.cfg.Sizes,
		macs:       f.macs,
		stats:      statistics{f.cfg.Stats, make([]portStats, len(f.ports)), f.shared},
		maxSleep:   f.cfg.MaxSleep,
		injected:   make([]uint64, len(f.cfg.Inject)),
	}
	for i := range p.tx {
		p.tx[i].pool = pool
	}
	var err error
	if p.schedule.trouble, err = newTrouble(f.cfg.Inject); err != nil {
		return nil, err
	}
	for i, in := range f.cfg.Inject {
		if in.inLoop() {
			p.schedule.entries = append(p.schedule.entries, scheduled{
				kind:     in.Kind,
				duration: hz.Ticks(in.Duration),
				every:    hz.Ticks(in.Every),
				done:     &p.injected[i],
			})
		}
	}
	return p, nil
}

func (f *Forwarder) newReports() []report {
	reports := make([]report, len(f.pmds))
	for i := range reports {
		reports[i] = report{
			tally:    make([]tally, len(f.ports)),
			missed:   make([]uint64, len(f.queues)),
			injected: make([]uint64, len(f.cfg.Inject)),
		}
	}
	return reports
}

// Start starts the PMDs. When it returns an error, none of them forwarded anything
// and the forwarder is closed.
func (f *Forwarder) Start() error {
	f.control.Lock()
	defer f.control.Unlock()
	if f.stopping || !f.begun.IsZero() {
		return errors.New("the forwarder was started or stopped before: open another one")
	}
	f.warn()
	ready := make(chan error, len(f.pmds))
	begin := make(chan bool)
	for _, p := range f.pmds {
		f.running.Go(func() { p.run(ready, begin) })
	}
	var errs []error
	for range f.pmds {
		errs = append(errs, <-ready)
	}
	if err := errors.Join(errs...); err != nil {
		close(begin)
		f.running.Wait()
		f.stopping = true
		f.close()
		return err
	}
	f.begun = time.Now()
	for range f.pmds {
		begin <- true
	}
	f.startBeside()
	return nil
}

// warn keeps other threads off the PMDs' cores, and tells what makes measurements
// worse.
func (f *Forwarder) warn() {
	say := func(format string, args ...any) {
		if f.cfg.Warn != nil {
			f.cfg.Warn(fmt.Sprintf(format, args...))
		}
	}
	undo, ok := keepOff(f.cfg.Cores)
	f.letBack = undo
	if !ok {
		say("no core is left beside the PMDs' for other threads: expect stalls, or use fewer of the cores %s", coreList(usableCores()))
	}
	if n, want := runtime.GOMAXPROCS(0), len(f.pmds)+1; n < want {
		say("GOMAXPROCS is %d: PMDs and other goroutines stall each other, set it to at least %d", n, want)
	}
	if !AsyncPreemptOff() {
		say("the Go runtime may interrupt the PMDs: start with GODEBUG=asyncpreemptoff=1 in the environment")
	}
}

// AsyncPreemptOff reports whether the process was started so that the Go runtime
// does not interrupt busy threads. It can only be set in the environment, before
// the start.
func AsyncPreemptOff() bool {
	off := false
	for _, setting := range strings.Split(os.Getenv("GODEBUG"), ",") {
		if value, ok := strings.CutPrefix(setting, "asyncpreemptoff="); ok {
			off = value == "1"
		}
	}
	return off
}

// run is the life of a PMD's goroutine.
func (p *pmd) run(ready chan<- error, begin <-chan bool) {
	ready <- p.prepare()
	defer p.rec.Close()
	if !<-begin {
		return
	}
	p.start()
	p.loop()
}

// start begins the recorder's first pass and the time of the injections.
func (p *pmd) start() {
	now := tsc.Now()
	for i := range p.schedule.entries {
		e := &p.schedule.entries[i]
		e.at = now + e.every
		p.schedule.next = now // the first run finds the earliest
	}
	_ = p.rec.Start() // nobody started or closed it before
}

// prepare ties the goroutine to a thread of its own, for good, and sets that up.
func (p *pmd) prepare() error {
	if err := perf.Pin(p.core, p.index+1); err != nil {
		return err
	}
	p.tid = threadID()
	if p.maxSleep == 0 {
		return nil
	}
	if err := sleepExactly(); err != nil {
		return fmt.Errorf("core %d: setting the timer slack: %w", p.core, err)
	}
	return nil
}

// startBeside starts the goroutines beside the PMDs.
func (f *Forwarder) startBeside() {
	every := func(d time.Duration, do func()) {
		f.beside.Go(func() {
			tick := time.NewTicker(d)
			defer tick.Stop()
			for {
				select {
				case <-f.quit:
					return
				case <-tick.C:
					do()
				}
			}
		})
	}
	if f.cfg.Progress != nil {
		every(time.Second, func() { f.cfg.Progress(f.Report()) })
	}
	for i, in := range f.cfg.Inject {
		switch in.Kind {
		case InjectGC:
			every(in.Every, func() { collect(in.Duration); f.count(i) })
		case InjectReload:
			every(in.Every, func() {
				if _, err := f.Reload(in.Duration); err == nil {
					f.count(i)
				}
			})
		}
	}
}

func (f *Forwarder) count(i int) {
	f.control.Lock()
	f.storms[i]++
	f.control.Unlock()
}

// collect makes garbage and collects it again and again, for about d.
func collect(d time.Duration) {
	var keep [64][]*[64]*byte
	for begun, i := time.Now(), 0; time.Since(begun) < d; i++ {
		list := make([]*[64]*byte, 256)
		for j := range list {
			list[j] = new([64]*byte)
		}
		keep[i%len(keep)] = list
		if i%32 == 0 {
			runtime.GC()
		}
	}
	runtime.KeepAlive(&keep)
}

// post gives a request to all PMDs.
func (f *Forwarder) post(r *request) {
	for _, p := range f.pmds {
		p.request.Store(r)
	}
}

// await waits until n PMDs have done something. The PMDs can't wake it, since that
// would cost them tens of microseconds.
func await(n int, done func() int32) {
	for int(done()) < n {
		nap(50 * time.Microsecond)
	}
}

// Reload lets all PMDs change to a new configuration, in which every queue is
// polled by the next PMD, with at least hold between. It returns when all of them
// have polled again.
func (f *Forwarder) Reload(hold time.Duration) (Reloaded, error) {
	f.control.Lock()
	defer f.control.Unlock()
	if err := f.runs(); err != nil {
		return Reloaded{}, err
	}
	f.shift++
	n := len(f.pmds)
	r := &reload{scheme: f.cfg.Reload, queues: make([][]rxQueue, n), hold: hold, stage: make([]stage, n), out: Reloaded{
		Threads: make([]uint64, n), Queues: make([]uint64, len(f.queues)), Away: make([]int64, n)}}
	req := &request{kind: wantReload, reload: r}
	if r.scheme == ReloadBlocking {
		r.wake = make(chan struct{})
		f.post(req)
		await(n, r.parked.Load)
		r.queues, r.polling = f.assignAwaited()
		close(r.wake)
	} else {
		queues, polling := f.assignAwaited()
		r.queues = queues
		for i, p := range f.pmds {
			prepared, err := p.rec.Prepare(&polling[i])
			if err != nil {
				return Reloaded{}, err
			}
			r.prepared = append(r.prepared, prepared)
		}
		f.post(req)
	}
	await(len(f.pmds), req.done.Load)
	f.reloads++
	return r.out, nil
}

// assignAwaited is assign for PMDs that have to wait for the queues until they are let go
// of.
func (f *Forwarder) assignAwaited() ([][]rxQueue, []perf.Polling) {
	queues, polling := f.assign()
	for _, list := range queues {
		for i := range list {
			list[i].awaited = true
		}
	}
	return queues, polling
}

// SetReload changes Config.Reload.
func (f *Forwarder) SetReload(scheme ReloadScheme) error {
	if !scheme.known() {
		return fmt.Errorf("unknown scheme %q of a reload: choose %s, %s or %s", scheme, ReloadHandover, ReloadBusy, ReloadBlocking)
	}
	f.control.Lock()
	defer f.control.Unlock()
	f.cfg.Reload = scheme
	return nil
}

// runs returns an error unless there are PMDs that answer.
func (f *Forwarder) runs() error {
	if f.stopping || f.begun.IsZero() {
		return errors.New("the forwarder does not run: start it first, and don't stop it")
	}
	return nil
}

// reportTimeout is how long a report waits for a PMD that is stalled.
const reportTimeout = 200 * time.Millisecond

// Report returns what the forwarder has done so far. A PMD that is stalled gives no
// news: see Result.Stale.
func (f *Forwarder) Report() Result {
	f.control.Lock()
	defer f.control.Unlock()
	if f.stopping || f.begun.IsZero() {
		return f.result(0)
	}
	req := &request{kind: wantReport, reports: f.newReports()}
	f.post(req)
	for begun := time.Now(); int(req.done.Load()) < len(f.pmds) && time.Since(begun) < reportTimeout; {
		time.Sleep(100 * time.Microsecond)
	}
	stale := make([]bool, len(f.pmds))
	n := 0
	for i, p := range f.pmds {
		if p.request.CompareAndSwap(req, nil) {
			stale[i] = true
			n++
		}
	}
	await(len(f.pmds)-n, req.done.Load) // who took it is copying
	for i := range f.reports {
		if !stale[i] {
			f.reports[i] = req.reports[i]
		}
	}
	return f.result(n)
}

// result adds up the latest reports.
func (f *Forwarder) result(stale int) Result {
	r := Result{Elapsed: f.ended, Reloads: f.reloads, Stale: stale, Injected: make([]uint64, len(f.cfg.Inject))}
	if !f.stopping && !f.begun.IsZero() {
		r.Elapsed = time.Since(f.begun)
	}
	copy(r.Injected, f.storms)
	for _, p := range f.ports {
		r.Ports = append(r.Ports, PortResult{Name: p.Name()})
	}
	for n, q := range f.queues {
		var missed uint64
		for i := range f.reports { // a PMD that is stalled may have told of a queue that another has now
			missed = max(missed, f.reports[i].missed[n])
		}
		r.Ports[q.in].Missed += missed
	}
	for i, p := range f.pmds {
		pr := PMDResult{Core: p.core}
		if f.stopping {
			pr.Megaflows = p.class.installed()
		}
		for port, t := range f.reports[i].tally {
			to := &r.Ports[port]
			to.Rx += t.rx
			to.Tx += t.tx
			to.Drops += t.drops
			to.Out += t.out
			pr.Rx += t.rx
			pr.Tx += t.tx
			pr.Drops += t.drops
		}
		for k, n := range f.reports[i].injected {
			r.Injected[k] += n
		}
		r.Gaps.merge(f.reports[i].gaps)
		r.PMDs = append(r.PMDs, pr)
	}
	return r
}

// Stop lets no more packets arrive, waits until those that have arrived are
// forwarded, and closes everything. Calling it again returns the same result.
func (f *Forwarder) Stop() Result {
	f.control.Lock()
	if f.stopping {
		defer f.control.Unlock()
		return f.result(0)
	}
	if !f.begun.IsZero() {
		f.post(&request{kind: wantStop})
		f.running.Wait()
		f.ended = time.Since(f.begun)
		for i, p := range f.pmds {
			p.report(&f.reports[i])
		}
	}
	f.stopping = true
	f.close()
	result := f.result(0)
	f.control.Unlock()
	f.beside.Wait()
	return result
}

// close gives back whatever was opened.
func (f *Forwarder) close() {
	close(f.quit)
	f.letBack()
	for _, p := range f.ports {
		_ = p.Close()
	}
	for _, p := range f.pmds {
		p.schedule.trouble.close()
		if f.begun.IsZero() { // otherwise the PMD closed it, and it stays
			p.rec.Close()
			f.cfg.Registry.Remove(p.rec)
		}
	}
}
