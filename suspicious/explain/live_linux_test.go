package explain_test

import (
	"context"
	"math"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/perf/tsc"
	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/cause"
	"github.com/pmdperf/pmdperf/suspicious/explain"
)

// A loop sleeps in a system call now and then, and computes for long now and then: the
// supervisor's reports say which, whatever the privileges.
func TestLoop(t *testing.T) {
	r, err := perf.New(perf.Config{Level: perf.Detailed, Polling: perf.Polling{RxQueues: []perf.Queue{{Port: "p0"}}}})
	if err != nil {
		t.Fatal(err)
	}
	settings := suspicious.Settings{On: true, Limits: suspicious.Limits{Iteration: 2 * time.Millisecond}}
	if err := r.SetSuspicion(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	e := explain.New(cause.Options{})
	causes := make(map[uint64][]suspicious.Cause)
	s := suspicious.NewSupervisor(suspicious.Options{
		Sources: func() []suspicious.Source { return []suspicious.Source{r} },
		Sinks:   []suspicious.Sink{func(r *suspicious.Report) { causes[r.Iteration] = r.Causes }},
		Causes:  e.Causes, PerMinute: -1,
	})
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { s.Run(ctx) })

	var slept, worked []uint64
	var thread int
	loop := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		defer r.Close()
		if err := r.Start(); err != nil {
			loop <- err
			return
		}
		thread = r.ThreadID()
		e.Watch(r.Name(), thread, -1)
		e.Watch(r.Name(), thread, -1)
		e.Status()
		time.Sleep(20 * time.Millisecond) // readings before the first
		n := uint64(0)
		pass := func(do func()) uint64 {
			r.Poll(0)
			do()
			r.End()
			n++
			return n - 1
		}
		for range 10 {
			slept = append(slept, pass(func() {
				ts := unix.NsecToTimespec(int64(5 * time.Millisecond))
				_ = unix.Nanosleep(&ts, nil)
			}))
			worked = append(worked, pass(func() {
				for end := tsc.Now() + tsc.System().Ticks(5*time.Millisecond); tsc.Now() < end; {
				}
			}))
			for range 100 {
				pass(func() {})
			}
		}
		loop <- nil
	}()
	if err := <-loop; err != nil {
		t.Fatal(err)
	}
	stop()
	all.Wait()
	if thread != r.ThreadID() || thread == 0 {
		t.Errorf("thread %d, then %d", thread, r.ThreadID())
	}
	if st := e.Status(); len(st) != 1 || st[0].Name != r.Name() || st[0].Err != nil || len(st[0].Probes) == 0 {
		t.Errorf("status %+v", st)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}

	part := func(n uint64, kinds ...suspicious.CauseKind) (sum time.Duration) {
		for _, c := range causes[n] {
			for _, k := range kinds {
				if c.Kind == k {
					sum += c.Part
				}
			}
		}
		return sum
	}
	rightly := 0
	for i := range slept {
		// On a busy machine the thread waits for its core besides.
		if part(slept[i], suspicious.CauseBlocked, suspicious.CauseSlept) > 3*time.Millisecond {
			rightly++
		}
		if part(worked[i], suspicious.CauseWork, suspicious.CausePreempted) > 3*time.Millisecond &&
			part(worked[i], suspicious.CauseBlocked, suspicious.CauseSlept) < time.Millisecond {
			rightly++
		}
	}
	if rightly < 14 {
		t.Errorf("%d of 20 told rightly:\nsleeps %v, work %v:\n%v", rightly, slept, worked, causes)
	}
	c := s.Counts(r.Name())
	sum := uint64(0)
	for _, n := range c.Causes {
		sum += n
	}
	if c.Reported == 0 || c.Reported != sum || c.Reported != s.Reported() || c.HeldBack != 0 {
		t.Errorf("%+v of %d reports", c, s.Reported())
	}
	for n, cs := range causes {
		all := 0.0
		for _, c := range cs {
			all += c.Share
		}
		if len(cs) == 0 || all > 1.001 || math.IsNaN(all) {
			t.Errorf("iteration %d: %v", n, cs)
		}
	}
}

// The probes of a loop that ended are closed, and another may have its name.
func TestUnwatch(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	e := explain.New(cause.Options{})
	descriptors := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	before := descriptors()
	e.Unwatch("nobody")
	e.Watch("pmd-c01/id:8", unix.Gettid(), -1)
	if s := e.Status(); len(s) != 1 || s[0].Err != nil || descriptors() <= before {
		t.Errorf("status %+v, %d files open, %d before", s, descriptors(), before)
	}
	e.Unwatch("pmd-c01/id:8")
	if s := e.Status(); len(s) != 0 {
		t.Errorf("status %+v of loops that are not watched any more", s)
	}
	if err := e.Close(); err != nil { // waits
		t.Fatal(err)
	}
	if now := descriptors(); now > before {
		t.Errorf("%d files open, %d before", now, before)
	}
}
