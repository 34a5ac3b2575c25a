package pmd

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/perf"
)

// busyLoop is a poll loop that never sleeps, on a core that no other thread of the
// process uses: what slows it down is what the process does to it, and the neighbours
// on the machine.
type busyLoop struct {
	*perf.Recorder
	path   string // of the server's socket
	core   int
	thread atomic.Int64  // its number
	passes atomic.Uint64 // a multiple of passesAtOnce
	stop   atomic.Bool
	factor atomic.Int64 // by which passes last longer
}

// passesAtOnce is how many passes the loop makes before it says so: an atomic store
// in each of them would cost about as much as the recorder.
const passesAtOnce = 16

// startBusy starts a loop and a server for it. It wants two cores: if the clients
// and the loop took turns on one, that would be all there is to see.
func startBusy(t testing.TB, o Options) *busyLoop {
	t.Helper()
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &all); err != nil {
		t.Fatal(err)
	}
	if all.Count() < 2 {
		need.Skip(t, "needs two cores")
	}
	l := new(busyLoop)
	l.factor.Store(1)
	for i := range len(all) * 64 {
		if all.IsSet(i) {
			l.core = i
		}
	}
	registry := new(perf.Registry)
	var err error
	l.Recorder, err = registry.New(perf.Config{Core: l.core, Level: perf.Detailed, Polling: perf.Polling{
		RxQueues: []perf.Queue{{Port: "p0"}, {Port: "p1", Size: 1024}}, TxQueues: []perf.Queue{{Port: "p0"}}}})
	if err != nil {
		t.Fatal(err)
	}

	// Where the call changes nothing it is needed, too: or else the runtime makes
	// the value that of the cores that are left.
	procs := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(max(procs, 2))
	rest := all
	rest.Clear(l.core)
	moveThreads(t, &rest)
	t.Cleanup(func() {
		moveThreads(t, &all)
		runtime.GOMAXPROCS(procs)
	})
	var running sync.WaitGroup
	running.Go(func() { l.run(t) })
	t.Cleanup(func() {
		l.stop.Store(true)
		running.Wait()
	})

	dir, err := os.MkdirTemp("", "pmd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s, err := appctl.Listen(appctl.Config{RunDir: dir, Name: filepath.Base(dir)}, Commands(registry, o)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	l.path = s.SocketPath()
	await(t, "the loop runs", func() bool { return l.passes.Load() > 1000 })
	return l
}

// moveThreads moves all threads of the process to the cores of set, where those that
// they start later will be, too. The second round is for those that were just being
// started.
func moveThreads(t testing.TB, set *unix.CPUSet) {
	for range 2 {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			tid, err := strconv.Atoi(task.Name())
			if err == nil {
				err = unix.SchedSetaffinity(tid, set)
			}
			if err != nil && !errors.Is(err, unix.ESRCH) {
				t.Fatal(err)
			}
		}
	}
}

// run makes passes of one to some microseconds, in which all that is recorded occurs.
func (l *busyLoop) run(t testing.TB) {
	if err := perf.Pin(l.core, 8); err != nil {
		t.Error(err)
		return
	}
	l.thread.Store(int64(unix.Gettid()))
	defer l.Close()
	if err := l.Start(); err != nil {
		t.Error(err)
		return
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	work := rnd.Uint64()
	for !l.stop.Load() {
		factor := int(l.factor.Load())
		for range passesAtOnce {
			random := rnd.Uint32()
			packets := int(random % 33)
			l.Poll(0)
			l.Batch(packets, 0)
			for range factor * (1000 + packets*30) { // what a forwarder does with them
				work = work*6364136223846793005 + 1442695040888963407
			}
			l.Count(perf.EMCHit, uint64(packets))
			if random>>16%64 == 0 {
				l.Upcall(uint64(20_000+random%50_000), true)
			}
			l.Poll(1)
			l.Batch(int(random>>8%4), int(random>>10%512))
			l.Tx(packets, 1)
			l.End()
		}
		l.passes.Add(passesAtOnce)
	}
	if work == 0 { // never, but the compiler must not know
		t.Log(work)
	}
}

// look takes a snapshot, and has patience with a loop that neighbours keep from its core.
func (l *busyLoop) look(t testing.TB, want perf.Want, s *perf.Snapshot) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err = l.Snapshot(soon(t), want, s); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// slice is what the loop did in some time.
type slice struct {
	rate   float64 // passes in a second in which other processes left it its core
	atWork float64 // passes in a second in which it ran
	waited float64 // share of the time in which others had its core
}

// watch watches the loop for some time. When other processes had its core is left out
// of the rates, or else a disturbance that takes up the other core, so that they come
// to this one, would be charged with their time.
func (l *busyLoop) watch(t testing.TB, d time.Duration) slice {
	began, before := time.Now(), l.passes.Load()
	ran, waited := l.times(t)
	time.Sleep(d)
	passes := float64(l.passes.Load() - before)
	ranNow, waitedNow := l.times(t)
	d, ran, waited = time.Since(began), ranNow-ran, waitedNow-waited
	return slice{passes / (d - waited).Seconds(), passes / ran.Seconds(), waited.Seconds() / d.Seconds()}
}

// times returns for how long the loop's thread has run, and for how long it was ready
// to but other threads had its core (Documentation/scheduler/sched-stats.rst of
// Linux). Neither grows when it blocks, which it does when the Go runtime stops it.
func (l *busyLoop) times(t testing.TB) (ran, waited time.Duration) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/schedstat", l.thread.Load()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(stat), &ran, &waited); err != nil {
		t.Fatalf("schedstat %q: %v", stat, err)
	}
	return ran, waited
}

// compared is what the loop did in pairs of slices, one with a disturbance and one
// without.
type compared struct {
	with, without []slice
}

// compare watches the loop in pairs of slices, in random order within a pair. set
// switches the disturbance; the loop and its caches have the time settle to get used
// to it.
//
// Neighbours on the machine come and go, and do more to a slice than what is to be
// measured. Pairs in which they had the loop's core don't count, and others are made
// in their stead, up to most in all.
func (l *busyLoop) compare(t testing.TB, pairs, most int, length, settle time.Duration, set func(on bool)) compared {
	const undisturbed = 0.01
	defer set(false)
	var all, quiet compared
	for len(all.with) < most && len(quiet.with) < pairs {
		var with, without slice
		first := rand.IntN(2) == 0
		for _, on := range []bool{first, !first} {
			set(on)
			time.Sleep(settle)
			if on {
				with = l.watch(t, length)
			} else {
				without = l.watch(t, length)
			}
		}
		all.add(with, without)
		if max(with.waited, without.waited) < undisturbed {
			quiet.add(with, without)
		}
	}
	if len(quiet.with) >= pairs/2 {
		return quiet
	}
	t.Log("other processes had the loop's core most of the time: the figure is rough")
	return all
}

func (c *compared) add(with, without slice) {
	c.with, c.without = append(c.with, with), append(c.without, without)
}

// slowdown returns how much slower the loop is with the disturbance, in percent: the
// median over the pairs.
func (c *compared) slowdown() float64 { return c.median(func(s slice) float64 { return s.rate }) }

// slowdownAtWork returns the same of the time in which the loop runs, without that in
// which the Go runtime has stopped it.
func (c *compared) slowdownAtWork() float64 {
	return c.median(func(s slice) float64 { return s.atWork })
}

// noise returns by how much two slices without the disturbance differ that follow each
// other, in percent: the median of all.
func (c *compared) noise() float64 {
	var differences []float64
	for i := range len(c.without) - 1 {
		differences = append(differences, 100*math.Abs(1-c.without[i+1].rate/c.without[i].rate))
	}
	if differences == nil {
		return 0
	}
	return quantile(differences, 0.5)
}

func (c *compared) median(figure func(slice) float64) float64 {
	ratios := make([]float64, len(c.with))
	for i := range ratios {
		ratios[i] = figure(c.with[i]) / figure(c.without[i])
	}
	return 100 * (1 - quantile(ratios, 0.5))
}

func quantile(v []float64, q float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[int(q*float64(len(v)-1))]
}

// beginUninterrupted has the process begin anew with what a program with a poll loop
// is to be started with: or else the Go runtime interrupts the loop some tens of
// times a second, and that would be what is measured.
func beginUninterrupted() {
	const setting = "asyncpreemptoff=1"
	settings := os.Getenv("GODEBUG")
	if strings.Contains(settings, setting) {
		return
	}
	path, err := os.Executable()
	if err != nil {
		return
	}
	if settings != "" {
		settings += ","
	}
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "GODEBUG=") })
	_ = syscall.Exec(path, os.Args, append(env, "GODEBUG="+settings+setting)) // without it, it works as well
}
