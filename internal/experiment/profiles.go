package experiment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pmdperf/pmdperf/internal/dataplane"
	"github.com/pmdperf/pmdperf/perf"
)

// ProfilesConfig says what Profiles measures.
type ProfilesConfig struct {
	Common
	Flows    int
	Outputs  int // ports that the flows are spread over
	RingSize int // packets that a receive queue holds
	Flush    time.Duration
	Searches int // of each kind

	// As RFC 2544 has them: how long a rate is tried, and the share of packets that may
	// get lost. The search ends when the rate is known to that share of itself.
	Trial      time.Duration
	Loss       float64
	Resolution float64
}

// Validate returns what is wrong with the configuration on this machine.
func (c *ProfilesConfig) Validate() error {
	switch {
	case c.Searches < 1:
		return fmt.Errorf("%d searches: choose at least 1", c.Searches)
	case c.Trial < time.Millisecond || c.Trial > time.Minute:
		return fmt.Errorf("trials of %v: choose 1ms to 1m; shorter ones are finer than the clock that ends them", c.Trial)
	case !(c.Loss >= 0 && c.Loss < 1):
		return fmt.Errorf("a loss of %v: choose a share of packets from 0 to below 1", c.Loss)
	case !(c.Resolution > 0 && c.Resolution <= 0.5):
		return fmt.Errorf("a resolution of %v: choose a share of the rate above 0, at most 0.5", c.Resolution)
	case c.Outputs < 1:
		return fmt.Errorf("%d output ports: choose at least 1", c.Outputs)
	}
	// A trial at a million packets a second can't tell rates apart that differ by less
	// than a packet.
	if finest := 1 / (1e6 * c.Trial.Seconds()); c.Resolution < finest {
		return fmt.Errorf("a resolution of %v is finer than a packet in trials of %v: choose at least %.2g, or longer trials", c.Resolution, c.Trial, finest)
	}
	if c.Flush <= 0 {
		return fmt.Errorf("flush interval %v: choose more than 0, or both paths are the same", c.Flush)
	}
	return c.forwarder(dataplane.ProfileBurst, true).Validate()
}

func (c *ProfilesConfig) forwarder(p dataplane.Profile, tunnel bool) dataplane.Config {
	cfg := c.dataplane()
	cfg.Profile, cfg.Tunnel = p, tunnel
	cfg.Flows, cfg.Sinks, cfg.RingSize = c.Flows, c.Outputs, c.RingSize
	cfg.FlushInterval = c.Flush
	cfg.Level = perf.Off
	return cfg
}

// kind is one of the ways to forward that take turns.
type kind struct {
	atOnce bool
	level  perf.Level
}

// The kinds that are compared. What comes before is what the one after is compared
// with.
var kinds = []kind{{true, perf.Off}, {false, perf.Off}, {true, perf.Detailed}, {false, perf.Detailed}}

func (k kind) path() string {
	if k.atOnce {
		return "at once"
	}
	return "batch per port"
}

// found is what the searches of one kind found, one value each.
type found struct {
	mpps, batch               []float64
	trials, repeated, unclean int
}

// Profiles searches for the highest rate that is forwarded without loss, for traffic of
// either profile, in a tunnel or plain. In each round all kinds are searched for side
// by side, trial by trial in random order.
func Profiles(ctx context.Context, c ProfilesConfig) (r *Report, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r = begin("profiles", append(c.parameters(), parameter("flows", c.Flows), parameter("output ports", c.Outputs), parameter("ring", c.RingSize),
		parameter("flush interval", c.Flush), parameter("trial", c.Trial), parameter("loss", c.Loss), parameter("resolution", c.Resolution), parameter("searches", c.Searches))...)
	defer r.end(ctx)
	defer r.noteUnclean()
	for _, tunnel := range []bool{false, true} {
		for _, p := range []dataplane.Profile{dataplane.ProfileBurst, dataplane.ProfileScatter} {
			if ctx.Err() != nil {
				return r, nil
			}
			if err := c.profile(ctx, r, p, tunnel); notInterrupted(ctx, err) != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// noteUnclean says how many trials could not be had without disturbance.
func (r *Report) noteUnclean() {
	if r.unclean > 0 {
		r.note("%d trials were taken as they are after %d in which somebody took the core from the thread each time.", r.unclean, maxRepeats)
	}
}

func (c *ProfilesConfig) profile(ctx context.Context, r *Report, p dataplane.Profile, tunnel bool) error {
	cfg := c.forwarder(p, tunnel)
	alone, err := generator(cfg)
	if err != nil {
		return err
	}
	r.generator = append(r.generator, alone)
	w, err := openRig(cfg, r)
	if err != nil {
		return err
	}
	defer w.close()
	packets := "plain"
	if tunnel {
		packets = "VXLAN"
	}
	each := uint64(1)
	if p == dataplane.ProfileBurst {
		each = dataplane.Burst
	}
	c.progress("%s %s: warming up", p, packets)
	if err := w.warmUp(ctx, each*uint64(c.Flows)); err != nil {
		return err
	}
	results := make(map[kind]*found)
	for _, k := range kinds {
		results[k] = new(found)
	}
	for n := range c.Searches {
		c.progress("%s %s: search %d of %d", p, packets, n+1, c.Searches)
		err = c.search(ctx, w, results)
		if err != nil {
			break
		}
	}
	for _, k := range kinds {
		if f := results[k]; len(f.mpps) > 0 {
			r.Rows = append(r.Rows, f.row(k, string(p), packets, results))
			r.unclean += f.unclean
		}
	}
	return err
}

// row returns the row of what was found.
func (f *found) row(k kind, profile, packets string, all map[kind]*found) Row {
	metrics := "off"
	if k.level != perf.Off {
		metrics = k.level.String()
	}
	faster, dearer := Estimate{}, Estimate{}
	if !k.atOnce {
		faster = change(all[kind{true, k.level}].mpps, f.mpps)
	}
	if k.level != perf.Off {
		dearer = change(all[kind{k.atOnce, perf.Off}].mpps, f.mpps)
	}
	return Row{
		Labels: []Parameter{{"traffic", profile}, {"packets", packets}, {"metrics", metrics}, {"path", k.path()}},
		Figures: []Figure{
			figure("Mpps", "Mpps", f.mpps), figure("batch", "packets/batch", f.batch),
			{Name: "batching", Unit: "%", Estimate: faster}, {Name: "metrics", Unit: "%", Estimate: dearer},
			exact("trials", "trials", float64(f.trials)), exact("repeated", "trials", float64(f.repeated)),
		},
	}
}

// search finds one rate of every kind.
func (c *ProfilesConfig) search(ctx context.Context, w *rig, results map[kind]*found) error {
	type bounds struct {
		lo, hi, batch float64 // packets a second
		done          bool
	}
	state := make([]bounds, len(kinds))
	// What a forwarder takes when it never has to wait is more than it can take without
	// loss.
	for _, i := range rand.Perm(len(kinds)) {
		if err := w.use(ctx, kinds[i], c.Flush); err != nil {
			return err
		}
		if err := w.f.SetRate(0); err != nil {
			return err
		}
		m, err := w.measure(min(c.Trial, 20*time.Millisecond))
		if err != nil {
			return err
		}
		state[i].hi = min(1.1*m.mpps*1e6, 0.5*w.hz)
	}
	for left := len(kinds); left > 0; {
		left = 0
		for _, i := range rand.Perm(len(kinds)) {
			s := &state[i]
			if s.done {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			rate := (s.lo + s.hi) / 2
			// What else the machine does may lose packets once: a rate is too high that
			// loses some twice in a row.
			t, err := c.trial(ctx, w, kinds[i], rate, results[kinds[i]])
			if err == nil && !c.passed(t) {
				t, err = c.trial(ctx, w, kinds[i], rate, results[kinds[i]])
			}
			if err != nil {
				return err
			}
			if c.passed(t) {
				s.lo = rate
				s.batch = float64(t.Tx) / float64(max(t.Batches, 1))
			} else {
				s.hi = rate
			}
			// At a thousandth of the highest rate nothing is left to be found.
			s.done = s.hi-s.lo <= c.Resolution*s.hi || s.hi < 1000
			if !s.done {
				left++
			}
		}
	}
	for i, k := range kinds {
		f := results[k]
		f.mpps, f.batch = append(f.mpps, state[i].lo/1e6), append(f.batch, state[i].batch)
	}
	return nil
}

// passed reports whether no more packets were lost in a trial than may be.
func (c *ProfilesConfig) passed(t slice) bool {
	return float64(t.Missed+t.Drops) <= c.Loss*float64(t.Rx+t.Missed)
}

// maxRepeats is how often a trial is repeated in which somebody took the core from the
// thread.
const maxRepeats = 10

// trial tries a rate. A trial in which somebody took the core from the thread tells
// nothing of the forwarder: it is repeated, and counted. That the Go runtime parks a
// goroutine that ran for 10 ms is the forwarder's own affair.
func (c *ProfilesConfig) trial(ctx context.Context, w *rig, k kind, rate float64, f *found) (slice, error) {
	if err := errors.Join(w.use(ctx, k, c.Flush), w.f.SetRate(rate)); err != nil {
		return slice{}, err
	}
	for n := 0; ; n++ {
		nap(time.Millisecond) // what queued up before is gone then
		t, err := w.measure(c.Trial)
		f.trials++
		if err != nil || t.Taken <= 0 || ctx.Err() != nil {
			return t, err
		}
		if n == maxRepeats {
			f.unclean++
			return t, nil
		}
		f.repeated++
	}
}

// use switches to a kind of forwarding.
func (w *rig) use(ctx context.Context, k kind, flush time.Duration) error {
	if k.atOnce {
		flush = 0
	}
	return errors.Join(w.f.SetPath(flush, k.atOnce), w.setLevel(ctx, k.level))
}
