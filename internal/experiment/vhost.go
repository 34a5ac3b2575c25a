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

// VhostConfig says what Vhost measures.
type VhostConfig struct {
	Common
	Flows  int
	Slice  time.Duration
	Rounds int
}

// Validate returns what is wrong with the configuration on this machine.
func (c *VhostConfig) Validate() error {
	if err := checkSlice(c.Slice); err != nil {
		return err
	}
	if c.Rounds < 1 {
		return fmt.Errorf("%d rounds: choose at least 1", c.Rounds)
	}
	if n := len(c.Cores); n != 0 && n != 2 {
		return fmt.Errorf("%d cores: name two, one for each of the two PMDs", n)
	}
	if _, err := c.coresFor(2); err != nil {
		return err
	}
	return c.forwarder(c.Cores, false, forwardDrop).Validate()
}

// The ways of forwarding that Vhost measures.
const (
	forwardDrop   = "drop"
	forwardPort   = "port to port"
	forwardNormal = "NORMAL"
)

func (c *VhostConfig) forwarder(cores []int, oneWay bool, forward string) dataplane.Config {
	cfg := c.dataplane()
	cfg.Cores, cfg.Ports = cores, []string{"mem", "mem"}
	cfg.Flows, cfg.Profile = c.Flows, dataplane.ProfileBurst
	cfg.OneWay, cfg.Drop, cfg.Normal = oneWay, forward == forwardDrop, forward == forwardNormal
	cfg.Level = perf.Off
	return cfg
}

// statsAgain is off once more: it shows what the method makes of no difference.
const statsAgain = "off again"

// statsModes are compared with the first one, and the last one with that at statsOwn.
var statsModes = []struct {
	name string
	mode dataplane.StatsMode
}{{"off", dataplane.StatsOff}, {statsAgain, dataplane.StatsOff}, {"own", dataplane.StatsOwn}, {"shared lock", dataplane.StatsShared}}

const statsOwn = 2

// Vhost measures what statistics of queues cost where two PMDs receive from and send to
// the same two ports, as between two guests: counted by each PMD for itself, or for all
// behind one lock a port.
func Vhost(ctx context.Context, c VhostConfig) (r *Report, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	cores, err := c.coresFor(2)
	if err != nil {
		return nil, err
	}
	r = begin("vhost", parameter("cores", fmt.Sprint(cores)), parameter("ports", "mem mem, generators and sinks inside"),
		parameter("flows", c.Flows), parameter("slice", c.Slice), parameter("rounds", c.Rounds))
	defer r.end(ctx)
	for _, oneWay := range []bool{true, false} {
		for _, forward := range []string{forwardDrop, forwardPort, forwardNormal} {
			if ctx.Err() != nil {
				return r, nil
			}
			if err := c.forward(ctx, r, cores, oneWay, forward); notInterrupted(ctx, err) != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// forward measures one way of forwarding and adds its rows.
func (c *VhostConfig) forward(ctx context.Context, r *Report, cores []int, oneWay bool, forward string) error {
	cfg := c.forwarder(cores, oneWay, forward)
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
	if err := w.warmUp(ctx, uint64(2*dataplane.Burst*c.Flows)); err != nil {
		return err
	}
	direction := "both ways"
	if oneWay {
		direction = "one way"
	}
	all := make([]series, len(statsModes))
	for n := range c.Rounds {
		c.progress("%s, %s: round %d of %d", direction, forward, n, c.Rounds)
		if err = c.round(ctx, w, r, all); err != nil {
			break
		}
	}
	if len(all[0].mpps) == 0 {
		return err
	}
	for i, m := range statsModes {
		mpps, cycles := figure("Mpps", "Mpps", all[i].mpps), figure("cycles", "cycles/packet", all[i].cycles)
		mpps.Interval, cycles.Interval = nil, nil
		delta, cost, contention := Estimate{}, Estimate{}, Estimate{}
		if m.mode == dataplane.StatsShared {
			contention = change(all[statsOwn].mpps, all[i].mpps)
		}
		if i > 0 {
			delta, cost = change(all[0].mpps, all[i].mpps), difference(all[0].cycles, all[i].cycles)
		}
		r.Rows = append(r.Rows, Row{
			Labels: []Parameter{{"direction", direction}, {"forwarding", forward}, {"statistics", m.name}},
			Figures: []Figure{mpps, cycles, {Name: "change", Unit: "%", Estimate: delta}, {Name: "cost", Unit: "cycles/packet", Estimate: cost},
				{Name: "against own", Unit: "%", Estimate: contention}},
		})
	}
	return err
}

// round measures a slice of every mode.
func (c *VhostConfig) round(ctx context.Context, w *rig, r *Report, all []series) error {
	// Appended together, so that a round is whole or is not there.
	slices := make([]slice, len(statsModes))
	for _, i := range rand.Perm(len(statsModes)) {
		if err := errors.Join(ctx.Err(), w.f.SetStats(statsModes[i].mode)); err != nil {
			return err
		}
		m, err := w.measure(c.Slice)
		if err != nil {
			return err
		}
		slices[i] = m
		r.slices++
		if m.Away() > 0 {
			r.away++
		}
	}
	for i := range all {
		all[i].add(slices[i].mpps, slices[i].cycles)
	}
	return nil
}
