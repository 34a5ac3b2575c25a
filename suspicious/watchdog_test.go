package suspicious

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pinged is a loop that ends passes or not.
type pinged struct {
	core int

	mu   sync.Mutex
	free chan struct{} // closed while it runs
	late time.Duration // so much later than it should a ping that fails returns
}

func newPinged(core int) *pinged {
	p := &pinged{core: core, free: make(chan struct{})}
	close(p.free)
	return p
}

func (p *pinged) stick(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if on {
		p.free = make(chan struct{})
	} else {
		close(p.free)
	}
}

func (p *pinged) Name() string { return fmt.Sprintf("pmd-c%02d/id:7", p.core) }
func (p *pinged) Core() int    { return p.core }
func (p *pinged) NUMA() int    { return 1 }

func (p *pinged) Ping(ctx context.Context) error {
	p.mu.Lock()
	free, late := p.free, p.late
	p.late = 0
	p.mu.Unlock()
	select {
	case <-free:
		return nil
	case <-ctx.Done():
		time.Sleep(late)
		return errors.New("stuck")
	}
}

// watchdog runs one with a threshold of 100 ms in a test's bubble and returns the
// reports so far, and what ends it.
func watchdog(t *testing.T, loops func() []Pinger) (reports func() []string, stop func()) {
	begun := time.Now()
	var mu sync.Mutex
	var got []string
	w := &Watchdog{Threshold: 100 * time.Millisecond, Loops: loops, Report: func(s Stall) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprintf("%v core %d #%d over=%t for=%v since=%v", time.Since(begun), s.Core, s.Report, s.Over, s.For, s.Since.Sub(begun)))
	}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.Run(ctx); close(done) }()
	return func() []string {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return got
		}, func() {
			cancel()
			<-done
		}
}

// A loop is reported while it is stuck, ever less often, and when it goes on.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPinged(0), newPinged(1)
		reports, stop := watchdog(t, func() []Pinger { return []Pinger{a, b} })
		defer stop()
		time.Sleep(1010 * time.Millisecond)
		a.stick(true) // is asked next at 1050 ms
		time.Sleep(980 * time.Millisecond)
		if diff := cmp.Diff([]string{
			"1.15s core 0 #1 over=false for=100ms since=1s",
			"1.25s core 0 #2 over=false for=200ms since=1s",
			"1.45s core 0 #3 over=false for=400ms since=1s",
			"1.85s core 0 #4 over=false for=800ms since=1s",
		}, reports()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		a.stick(false)
		time.Sleep(time.Second)
		a.stick(true)
		time.Sleep(90 * time.Millisecond) // not long enough
		a.stick(false)
		time.Sleep(time.Second)
		got := reports()
		if diff := cmp.Diff([]string{"1.99s core 0 #5 over=true for=940ms since=1s"}, got[min(4, len(got)):]); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A watchdog that did not run itself blames nobody, but for what it then sees.
func TestWatchdogWasLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newPinged(0)
		reports, stop := watchdog(t, func() []Pinger { return []Pinger{a} })
		defer stop()
		time.Sleep(1010 * time.Millisecond)
		a.mu.Lock()
		a.late = time.Minute
		a.mu.Unlock()
		a.stick(true)
		time.Sleep(time.Minute + 60*time.Millisecond)
		a.stick(false)
		time.Sleep(time.Second)
		if got := reports(); len(got) != 0 {
			t.Errorf("%q", got)
		}
		a.mu.Lock()
		a.late = time.Minute
		a.mu.Unlock()
		a.stick(true)
		time.Sleep(time.Minute + 200*time.Millisecond)
		if got := reports(); len(got) != 1 || !strings.Contains(got[0], "core 0 #1 over=false for=1m0.09s") {
			t.Errorf("%q", got)
		}
	})
}

// Loops come and go.
func TestWatchdogComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPinged(0), newPinged(1)
		a.stick(true)
		b.stick(true)
		var mu sync.Mutex
		loops := []Pinger{a}
		reports, stop := watchdog(t, func() []Pinger {
			mu.Lock()
			defer mu.Unlock()
			return loops
		})
		time.Sleep(110 * time.Millisecond)
		mu.Lock()
		loops = []Pinger{b}
		mu.Unlock()
		time.Sleep(200 * time.Millisecond)
		stop()
		if diff := cmp.Diff([]string{
			"100ms core 0 #1 over=false for=100ms since=0s",
			"250ms core 1 #1 over=false for=100ms since=150ms",
		}, reports()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestStallTexts(t *testing.T) {
	var b bytes.Buffer
	log := StallToLog(slog.New(slog.NewTextHandler(&b, nil)))
	s := Stall{Name: "pmd-c01/id:7", Core: 1, Since: epoch, For: 1234567 * time.Microsecond, Report: 2}
	log(s)
	if got := s.String(); got != "pmd-c01/id:7 is stuck: no iteration completed for 1.235s" {
		t.Error(got)
	}
	s.Over = true
	log(s)
	if got := s.String(); got != "pmd-c01/id:7 goes on: it completed no iteration for 1.235s" {
		t.Error(got)
	}
	for _, want := range []string{
		`level=ERROR msg="loop is stuck" pmd=pmd-c01/id:7 core=1 since=2026-01-31T23:59:59.000Z for=1.234567s report=2`,
		`level=WARN msg="loop goes on" pmd=pmd-c01/id:7 core=1 `,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// What the stuck thread is doing is looked at for each report while it is stuck, and not
// when it goes on; the time that takes is part of the stall.
func TestWatchdogExamines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newPinged(0)
		var mu sync.Mutex
		var got []string
		looks := 0
		w := &Watchdog{Threshold: 100 * time.Millisecond, Loops: func() []Pinger { return []Pinger{a} },
			Examine: func(s *Stall) {
				looks++
				if s.Doing != "" || s.Stack != nil || s.Name != a.Name() {
					t.Errorf("look %d at %+v", looks, s)
				}
				s.Doing, s.Stack = fmt.Sprintf("asleep, look %d", looks), []string{"main.wait (main.go:1)", "main.main (main.go:2)"}
				time.Sleep(30 * time.Millisecond)
			},
			Report: func(s Stall) {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, fmt.Sprintf("%v, stack of %d", &s, len(s.Stack)))
			}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { w.Run(ctx); close(done) }()
		time.Sleep(1010 * time.Millisecond)
		a.stick(true)
		time.Sleep(300 * time.Millisecond)
		a.stick(false)
		time.Sleep(100 * time.Millisecond)
		cancel()
		<-done
		want := []string{
			"pmd-c00/id:7 is stuck: no iteration completed for 130ms; it is asleep, look 1, stack of 2",
			"pmd-c00/id:7 is stuck: no iteration completed for 260ms; it is asleep, look 2, stack of 2",
			"pmd-c00/id:7 goes on: it completed no iteration for 260ms, stack of 0",
		}
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
