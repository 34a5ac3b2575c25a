package cause

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/internal/need"
)

func sleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil)
}

// TestProbes lets every source of context switches see this thread sleep.
func TestProbes(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for most, name := range []string{"bpf", "perf core", "perf thread", "counters"} {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			core := -1
			if Source(most) == PerfCore {
				// Only a thread that is alone may be watched by its core.
				var was, one unix.CPUSet
				if err := unix.SchedGetaffinity(0, &was); err != nil {
					t.Fatal(err)
				}
				for core = 0; !was.IsSet(core); core++ {
				}
				one.Set(core)
				if err := unix.SchedSetaffinity(0, &one); err != nil {
					t.Fatal(err)
				}
				defer unix.SchedSetaffinity(0, &was)
			}
			p, err := Open(unix.Gettid(), core, Options{Most: Source(most)})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			for _, s := range p.Report() {
				t.Log(s)
			}
			if Source(most) < Counters && !p.Report()[most].Runs {
				need.Skip(t, p.Report()[most].String())
			}
			mark := p.Mark()
			if (mark == nil) != (Source(most) == Counters) {
				t.Fatal("no word that changes with a switch")
			}
			var was uint64
			if mark != nil {
				was = atomic.LoadUint64(mark)
			}
			sleep(2 * time.Millisecond)
			from := monotonic()
			sleep(5 * time.Millisecond)
			to := monotonic()
			if mark != nil && atomic.LoadUint64(mark) == was {
				t.Error("the mark didn't change")
			}
			ev := p.Between(from, to)
			causes := Attribute(Iteration{Start: from, End: to}, ev)
			for _, c := range causes {
				t.Log(c)
			}
			if ev.Thread == nil || ev.Thread.CPU < 0 || ev.Thread.CPU > ev.Thread.Over {
				t.Errorf("counters of the thread: %+v", ev.Thread)
			}
			if Source(most) == Counters {
				return
			}
			if !ev.Switches || len(ev.Spells) == 0 {
				t.Fatalf("switches %v, %d spells", ev.Switches, len(ev.Spells))
			}
			// Others may have the core for longer, and the runtime park the thread.
			var long Spell
			for _, s := range ev.Spells {
				slept := !s.runnable() && (Source(most) > BPF || strings.HasSuffix(s.Call, "nanosleep"))
				if slept && s.In-s.Out > long.In-long.Out {
					long = s
				}
			}
			if d := time.Duration(long.In - long.Out); d < 4*time.Millisecond {
				t.Fatalf("the spell lasted %v of %d", d, len(ev.Spells))
			}
			if Source(most) == BPF && (long.Call != "nanosleep" && long.Call != "clock_nanosleep" || long.State != "sleeping" || long.Woken == 0) {
				t.Errorf("the spell %+v", long)
			}
			if ev.Named && len(long.Ran) == 0 {
				t.Error("nobody ran instead, not even the idle task")
			}
		})
	}
}

// TestOther watches a thread of another process.
func TestOther(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	p, err := Open(cmd.Process.Pid, -1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	wait := func(what string, ok func(Sample) bool) {
		t.Helper()
		var s Sample
		for range 500 {
			if s = p.Sample(); ok(s) {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("%s: %+v", what, s)
	}
	wait("it sleeps", func(s Sample) bool { return s.State == "S" && strings.HasSuffix(s.Call, "nanosleep") })
	if err := cmd.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	wait("it is stopped", func(s Sample) bool { return s.State == "T" })
	to := monotonic()
	if ev := p.Between(to-int64(time.Millisecond), to); ev.Own || ev.Go != nil {
		t.Errorf("the evidence is of this process: %+v", ev)
	}
}

// TestContinued sees a signal that continues this process. It is not stopped for it: whoever
// waits for it might take that for its end.
func TestContinued(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := Open(unix.Gettid(), -1, Options{Most: Counters})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	from := monotonic()
	if err := unix.Kill(os.Getpid(), unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		sleep(5 * time.Millisecond)
		if ev := p.Between(from, monotonic()); len(ev.Continued) > 0 {
			return
		}
	}
	t.Error("the signal was not seen")
}

func TestOpenNobody(t *testing.T) {
	if _, err := Open(1<<22+1, -1, Options{}); err == nil {
		t.Error("a thread that can't be was found")
	}
}

// TestQuotaDirs finds the groups above one.
func TestQuotaDirs(t *testing.T) {
	for _, tt := range []struct {
		mount cgroupMount
		group string
		want  string
	}{
		{cgroupMount{"/", "/cg"}, "/a/b", "/cg/a/b /cg/a /cg"},
		{cgroupMount{"/a", "/cg"}, "/a/b", "/cg/b /cg"},
		{cgroupMount{"/box", "/cg"}, "/other", "/cg"},
		{cgroupMount{"/", "/cg"}, "/../../x", "/cg/x /cg"},
	} {
		if got := strings.Join(groupDirs(tt.mount, tt.group), " "); got != tt.want {
			t.Errorf("%v %s: got %s, want %s", tt.mount, tt.group, got, tt.want)
		}
	}
}

// TestClose leaves nothing open.
func TestClose(t *testing.T) {
	count := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	open := func() {
		for most := BPF; most <= Counters; most++ {
			p, err := Open(unix.Gettid(), 0, Options{Most: most})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	open() // the first may open what stays
	before := count()
	open()
	if after := count(); after != before {
		t.Errorf("%d files were open, then %d", before, after)
	}
}
