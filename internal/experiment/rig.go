package experiment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/pmdperf/pmdperf/internal/dataplane"
	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/cause"
)

// rig is a forwarder of one PMD or several under measurement.
type rig struct {
	f   *dataplane.Forwarder
	rec []*perf.Recorder
	hz  float64
	r   *Report

	silence time.Duration
}

// generator returns how many Mpps the generator of a forwarder makes alone.
func generator(cfg dataplane.Config) (mpps float64, err error) {
	pps, err := dataplane.Generate(cfg, 20*time.Millisecond)
	return pps / 1e6, err
}

// openRig opens and starts the forwarder. What makes its measurements worse is noted
// in r.
func openRig(cfg dataplane.Config, r *Report) (*rig, error) {
	cfg.Registry = new(perf.Registry)
	cfg.Warn = r.warn
	f, err := dataplane.Open(cfg)
	if err != nil {
		return nil, err
	}
	w := &rig{f: f, rec: cfg.Registry.Recorders(), hz: r.Machine.Hz, r: r, silence: silence}
	if err := f.Start(); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *rig) close() dataplane.Result { return w.f.Stop() }

// silence is how long nothing may come while a forwarder warms up.
const silence = 10 * time.Second

// warmUp waits until the PMDs have received that many packets and a tenth of a second
// has passed. It returns an error when nothing comes.
func (w *rig) warmUp(ctx context.Context, packets uint64) error {
	begun, rx := time.Now(), uint64(0)
	for came := begun; ; {
		m, err := w.mark()
		if err != nil {
			return err
		}
		if m.Rx >= packets && time.Since(begun) >= 100*time.Millisecond {
			return nil
		}
		if m.Rx > rx {
			came, rx = time.Now(), m.Rx
		}
		if time.Since(came) > w.silence {
			return fmt.Errorf("no packet came for %v: real ports need somebody who sends", w.silence)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// mark returns the sum of all PMDs' marks, with the mean of their ticks.
func (w *rig) mark() (sum dataplane.Mark, err error) {
	marks, err := w.f.Marks()
	if err != nil {
		return sum, err
	}
	return total(marks), nil
}

// total returns the sum of marks with the mean of their ticks.
func total(marks []dataplane.Mark) (sum dataplane.Mark) {
	for _, m := range marks {
		sum.Tick += m.Tick / uint64(len(marks))
		sum.Rx += m.Rx
		sum.Tx += m.Tx
		sum.Drops += m.Drops
		sum.Missed += m.Missed
		sum.Batches += m.Batches
		sum.Slept += m.Slept
		sum.Taken += m.Taken
	}
	return sum
}

// measure returns what was done in a slice of about d.
func (w *rig) measure(d time.Duration) (slice, error) {
	from, err := w.f.Marks()
	if err != nil {
		return slice{}, err
	}
	nap(d)
	to, err := w.f.Marks()
	if err != nil {
		return slice{}, err
	}
	return newSlice(from, to, w.hz), nil
}

// slice is what PMDs did between two marks of each.
type slice struct {
	dataplane.Mark         // the sum, with the mean of the ticks
	mpps           float64 // received
	cycles         float64 // of all PMDs, per packet received
}

// newSlice returns what was done from one mark of each PMD to another.
func newSlice(from, to []dataplane.Mark, hz float64) (s slice) {
	done := make([]dataplane.Mark, len(to))
	ticks := 0.0
	for i := range to {
		done[i] = to[i].Sub(from[i])
		// A slice in which a thread that others kept off its core received nothing
		// counts as one packet, so that it has a number.
		s.mpps += float64(max(done[i].Rx, 1)) / float64(max(done[i].Tick, 1)) * hz / 1e6
		ticks += float64(done[i].Tick)
	}
	s.Mark = total(done)
	s.cycles = ticks / float64(max(s.Rx, 1))
	return s
}

// setLevel switches all recorders to a level.
func (w *rig) setLevel(ctx context.Context, l perf.Level) error {
	for _, rec := range w.rec {
		if err := w.patiently(ctx, func() error { return rec.SetLevel(ctx, l) }); err != nil {
			return err
		}
	}
	return nil
}

// patiently does what a recorder may refuse while its thread is off its core.
func (w *rig) patiently(ctx context.Context, do func() error) error {
	for begun := time.Now(); ; {
		err := do()
		if err == nil || ctx.Err() != nil || time.Since(begun) > 30*time.Second {
			return err
		}
	}
}

// supervise switches on all that finds and explains suspicious iterations, until the
// function that it returns is called.
func (w *rig) supervise(ctx context.Context) (stop func() error, err error) {
	settings := suspicious.Default()
	settings.On, settings.Extend, settings.PollGap, settings.Gap = true, true, time.Millisecond, time.Millisecond
	if err := w.setSuspicion(ctx, settings); err != nil {
		return nil, err
	}
	var probes []*cause.Probes
	for i, tid := range w.f.Threads() {
		p, err := cause.Open(tid, w.rec[i].Core(), cause.Options{})
		if err != nil {
			return nil, err
		}
		probes = append(probes, p)
		w.r.noteOnce("Probes that ran: " + strings.Join(running(p), "; ") + ".")
	}
	sources := make([]suspicious.Source, len(w.rec))
	for i, rec := range w.rec {
		sources[i] = rec
	}
	s := suspicious.NewSupervisor(suspicious.Options{Sources: func() []suspicious.Source { return sources }})
	watching, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { s.Run(watching) })
	return func() error {
		cancel()
		all.Wait()
		var errs []error
		for _, p := range probes {
			errs = append(errs, p.Close())
		}
		return errors.Join(append(errs, w.setSuspicion(ctx, suspicious.Settings{}))...)
	}, nil
}

// running names the probes that run.
func running(p *cause.Probes) (names []string) {
	for _, s := range p.Report() {
		if s.Runs {
			names = append(names, s.Probe)
		}
	}
	return names
}

func (w *rig) setSuspicion(ctx context.Context, s suspicious.Settings) error {
	for _, rec := range w.rec {
		if err := w.patiently(ctx, func() error { return rec.SetSuspicion(ctx, s) }); err != nil {
			return err
		}
	}
	return nil
}

// notInterrupted returns err unless it is there because ctx has ended.
func notInterrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
