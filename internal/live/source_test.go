package live

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/export/appctl/pmd"
	"github.com/pmdperf/pmdperf/internal/ovslab"
	"github.com/pmdperf/pmdperf/perf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// serve starts a server with those commands and returns the path of its socket.
func serve(t *testing.T, commands ...appctl.Command) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "live")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s, err := appctl.Listen(appctl.Config{RunDir: dir, Name: "live"}, commands...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.SocketPath()
}

func fetch(t *testing.T, s *Source) *Sample {
	t.Helper()
	sample, err := s.Fetch(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(sample.PMDs) == 0 || sample.Arrived.Before(sample.Sent) {
		t.Fatalf("sample is %+v", sample)
	}
	return sample
}

// TestOurs looks at a loop that is recorded, and that stands still in the end.
func TestOurs(t *testing.T) {
	registry := new(perf.Registry)
	r, err := registry.New(perf.Config{Core: 3, Level: perf.Detailed, Polling: perf.Polling{RxQueues: []perf.Queue{{Port: "p0"}}}})
	if err != nil {
		t.Fatal(err)
	}
	var stall, stop atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer r.Close()
		if err := r.Start(); err != nil {
			t.Error(err)
			return
		}
		for !stop.Load() {
			for stall.Load() && !stop.Load() {
				time.Sleep(time.Millisecond)
			}
			r.Poll(0)
			r.Batch(32, 7)
			r.Upcall(1000, true)
			r.End()
			r.SleepBegin()
			time.Sleep(100 * time.Microsecond)
			r.SleepEnd()
		}
	}()
	defer func() { stop.Store(true); <-ended }()

	s := &Source{Target: serve(t, pmd.Commands(registry, pmd.Options{})...), Iterations: 10, Millis: 20}
	defer s.Close()
	first := fetch(t, s)
	time.Sleep(50 * time.Millisecond)
	second := fetch(t, s)
	p := second.PMDs[0]
	if second.Form != JSON || p.Core != 3 || p.Level != "detailed" || p.State != "running" || p.Hz < 1e6 || p.Estimated {
		t.Errorf("PMD is %+v", p)
	}
	if len(p.Iterations) != 10 || len(p.Millis) == 0 || p.Millis[0].Age != 0 || p.Millis[0].Seconds < 0.001 {
		t.Errorf("history has %d iterations and the milliseconds %+v", len(p.Iterations), p.Millis)
	}
	span := second.Since(first)[0]
	if span.Cleared || span.Seconds < 0.04 {
		t.Errorf("span is %v s, cleared is %v", span.Seconds, span.Cleared)
	}
	near(t, "packets of a batch", span.Per(RxPackets, RxBatches), 32)
	near(t, "upcalls of an iteration", span.Per(Upcalls, Iterations), 1)
	near(t, "time", span.BusyPercent()+span.IdlePercent()+span.SleepPercent()+span.GapPercent(), 100)
	if m := span.Histograms[QueueFill].Max(); m != (Estimate{7, Exact}) {
		t.Errorf("queue fill is %+v, want 7", m)
	}
	if e := p.Histograms[CyclesPerIteration].Percentile(99); e.Bound != Exact {
		t.Errorf("percentile since the clear is %+v, want an exact one", e)
	}

	c, err := appctl.Dial(soon(t), s.Target)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Call(soon(t), "dpif-netdev/pmd-stats-clear"); err != nil {
		t.Fatal(err)
	}
	if span := fetch(t, s).Since(second)[0]; !span.Restarted || !span.Cleared || span.Seconds > second.PMDs[0].Seconds+60 {
		t.Errorf("after a clear the span is %v s, restarted is %v", span.Seconds, span.Restarted)
	}

	stall.Store(true)
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		sample, err := s.Fetch(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		if len(sample.Missing) == 1 {
			if m := sample.Missing[0]; m.Core != 3 || m.Reason == "" || len(sample.PMDs) != 0 {
				t.Errorf("missing is %+v", m)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal("a PMD that stands still is not missing")
		}
	}
}

// TestOVS looks at a real Open vSwitch.
func TestOVS(t *testing.T) {
	lab := ovslab.Start(t, ovslab.Options{PMDs: 2})
	t.Setenv("OVS_RUNDIR", lab.RunDir)
	s := &Source{Target: lab.Name, Iterations: 10, Millis: 1000}
	defer s.Close()
	first := fetch(t, s)
	time.Sleep(300 * time.Millisecond)
	second := fetch(t, s)
	if second.Form != Text || len(second.PMDs) != 2 {
		t.Fatalf("form is %v, PMDs are %+v", second.Form, second.PMDs)
	}
	for _, span := range second.Since(first) {
		if span.Cleared || span.Seconds < 0.2 || !(span.PerSecond(Iterations) > 1) || span.Stalled() {
			t.Errorf("core %d: %v s, cleared is %v, %v iterations/s", span.Core, span.Seconds, span.Cleared, span.PerSecond(Iterations))
		}
		if all := span.BusyPercent() + span.IdlePercent() + span.SleepPercent(); wrong100(all) {
			t.Errorf("core %d: shares add up to %v", span.Core, all)
		}
		if !(span.Hz > 1e8) || !span.Estimated {
			t.Errorf("core %d: frequency is %v", span.Core, span.Hz)
		}
		if e := span.Histograms[CyclesPerIteration].Percentile(50); e.Bound != About || !(e.Value > 0) {
			t.Errorf("core %d: median is %+v", span.Core, e)
		}
	}
	lab.Appctl(t, "dpif-netdev/pmd-stats-clear")
	for end := time.Now().Add(60 * time.Second); ; { // it is done some time after it was asked for
		third := fetch(t, s)
		if third.Since(second)[0].Restarted {
			break
		}
		if time.Now().After(end) {
			t.Fatal("a clear is not noticed")
		}
	}
}

func wrong100(v float64) bool { return !(v > 99.9 && v < 100.1) }

// TestWrapped: newer Open vSwitch answers with a text inside of JSON.
func TestWrapped(t *testing.T) {
	text := func(name, text string) appctl.Command {
		return appctl.Command{Name: name, MaxArgs: appctl.NoMax, Text: func(_ context.Context, w io.Writer, _ []string) error {
			_, err := io.WriteString(w, text)
			return err
		}}
	}
	s := &Source{Target: serve(t,
		text(perfShow, "\nTime: 14:50:01.963\nMeasurement duration: 2.000 s\n\npmd thread numa_id 0 core_id 7:\n\n  Iterations: 1000 (1.0 us/it)\n"),
		text(statsShow, "pmd thread numa_id 0 core_id 7:\n  idle cycles: 30 (75.00%)\n  processing cycles: 10 (25.00%)\nmain thread:\n"))}
	defer s.Close()
	p := fetch(t, s).PMDs[0]
	if p.Core != 7 || p.Counts.Get(Iterations) != 1000 || p.Counts.Get(BusyCycles) != 10 {
		t.Errorf("PMD is %+v", p)
	}
}

func TestFetchErrors(t *testing.T) {
	s := &Source{Target: "/nonexistent/x.ctl"}
	if _, err := s.Fetch(soon(t)); err == nil || !strings.Contains(err.Error(), "/nonexistent/x.ctl") {
		t.Errorf("no socket: %v", err)
	}
	answer := func(v any, err error) string {
		return serve(t, appctl.Command{Name: perfShow, MaxArgs: appctl.NoMax,
			Text: func(context.Context, io.Writer, []string) error { return err },
			JSON: func(context.Context, []string) (any, error) { return v, err }})
	}
	for _, test := range []struct {
		target, want string
	}{
		{serve(t), "is not a valid command"},
		{answer(map[string]int{"version": 99}, nil), "version 99"},
		{answer([]int{1}, nil), "not understood"},
		{answer(nil, errors.New("out of order")), "out of order"},
	} {
		s := &Source{Target: test.target}
		if _, err := s.Fetch(soon(t)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error is %v, want %q", err, test.want)
		}
		s.Close()
	}
	slow := &Source{Target: serve(t, appctl.Command{Name: perfShow, MaxArgs: appctl.NoMax,
		Text: func(ctx context.Context, _ io.Writer, _ []string) error { <-ctx.Done(); return ctx.Err() }})}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := slow.Fetch(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("slow target: %v", err)
	}
}
