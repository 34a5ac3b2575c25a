package observe

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/suspicious/cause"
)

// victimEnv turns the test binary into a process with poll-mode threads, and names its
// log.
const victimEnv = "PMDPERF_OBSERVE_VICTIM"

func TestMain(m *testing.M) {
	if log := os.Getenv(victimEnv); log != "" {
		victim(log)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// nap is how long the victim's threads sleep.
const nap = 20 * time.Millisecond

// victim has one thread after the other that polls and naps, and logs each nap as Open
// vSwitch logs suspicious iterations. A line on standard input ends a thread, its end the
// process.
func victim(path string) {
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		panic(err)
	}
	lines := make(chan struct{})
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			lines <- struct{}{}
		}
		os.Exit(0)
	}()
	for id := 1; ; id++ {
		gone := make(chan struct{})
		stop := make(chan struct{})
		var thread func()
		thread = func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			if unix.Gettid() == unix.Getpid() {
				go thread() // that one doesn't end: take another
				select {}
			}
			defer close(gone)
			name := fmt.Sprintf("pmd-c07/id:%d", id)
			text := append([]byte(name), 0)
			_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&text[0])), 0, 0, 0)
			for iter := uint64(1); ; iter++ {
				select {
				case <-stop:
					return
				default:
				}
				for end := time.Now().Add(10 * time.Millisecond); time.Now().Before(end); {
				}
				ts := unix.NsecToTimespec(int64(nap))
				begun := time.Now()
				_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
				fmt.Fprintf(log, "%s|%05d|pmd_perf(%s)|WARN|Suspicious iteration (Excessive total cycles): iter=%d duration=%d us\n",
					time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), iter, name, iter, time.Since(begun).Microseconds())
			}
		}
		go thread()
		<-lines
		close(stop)
		<-gone
	}
}

// startVictim returns a victim, its log, and what ends a thread of it.
func startVictim(t *testing.T) (cmd *exec.Cmd, log string, next io.Writer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log = filepath.Join(t.TempDir(), "victim.log")
	if err := os.WriteFile(log, []byte("2026-01-01T00:00:00.000Z|00001|pmd_perf(pmd-c07/id:1)|WARN|Suspicious iteration (Excessive total cycles): iter=99999 duration=5 us\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(exe)
	cmd.Env = append(os.Environ(), victimEnv+"="+log, "GODEBUG=asyncpreemptoff=1")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	await(t, cmd.Process.Pid)
	return cmd, log, stdin
}

// TestVictim follows threads that come and go, finds why they don't poll, and explains
// what their log says, with every set of probes.
func TestVictim(t *testing.T) {
	for most := cause.BPF; most <= cause.Counters; most++ {
		if most == cause.PerfCore {
			continue // for threads on cores of their own, which these are not
		}
		t.Run([]string{"bpf", "perf core", "perf thread", "counters"}[most], func(t *testing.T) {
			cmd, log, next := startVictim(t)
			pid := cmd.Process.Pid
			sure := cause.Exact
			if most > cause.BPF {
				sure = cause.Inferred
			}
			var naps, explained, stops, gone int
			stopped := false
			_, sum := observeUntil(t, Config{
				Find: func() (int, error) { return pid, nil }, Threshold: 5 * time.Millisecond, Log: log, Probes: cause.Options{Most: most},
			}, func(r Record) bool {
				switch r := r.(type) {
				case *Thread:
					if r.Watched && most < cause.Counters && !r.Probes[most].Runs {
						need.Skip(t, r.Probes[most].String())
					}
					if !r.Watched {
						gone++
					}
				case *Spell:
					c := r.Causes[0]
					if r.Took < 5*time.Millisecond && !r.Lasts {
						t.Errorf("a short spell was told: %s", r)
					}
					switch {
					case c.Kind == cause.Blocked && c.How >= sure && r.Took > nap/2 && (c.Name == "nanosleep" || most > cause.BPF):
						naps++
					case c.Kind == cause.Stopped:
						stops++
					}
					if naps == 3 && !stopped {
						stopped = true
						_ = unix.Kill(pid, unix.SIGSTOP)
						time.Sleep(50 * time.Millisecond)
						_ = unix.Kill(pid, unix.SIGCONT)
						_, _ = next.Write([]byte("\n"))
					}
				case *Iteration:
					if r.Iteration == 99999 {
						t.Error("an iteration of before the start was told")
					}
					if r.Watched && len(r.Spells) > 0 && len(r.Causes) > 0 && r.Causes[0].Kind == cause.Blocked {
						explained++
					}
				}
				return naps >= 6 && explained >= 2 && gone >= 1
			})
			t.Logf("%d naps, %d of them explained in the log, %d stops, %d threads gone", naps, explained, stops, gone)
			if naps < 6 || explained < 2 || gone < 1 || stops < 1 && most != cause.PerfThread {
				t.Error("that is not enough")
			}
			if len(sum.Threads) < 2 || sum.Threads[0].Name != "pmd-c07/id:1" || sum.Threads[1].Name != "pmd-c07/id:2" {
				t.Errorf("threads: %+v", sum.Threads)
			}
			if sum.Explained < explained || sum.Iterations < sum.Explained || sum.Unread > 0 {
				t.Errorf("the log: %d, %d explained, %d unread", sum.Iterations, sum.Explained, sum.Unread)
			}
		})
	}
}

// TestGone ends with the process, and goes on with the next one if told so.
func TestGone(t *testing.T) {
	first, _, end := startVictim(t)
	second, _, _ := startVictim(t)
	found := 0
	cfg := Config{Again: true, Probes: cause.Options{Most: cause.Counters}}
	cfg.Find = func() (int, error) {
		found++
		switch found {
		case 1:
			return first.Process.Pid, nil
		case 2:
			return 0, os.ErrNotExist // not yet
		}
		return second.Process.Pid, nil
	}
	var pids []int
	records, _ := observeUntil(t, cfg, func(r Record) bool {
		if th, ok := r.(*Thread); ok && th.Watched {
			pids = append(pids, th.PID)
			if len(pids) == 1 {
				_ = end.(io.Closer).Close()
				_ = first.Wait()
			}
		}
		return len(pids) == 2
	})
	if len(pids) != 2 || pids[0] != first.Process.Pid || pids[1] != second.Process.Pid {
		t.Errorf("processes %v in %d records", pids, len(records))
	}

	cfg = Config{Find: func() (int, error) { return first.Process.Pid, nil }}
	if err := Run(t.Context(), cfg, func(Record) {}); err == nil || !strings.Contains(err.Error(), "no process") {
		t.Errorf("a process that is gone: %v", err)
	}
}
