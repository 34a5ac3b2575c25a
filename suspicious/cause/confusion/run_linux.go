package confusion

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/suspicious/cause"
)

// Options says what to try, and how often.
type Options struct {
	Rounds int           // times that each provocation is to make an iteration slow; 0 for 100
	Core   int           // of the loop; negative for the last one that the process may use
	Only   []string      // names of the provocations to make; none for all
	Probes cause.Options // which probes to try

	// User gives up root's privileges for good once what needs them is set up: the
	// probes are those of an ordinary user then.
	User bool

	// Progress is called, from the goroutine that called Run, whenever there is more;
	// nil for nobody.
	Progress func(Progress)
}

// maker makes the loop slow once. It returns the slow passes, if there were any.
type maker struct {
	name string
	want string // name of the cause, where the probes tell names
	provoked

	// acted tells whether the provocation can have made a pass slow, as the kernel counted
	// it: others use the machine too. nil for always.
	acted func(*truth) bool

	// most is the longest that the iteration may take: what is longer, something else
	// made so, as others use the machine too.
	most time.Duration
	make func() ([]pass, error)
}

// Run starts a loop in this process, which has to run with GODEBUG=asyncpreemptoff=1,
// makes it slow in every way there is, and returns what the probes said. It takes some
// 20 ms for each provocation. If ctx ends before that, it returns what there is.
func Run(ctx context.Context, o Options) (*Table, error) {
	if o.Rounds <= 0 {
		o.Rounds = 100
	}
	if o.Progress == nil {
		o.Progress = func(Progress) {}
	}
	core, err := ownCore(o.Core)
	if err != nil {
		return nil, err
	}
	l, err := startLoop(core)
	if err != nil {
		return nil, err
	}
	defer l.stop()

	s := &stage{loop: l}
	defer s.close()
	if err := s.open(); err != nil {
		return nil, err
	}
	if o.User {
		if err := becomeNobody(); err != nil {
			return nil, fmt.Errorf("give up privileges: %w", err)
		}
	}
	// The hog dies with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := s.startHog(o.Rounds); err != nil {
		return nil, err
	}
	p, err := cause.Open(l.tid, core, o.Probes)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	t := &Table{User: os.Geteuid() != 0, Core: core, Probes: p.Report()}
	if err := t.listen(l.tid); err != nil {
		return nil, err
	}
	for _, m := range s.makers(named(t.Probes)) {
		if len(o.Only) > 0 && !slices.Contains(o.Only, m.name) {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		t.Rows = append(t.Rows, try(ctx, &m, p, o.Rounds, o.Progress))
	}
	return t, t.listen(l.tid)
}

// try makes one provocation rounds times, or as often as it succeeds in a time that is
// enough on a machine that is quiet.
func try(ctx context.Context, m *maker, p *cause.Probes, rounds int, progress func(Progress)) Row {
	row := Row{Provocation: m.name, Kind: m.kind, Name: m.want}
	end := time.Now().Add(2*time.Second + time.Duration(rounds)*patience)
	for row.Made < rounds && ctx.Err() == nil && time.Now().Before(end) {
		progress(Progress{m.name, row.Made, rounds})
		slow, err := m.make()
		if err != nil {
			row.Skipped = err.Error()
			break
		}
		if m.acted != nil {
			slow = slices.DeleteFunc(slow, func(s pass) bool { return !m.acted(&s.truth) })
		}
		if len(slow) == 0 {
			row.Idle++
			continue
		}
		if slices.ContainsFunc(slow, func(s pass) bool { return s.Duration() > m.most }) {
			row.Spoilt++
			continue
		}
		var said []answer
		for _, s := range slow {
			said = append(said, answer{s.Duration(), cause.Attribute(s.Iteration, p.Between(s.Start, s.End)), s.truth})
		}
		row.judge(said, m.provoked)
	}
	row.done()
	return row
}

// Provocations returns the names of all provocations, in the order in which they are
// made.
func Provocations() (names []string) {
	for _, m := range new(stage).makers(false) {
		names = append(names, m.name)
	}
	return names
}

// named reports whether the probes name the task that ran instead.
func named(probes []cause.Status) bool {
	return probes[0].Runs || probes[1].Runs
}

// ownCore clears a core of the process's other threads.
func ownCore(core int) (int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		return 0, err
	}
	if core < 0 {
		for i := range len(set) * 64 {
			if set.IsSet(i) {
				core = i
			}
		}
	}
	set.Clear(core)
	if set.Count() == 0 {
		return 0, errors.New("a loop and its watcher need two cores")
	}
	// A thread started meanwhile by one not yet moved is met in the second round.
	for range 2 {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return 0, err
		}
		for _, e := range tasks {
			if tid, err := strconv.Atoi(e.Name()); err == nil {
				_ = unix.SchedSetaffinity(tid, &set) // it may have ended
			}
		}
	}
	return core, nil
}

// stage holds what the provocations need.
type stage struct {
	loop  *loop
	hog   *exec.Cmd
	pages []byte
	pipe  [2]int
	quota *quota
	why   error // there is no quota
	live  [][]*byte
}

func (s *stage) open() (err error) {
	s.pipe = [2]int{-1, -1}
	if err := unix.Pipe2(s.pipe[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	const pages = 2048
	s.pages, err = unix.Mmap(-1, 0, pages*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	_ = unix.Madvise(s.pages, unix.MADV_NOHUGEPAGE)
	s.quota, s.why = openQuota(s.loop.tid)

	return nil
}

// startHog starts a busy task that waits, stopped, on the loop's core. It ends by itself
// should this process die.
func (s *stage) startHog(rounds int) error {
	s.hog = exec.Command("sh", "-c", fmt.Sprintf("ulimit -t %d; while :; do :; done", 60+rounds/10))
	s.hog.SysProcAttr = apart()
	s.hog.SysProcAttr.Pdeathsig = unix.SIGKILL
	if err := s.hog.Start(); err != nil {
		s.hog = nil
		return err
	}
	if err := s.hog.Process.Signal(unix.SIGSTOP); err != nil {
		return err
	}
	var set unix.CPUSet
	set.Set(s.loop.core)
	return unix.SchedSetaffinity(s.hog.Process.Pid, &set)
}

// apart keeps a terminal's interrupt away from a program: one that is to continue this
// process must not end before it has.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func (s *stage) close() {
	if s.hog != nil {
		_ = s.hog.Process.Kill()
		_ = s.hog.Wait()
	}
	if s.quota != nil {
		s.quota.close()
	}
	for _, fd := range s.pipe {
		_ = unix.Close(fd)
	}
	if s.pages != nil {
		_ = unix.Munmap(s.pages)
	}
}

// patience is the longest that a provocation may take on average, tries in vain included.
const patience = 500 * time.Millisecond

// stall is how long a provocation is meant to last, and stopTime the stop of the process.
const (
	stall    = 2 * time.Millisecond
	stopTime = 10 * time.Millisecond
)

func (s *stage) makers(named bool) []maker {
	hog := ""
	if named {
		hog = "sh"
	}
	hogged := func(t *truth) bool { return t.Wait >= slow && t.Other >= t.Over/20 }
	slept := func(t *truth) bool { return t.Sleep >= slow }
	stopped := func(t *truth) bool { return t.Sleep >= stopTime/2 }
	throttled := func(t *truth) bool { return t.Wait+t.Sleep >= time.Millisecond }
	return []maker{
		{"hog on the core", hog, provoked{kind: cause.Preempted}, hogged, 50 * time.Millisecond, s.hogs},
		{"stop signal", "", provoked{kind: cause.Stopped, sleep: stopTime}, stopped, 8 * stopTime, s.outside(func() error {
			// A stopped process can't continue itself.
			stop := exec.Command("sh", "-c", fmt.Sprintf("kill -STOP %d; sleep %g; kill -CONT %[1]d", os.Getpid(), stopTime.Seconds()))
			stop.SysProcAttr = apart()
			return stop.Run()
		})},
		{"page faults", "", provoked{kind: cause.Faults, cpu: stall}, nil, 25 * stall, s.inside(s.touch, nil)},
		{"blocking read", "", provoked{kind: cause.Blocked, sleep: stall}, nil, 50 * stall, s.read},
		{"nanosleep", "", provoked{kind: cause.Blocked, sleep: stall}, nil, 25 * stall, s.inside(func() {
			ts := unix.NsecToTimespec(int64(stall))
			_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
		}, nil)},
		{"garbage collections", "", provoked{kind: cause.Runtime}, slept, 200 * time.Millisecond, s.collect},
		{"cgroup quota", "", provoked{kind: cause.Throttled}, throttled, 80 * time.Millisecond, s.throttle},
		{"own work", "", provoked{kind: cause.Work, cpu: stall}, nil, 25 * stall, s.inside(s.compute, func(it *cause.Iteration, _ time.Duration) {
			it.Record.Rx = 32
			it.Queue = "p0 0"
		})},
		{"upcalls", "", provoked{kind: cause.Upcalls, cpu: stall}, nil, 25 * stall, s.inside(s.compute, func(it *cause.Iteration, took time.Duration) {
			it.Record.Upcalls, it.Record.UpcallCycles = 64, uint64(took)*9/10
		})},
		{"reload", "", provoked{kind: cause.Reload}, nil, 50 * stall, s.inside(func() { time.Sleep(stall) }, func(it *cause.Iteration, _ time.Duration) {
			it.Gap, it.GapKind = true, history.Reload
		})},
	}
}

// inside lets the loop do something in one pass.
func (s *stage) inside(do func(), mark func(*cause.Iteration, time.Duration)) func() ([]pass, error) {
	return func() ([]pass, error) { return s.order(do, mark, func() {}) }
}

// order lets the loop do something in one pass, and meanwhile does something itself.
func (s *stage) order(do func(), mark func(*cause.Iteration, time.Duration), meanwhile func()) ([]pass, error) {
	time.Sleep(3 * time.Millisecond)
	since := s.loop.count.Load()
	o := &order{do: do, mark: mark}
	s.loop.order.Store(o)
	meanwhile()
	for deadline := time.Now().Add(5 * time.Second); !o.done.Load(); {
		if time.Now().After(deadline) {
			return nil, errors.New("the loop didn't come back")
		}
		time.Sleep(200 * time.Microsecond)
	}
	for n := since; n < s.loop.count.Load(); n++ {
		if p := s.loop.passes[n%uint64(len(s.loop.passes))]; p.order == o {
			return []pass{p}, nil
		}
	}
	return nil, nil
}

// outside does something to the loop.
func (s *stage) outside(do func() error) func() ([]pass, error) {
	return func() ([]pass, error) {
		time.Sleep(3 * time.Millisecond)
		since, from := s.loop.count.Load(), s.loop.now()
		if err := do(); err != nil {
			return nil, err
		}
		to := s.loop.now()
		// All threads go on, the loop has ended the pass, and the readers have read.
		for end := to + int64(time.Second); s.loop.end.Load() <= to && s.loop.now() < end; {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(5 * time.Millisecond)
		return s.loop.between(since, from, to), nil
	}
}

func (s *stage) compute() { s.loop.compute(stall) }

func (s *stage) touch() {
	for i := 0; i < len(s.pages); i += os.Getpagesize() {
		s.pages[i] = 1
	}
	_ = unix.Madvise(s.pages, unix.MADV_DONTNEED)
}

func (s *stage) read() ([]pass, error) {
	return s.order(func() {
		var b [1]byte
		_, _ = unix.Read(s.pipe[0], b[:])
	}, nil, func() {
		time.Sleep(stall)
		_, _ = unix.Write(s.pipe[1], []byte{0})
	})
}

// hogs lets the hog have the core now and then.
func (s *stage) hogs() ([]pass, error) {
	stat, err := os.Open(fmt.Sprintf("/proc/%d/schedstat", s.hog.Process.Pid))
	if err != nil {
		return nil, err
	}
	s.loop.other.Store(int32(stat.Fd()))
	defer func() {
		// The loop may be about to read it.
		s.loop.other.Store(0)
		time.Sleep(time.Millisecond)
		_ = stat.Close()
	}()
	return s.outside(func() error {
		time.Sleep(time.Millisecond) // the loop reads what it ran so far
		if err := s.hog.Process.Signal(unix.SIGCONT); err != nil {
			return err
		}
		time.Sleep(4 * stall)
		return s.hog.Process.Signal(unix.SIGSTOP)
	})()
}

// slowest returns the length of the slowest pass.
func slowest(passes []pass) (d time.Duration) {
	for i := range passes {
		d = max(d, passes[i].Duration())
	}
	return d
}

// collect makes garbage collections with some work to do.
func (s *stage) collect() ([]pass, error) {
	if s.live == nil {
		for range 4 {
			l := make([]*byte, 1<<14)
			for i := range l {
				l[i] = new(byte)
			}
			s.live = append(s.live, l)
		}
	}
	return s.outside(func() error {
		runtime.GC()
		return nil
	})()
}

func (s *stage) throttle() ([]pass, error) {
	if s.why != nil {
		return nil, s.why
	}
	was := s.quota.throttled()
	slow, err := s.outside(func() error {
		if err := s.quota.set(true); err != nil {
			return err
		}
		time.Sleep(25 * time.Millisecond)
		return s.quota.set(false)
	})()
	// A loop that gets little of its core anyway has quota left.
	if s.quota.throttled()-was < slowest(slow)/20 {
		return nil, err
	}
	return slow, err
}

// becomeNobody gives up all privileges for good. The process may still look at itself:
// a change of user makes it unreadable for its own new user otherwise.
func becomeNobody() error {
	const nobody = 65534
	if os.Geteuid() != 0 {
		return nil
	}
	if err := unix.Setgroups(nil); err != nil {
		return err
	}
	if err := unix.Setresgid(nobody, nobody, nobody); err != nil {
		return err
	}
	if err := unix.Setresuid(nobody, nobody, nobody); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
}
