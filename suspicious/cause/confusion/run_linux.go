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
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/suspicious/cause"
)

// Options says what to try, and how often.
type Options struct {
	Each   int           // times that each provocation is to make an iteration slow; 0 for 10
	Core   int           // of the loop; negative for the last one that the process may use
	Probes cause.Options // which probes to try

	// Ready is called when what needs privileges is set up. It may drop them.
	Ready func() error
}

// maker makes the loop slow once. It returns the slow passes, if there were any.
type maker struct {
	name string
	kind cause.Kind
	want string // name of the cause, where the probes tell names

	// most is the longest that the iteration may take: what is longer, something else
	// made so, as others use the machine too.
	most time.Duration
	make func() ([]pass, error)

	sleeps int64 // how often the thread sleeps for it
}

// Run starts a loop in this process, which has to run with GODEBUG=asyncpreemptoff=1,
// makes it slow in every way there is, and returns what the probes said. It takes some
// 20 ms for each provocation.
func Run(ctx context.Context, o Options) (*Table, error) {
	if o.Each <= 0 {
		o.Each = 10
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
	if o.Ready != nil {
		if err := o.Ready(); err != nil {
			return nil, err
		}
	}
	// The hog dies with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := s.startHog(); err != nil {
		return nil, err
	}
	p, err := cause.Open(l.tid, core, o.Probes)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	time.Sleep(50 * time.Millisecond) // readings before the first

	t := &Table{Probes: p.Report()}
	for _, m := range s.makers(named(t.Probes)) {
		row := Row{Provocation: m.name, Kind: m.kind, Name: m.want}
		end := time.Now().Add(time.Duration(o.Each) * patience)
		for tries := 0; row.Made < o.Each && tries < 5*o.Each && ctx.Err() == nil && time.Now().Before(end); tries++ {
			slow, err := m.make()
			if err != nil {
				row.Skipped = err.Error()
				break
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
				said = append(said, answer{s.Duration(), cause.Attribute(s.Iteration, p.Between(s.Start, s.End)), s.preempted+s.slept > 0, s.slept > m.sleeps})
			}
			row.judge(said)
		}
		row.done()
		t.Rows = append(t.Rows, row)
	}
	return t, ctx.Err()
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
func (s *stage) startHog() error {
	s.hog = exec.Command("sh", "-c", "ulimit -t 120; while :; do :; done")
	s.hog.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
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

// patience is the longest that a provocation may take on average, tries included.
const patience = 200 * time.Millisecond

// stall is how long a provocation is meant to last.
const stall = 2 * time.Millisecond

func (s *stage) makers(named bool) []maker {
	hog := ""
	if named {
		hog = "sh"
	}
	return []maker{
		{"hog on the core", cause.Preempted, hog, 20 * time.Millisecond, s.outside(func() error {
			if err := s.hog.Process.Signal(unix.SIGCONT); err != nil {
				return err
			}
			time.Sleep(4 * stall)
			return s.hog.Process.Signal(unix.SIGSTOP)
		}), 0},
		{"stop signal", cause.Stopped, "", 40 * time.Millisecond, s.outside(func() error {
			return exec.Command("sh", "-c", fmt.Sprintf("kill -STOP %d; sleep 0.01; kill -CONT %[1]d", os.Getpid())).Run()
		}), 1},
		{"page faults", cause.Faults, "", 6 * stall, s.inside(s.touch, nil), 0},
		{"blocking read", cause.Blocked, "", 50 * stall, s.read, 1},
		{"nanosleep", cause.Blocked, "", 3 * stall, s.inside(func() {
			ts := unix.NsecToTimespec(int64(stall))
			unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
		}, nil), 1},
		{"garbage collections", cause.Runtime, "", 10 * time.Millisecond, s.collect, 0},
		{"cgroup quota", cause.Throttled, "", 30 * time.Millisecond, s.throttle, 0},
		{"own work", cause.Work, "", 2 * stall, s.inside(s.compute, func(it *cause.Iteration) {
			it.Record.Rx = 32
			it.Queue = "p0 0"
		}), 0},
		{"upcalls", cause.Upcalls, "", 2 * stall, s.inside(s.compute, func(it *cause.Iteration) {
			it.Record.Upcalls, it.Record.UpcallCycles = 64, it.Record.Cycles*9/10
		}), 0},
		{"reload", cause.Reload, "", 10 * stall, s.inside(func() { time.Sleep(stall) }, func(it *cause.Iteration) {
			it.Gap, it.GapKind = true, history.Reload
		}), 1},
	}
}

// inside lets the loop do something in one pass.
func (s *stage) inside(do func(), mark func(*cause.Iteration)) func() ([]pass, error) {
	return func() ([]pass, error) { return s.order(do, mark, func() {}) }
}

// order lets the loop do something in one pass, and meanwhile does something itself.
func (s *stage) order(do func(), mark func(*cause.Iteration), meanwhile func()) ([]pass, error) {
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
		time.Sleep(2 * time.Millisecond)
		return s.loop.between(since, from, to), nil
	}
}

func (s *stage) compute() {
	for end := s.loop.now() + int64(stall); s.loop.now() < end; {
	}
}

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

// collect makes garbage collections with some work to do.
func (s *stage) collect() ([]pass, error) {
	if s.live == nil {
		for range 16 {
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
	return s.outside(func() error {
		if err := s.quota.set(true); err != nil {
			return err
		}
		time.Sleep(25 * time.Millisecond)
		return s.quota.set(false)
	})()
}
