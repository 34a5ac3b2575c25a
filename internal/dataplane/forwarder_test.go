//go:build linux

package dataplane

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/perf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// totals adds up the recorders of a registry.
func totals(t *testing.T, g *perf.Registry) (sum perf.Totals, counts [perf.NumBuiltin]uint64, reloads uint64) {
	t.Helper()
	for _, r := range g.Recorders() {
		var s perf.Snapshot
		if err := r.Snapshot(context.Background(), perf.Want{}, &s); err != nil {
			t.Fatal(err)
		}
		sum.RxPackets += s.Totals.RxPackets
		sum.TxPackets += s.Totals.TxPackets
		sum.Drops += s.Totals.Drops
		sum.SleepIterations += s.Totals.SleepIterations
		sum.Iterations += s.Totals.Iterations
		for i, n := range s.Counts {
			counts[i] += n
		}
		reloads += s.Gaps[history.Reload].Count
	}
	return sum, counts, reloads
}

// TestRunBalances lets forwarders of all sorts run, with reports, reloads and
// trouble in between, and wants every packet to be counted exactly once.
func TestRunBalances(t *testing.T) {
	for name, cfg := range map[string]Config{
		"default":     {},
		"paced":       {Rate: 300_000, Flows: 1000, Profile: ProfileScatter, MaxSleep: 50 * time.Microsecond},
		"small ring":  {Rate: 3e6, RingSize: 32, Ports: []string{"mem", "mem", "mem"}, Queues: 3, Flows: 1000},
		"drop":        {Drop: true, Recirculate: true, Subtables: 10, Flows: 1000},
		"flush later": {FlushInterval: 10 * time.Millisecond, Sinks: 40, Flows: 1000, Profile: ProfileScatter, Rate: 1e5},
		"tunnel":      {Tunnel: true, Recirculate: true, Sinks: 3, Flows: 5000, Profile: ProfileScatter, SendAtOnce: true},
		"all cores":   {Cores: usableCores(), Queues: 2, Ports: []string{"mem", "mem"}, Flows: 100, Rate: 1e5},
		"busy":        {Cores: usableCores(), Queues: 2, Rate: 1e5, Flows: 10, Reload: ReloadBusy},
		"blocking":    {Cores: usableCores(), Queues: 2, Rate: 1e5, Flows: 10, Reload: ReloadBlocking},
		"idle":        {Profile: ProfileIdle},
		"trouble": {Rate: 1e5, Inject: []Injection{
			{InjectCompute, time.Millisecond, 20 * time.Millisecond},
			{InjectFault, time.Millisecond, 20 * time.Millisecond},
			{InjectBlock, time.Millisecond, 20 * time.Millisecond},
			{InjectGC, time.Millisecond, 20 * time.Millisecond},
			{InjectReload, time.Millisecond, 20 * time.Millisecond},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Registry = new(perf.Registry)
			f, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Start(); err != nil {
				t.Fatal(err)
			}
			var last Result
			for range 5 {
				time.Sleep(10 * time.Millisecond)
				if _, err := f.Reload(0); err != nil {
					t.Fatal(err)
				}
				r := f.Report()
				for i, p := range r.Ports {
					if i < len(last.Ports) && (p.Rx < last.Ports[i].Rx || p.Out < last.Ports[i].Out || p.Missed < last.Ports[i].Missed) {
						t.Errorf("a count went back from %+v to %+v", last.Ports[i], p)
					}
				}
				last = r
			}
			// On a busy machine every kind of trouble may take its time to come.
			for begun := time.Now(); !all(last.Injected) && time.Since(begun) < 20*time.Second; last = f.Report() {
				time.Sleep(10 * time.Millisecond)
			}
			got := f.Stop()
			if err := got.Unbalanced(); err != nil {
				t.Error(err)
			}
			if !all(got.Injected) {
				t.Errorf("injected %v, want some of each", got.Injected)
			}
			var rx, drops, out uint64
			for _, p := range got.Ports {
				rx, drops, out = rx+p.Rx, drops+p.Drops, out+p.Out
			}
			if (rx == 0) != (cfg.Profile == ProfileIdle) {
				t.Errorf("received %d", rx)
			}
			sum, counts, reloads := totals(t, cfg.Registry)
			if sum.RxPackets != rx || sum.TxPackets != out || sum.Drops != drops {
				t.Errorf("recorders: received %d, sent %d, dropped %d; ports: %+v", sum.RxPackets, sum.TxPackets, sum.Drops, got.Ports)
			}
			passes := rx + counts[perf.Recirc]
			if classified := counts[perf.EMCHit] + counts[perf.MegaflowHit] + counts[perf.UpcallsOK] + counts[perf.UpcallsLost]; classified != passes {
				t.Errorf("%d passes through the pipeline, but %d hits and upcalls", passes, classified)
			}
			if want := got.Reloads * uint64(len(got.PMDs)); got.Reloads < 5 || reloads != want || got.Gaps.Count < got.Reloads {
				t.Errorf("%d reloads, %d in the recorders, want %d; gaps %+v", got.Reloads, reloads, want, got.Gaps)
			}
			if again := f.Stop(); again.Ports[0] != got.Ports[0] {
				t.Errorf("a second Stop says %+v, want %+v", again.Ports[0], got.Ports[0])
			}
			if _, err := f.Reload(0); err == nil || f.Start() == nil {
				t.Error("a stopped forwarder can be reloaded or started")
			}
		})
	}
}

func all(counts []uint64) bool {
	for _, n := range counts {
		if n == 0 {
			return false
		}
	}
	return true
}

// TestMissedWhileStalled: what arrives while the loop stalls fills the ring, and the
// rest is missed and in no other count.
func TestMissedWhileStalled(t *testing.T) {
	got, err := Run(t.Context(), Config{
		Rate:     1e6,
		RingSize: 64,
		Duration: 100 * time.Millisecond,
		Inject:   []Injection{{InjectCompute, 10 * time.Millisecond, 30 * time.Millisecond}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Unbalanced(); err != nil {
		t.Error(err)
	}
	// 10,000 packets are due in a stall, of which 64 find room.
	if want := 9000 * got.Injected[0]; got.Injected[0] == 0 || got.Ports[0].Missed < want {
		t.Errorf("%d stalls, missed %d, want at least %d", got.Injected[0], got.Ports[0].Missed, want)
	}
}

// TestRunEnds: by the context, and by the duration.
func TestRunEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	got, err := Run(ctx, Config{Duration: time.Hour})
	if err != nil || got.Elapsed > time.Minute {
		t.Errorf("ended after %v with %v", got.Elapsed, err)
	}
	got, err = Run(t.Context(), Config{Duration: 10 * time.Millisecond})
	if err != nil || got.Elapsed < 10*time.Millisecond || got.Ports[0].Rx == 0 {
		t.Errorf("ended after %v with %v and %+v", got.Elapsed, err, got.Ports)
	}
}

func TestProgress(t *testing.T) {
	var calls atomic.Int32
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := Run(ctx, Config{Progress: func(r Result) {
		if r.Ports[0].Rx > 0 { // on a busy machine the first report may be too early
			calls.Add(1)
			cancel()
		}
	}})
	if err != nil || calls.Load() == 0 {
		t.Errorf("no news in %d calls, error %v", calls.Load(), err)
	}
}

// TestReportOfAStalledPMD returns in time, says that it is stale, and the count that
// comes later is whole.
func TestReportOfAStalledPMD(t *testing.T) {
	f, err := Open(Config{Rate: 1e5, Inject: []Injection{{InjectCompute, time.Second, 1100 * time.Millisecond}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	defer f.Stop()
	stale := false
	for begun := time.Now(); !stale && time.Since(begun) < 20*time.Second; time.Sleep(10 * time.Millisecond) {
		asked := time.Now()
		r := f.Report()
		stale = r.Stale == 1 && r.PMDs[0].Rx > 0
		if d := time.Since(asked); stale && d > 900*time.Millisecond {
			t.Errorf("a stale report took %v, want about %v", d, reportTimeout)
		}
	}
	if !stale {
		t.Error("no report was stale")
	}
	if r := f.Stop(); r.Stale != 0 || r.Unbalanced() != nil {
		t.Errorf("in the end: %+v, %v", r, r.Unbalanced())
	}
}

// TestOthersAreKeptOff wants the process's threads off the PMD's core while it runs,
// and back afterwards.
func TestOthersAreKeptOff(t *testing.T) {
	cores := usableCores()
	if len(cores) < 2 {
		need.Skip(t, "needs 2 cores")
	}
	mine := func() []int {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			t.Fatal(err)
		}
		return coresOf(&set)
	}
	var warnings []string
	f, err := Open(Config{Cores: cores[:1], Warn: func(s string) { warnings = append(warnings, s) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	if got := mine(); len(got) != len(cores)-1 || got[0] == cores[0] {
		t.Errorf("while a PMD runs on core %d others may use %v", cores[0], got)
	}
	pinned := f.pmds[0].rec.Name()
	names, err := exec.Command("sh", "-c", "cat /proc/$PPID/task/*/comm").Output()
	if err != nil || !strings.Contains(string(names), pinned) {
		t.Errorf("no thread %s among %q, %v", pinned, names, err)
	}
	f.Stop()
	if got := mine(); len(got) != len(cores) {
		t.Errorf("afterwards others may use %v, want %v", got, cores)
	}
	if got := strings.Join(warnings, "\n"); AsyncPreemptOff() == strings.Contains(got, "asyncpreemptoff=1") {
		t.Errorf("warnings %q", got)
	}
	warnings = nil
	f, err = Open(Config{Cores: cores, Warn: func(s string) { warnings = append(warnings, s) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Start(); err != nil {
		t.Fatal(err)
	}
	f.Stop()
	got := strings.Join(warnings, "\n")
	for _, want := range []string{"no core is left", "GOMAXPROCS is"} {
		if !strings.Contains(got, want) {
			t.Errorf("with PMDs on all cores: warnings %q, want one with %q", got, want)
		}
	}
}

// TestStartFailsWhole: when one thread cannot be set up, nothing runs, and the
// registry has room for the same recorders again.
func TestStartFailsWhole(t *testing.T) {
	cfg := Config{Registry: new(perf.Registry), Cores: usableCores()[:1]}
	f, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f.pmds[0].core = 1 << 20
	if err := f.Start(); err == nil {
		t.Error("started on a core that is not there")
	}
	if n := len(cfg.Registry.Recorders()); n != 0 {
		t.Errorf("%d recorders are left", n)
	}
	f.Stop()
	cfg.Duration = time.Millisecond
	if _, err := Run(t.Context(), cfg); err != nil {
		t.Errorf("a second try: %v", err)
	}
	// The registry now has a recorder of that core.
	if _, err := Run(t.Context(), cfg); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("a third one: error %v, want one line about the recorder that exists", err)
	}
}

// TestStopTheWorld stops the world again and again while PMDs run, reload and stall,
// in a process in which the runtime cannot interrupt them.
func TestStopTheWorld(t *testing.T) {
	const child = "PMDPERF_TEST_STOP_THE_WORLD"
	if os.Getenv(child) == "" {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, exe, "-test.run=^TestStopTheWorld$")
		cmd.Env = append(os.Environ(), child+"=1", "GODEBUG=asyncpreemptoff=1", "GOMAXPROCS=4")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if !AsyncPreemptOff() {
		t.Fatal("asyncpreemptoff is not in force")
	}
	for _, cfg := range []Config{
		{Cores: usableCores(), Profile: ProfileIdle, Queues: 2},
		{Cores: usableCores(), Queues: 2, Flows: 100, Level: perf.Off},
		{Rate: 1e5, MaxSleep: time.Millisecond},
	} {
		f, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Start(); err != nil {
			t.Fatal(err)
		}
		// Reloads meanwhile: a PMD in one waits for others that may be stopped.
		var reloads sync.WaitGroup
		reloads.Go(func() {
			for range 200 {
				if _, err := f.Reload(0); err != nil {
					t.Error(err)
				}
			}
		})
		var stats runtime.MemStats
		for range 200 {
			runtime.ReadMemStats(&stats)
		}
		reloads.Wait()
		f.Stop()
	}
}

// TestOverrun wants recorders to know of the packets that found a queue full, also when
// queues change hands.
func TestOverrun(t *testing.T) {
	registry := new(perf.Registry)
	result, err := Run(t.Context(), Config{
		Cores: usableCores(), Queues: 2, RingSize: 32, Rate: 2e6, Duration: 300 * time.Millisecond,
		Inject: []Injection{{InjectCompute, 5 * time.Millisecond, 20 * time.Millisecond}, {InjectReload, time.Millisecond, 50 * time.Millisecond}},
		Level:  perf.Basic, Registry: registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	var missed, told uint64
	for _, p := range result.Ports {
		missed += p.Missed
	}
	for _, r := range registry.Recorders() {
		var s perf.Snapshot
		if err := r.Snapshot(t.Context(), perf.Want{}, &s); err != nil {
			t.Fatal(err)
		}
		told += s.Totals.RxDrops
	}
	if told != missed || missed == 0 {
		t.Errorf("recorders know of %d of %d packets that were missed", told, missed)
	}
}

// TestTroubleClosesOnce wants what was opened to be given back, and nothing of others.
func TestTroubleClosesOnce(t *testing.T) {
	tr, err := newTrouble([]Injection{{InjectBlock, time.Millisecond, time.Second}, {InjectFault, time.Millisecond, time.Second}})
	if err != nil {
		need.Skip(t, err.Error())
	}
	tr.close()
	others, err := os.Open(os.DevNull) // takes the lowest number that is free
	if err != nil {
		t.Fatal(err)
	}
	defer others.Close()
	tr.close()
	if _, err := others.Stat(); err != nil {
		t.Errorf("closed what is not its own: %v", err)
	}
}
