package experiment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/pmdperf/pmdperf/internal/dataplane"
	"github.com/pmdperf/pmdperf/perf"
)

// OverheadConfig says what Overhead measures.
type OverheadConfig struct {
	Common
	Flows, Subtables []int         // every combination is a cell of the table
	Slice            time.Duration // how long each level is measured at a time
	Rounds           int           // of slices, in each cell

	// Until, in points of percent, has every cell measured for as many more rounds as it
	// takes until no change has a wider interval; 0 for no more rounds.
	Until float64

	// Budget is how long all cells together are to take, warm-up included; after a fifth
	// more it ends with what there is by then. 0 for as long as it takes.
	Budget time.Duration
}

// Validate returns what is wrong with the configuration on this machine.
func (c *OverheadConfig) Validate() error {
	if len(c.Flows) == 0 || len(c.Subtables) == 0 {
		return errors.New("no flows or no subtables: name at least one of each")
	}
	if err := checkSlice(c.Slice); err != nil {
		return err
	}
	switch {
	case c.Rounds < 1:
		return fmt.Errorf("%d rounds: choose at least 1", c.Rounds)
	case c.Until != 0 && !(c.Until >= 0.01 && c.Until <= 100):
		return fmt.Errorf("an interval of %v points: choose 0.01 to 100, or 0 for as many rounds as asked for", c.Until)
	}
	for _, flows := range c.Flows {
		for _, subtables := range c.Subtables {
			if err := c.forwarder(flows, subtables).Validate(); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkSlice returns an error unless a slice can be measured: a mark is made at the
// end of a pass, and whoever asks for it naps in between.
func checkSlice(d time.Duration) error {
	if d < 100*time.Microsecond || d > 10*time.Second {
		return fmt.Errorf("slices of %v: choose 100us to 10s; shorter ones are finer than the clock that ends them", d)
	}
	return nil
}

func (c *OverheadConfig) forwarder(flows, subtables int) dataplane.Config {
	cfg := c.dataplane()
	cfg.Flows, cfg.Subtables = flows, subtables
	cfg.Profile = dataplane.ProfileScatter
	cfg.Level = perf.Off
	return cfg
}

// The levels that Overhead compares.
const (
	levelOff        = "off"
	levelOffAgain   = "off again" // the same as off: shows what the method makes of no difference
	levelBasic      = "basic"
	levelDetailed   = "detailed"
	levelEverything = "everything" // detailed, what is suspicious looked for and taken, and the probes of causes
	levelProbes     = "probes"     // off, but for the probes
)

var plainLevels = []struct {
	name  string
	level perf.Level
}{{levelOff, perf.Off}, {levelOffAgain, perf.Off}, {levelBasic, perf.Basic}, {levelDetailed, perf.Detailed}}

// blockRounds is how many rounds are measured with probes, or without, at a time:
// opening and closing them takes some 70 ms, as much as five rounds.
const blockRounds = 25

// blockOf is the same for few rounds, so that there are some blocks.
func blockOf(rounds int) int { return max(1, min(blockRounds, rounds/10)) }

// Overhead measures what recording costs a forwarder that has more to do than it can.
// One forwarder, whose level is switched between slices, is measured in each cell.
func Overhead(ctx context.Context, c OverheadConfig) (r *Report, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	packets := "as they come"
	if c.inMemory() {
		packets = "scatter, 60 bytes, as many as the loop takes"
	}
	r = begin("overhead", append(c.parameters(), parameter("slice", c.Slice), parameter("rounds", c.Rounds), parameter("packets", packets))...)
	defer r.end(ctx)
	all := len(c.Flows) * len(c.Subtables)
	var cells []*overheadCell
	defer func() {
		if n := all - len(cells); n > 0 && ctx.Err() == nil && err == nil {
			r.note("The time was over before %d of %d cells had a round: the machine is too busy.", n, all)
		}
		r.addOverhead(cells)
	}()
	limited := ctx
	if c.Budget > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, c.Budget+c.Budget/5)
		defer cancel()
	}
	for _, flows := range c.Flows {
		for _, subtables := range c.Subtables {
			if limited.Err() != nil {
				return r, nil
			}
			n := len(cells) + 1
			var deadline time.Time
			if c.Budget > 0 {
				deadline = r.started.Add(c.Budget * time.Duration(n) / time.Duration(all))
			}
			cell, err := c.cell(limited, r, flows, subtables, deadline, func(rounds, of int) {
				c.progress("cell %d of %d (%d flows, %d subtables): round %d of %d", n, all, flows, subtables, rounds, of)
			})
			if err != nil {
				return nil, err
			}
			if cell.rounds > 0 {
				cells = append(cells, cell)
			}
			runtime.GC() // the next one begins without what this one held
		}
	}
	return r, nil
}

// widthWanted is how wide the interval of a change may be, in points of percent.
const widthWanted = 0.5

// overheadCell is what was measured in one cell. What has the same index was measured
// in the same round.
type overheadCell struct {
	flows, subtables int
	rounds           int
	plain            map[string]*series // by level
	off, all         series             // while the probes run: without and with everything
	blocks           struct{ off, probes series }
	away, slices     int     // slices in which the thread was off its core, and all
	generator        float64 // Mpps that the generator could do alone; 0 = there is none
}

// series is what was measured slice by slice, or block by block.
type series struct{ mpps, cycles []float64 } // cycles are those per packet

func (s *series) add(mpps, cycles float64) {
	s.mpps, s.cycles = append(s.mpps, mpps), append(s.cycles, cycles)
}

// last returns the medians of the last n.
func (s *series) last(n int) (mpps, cycles float64) {
	return middle(s.mpps[len(s.mpps)-n:]), middle(s.cycles[len(s.cycles)-n:])
}

func (c *OverheadConfig) cell(ctx context.Context, r *Report, flows, subtables int, deadline time.Time, progress func(rounds, of int)) (*overheadCell, error) {
	cfg := c.forwarder(flows, subtables)
	cell := &overheadCell{flows: flows, subtables: subtables, plain: make(map[string]*series)}
	for _, l := range plainLevels {
		cell.plain[l.name] = new(series)
	}
	if c.inMemory() {
		var err error
		if cell.generator, err = generator(cfg); err != nil {
			return nil, err
		}
	}
	w, err := openRig(cfg, r)
	if err != nil {
		return nil, err
	}
	defer w.close()
	// Every packet is of another flow: all have their megaflows then.
	if err := w.warmUp(ctx, uint64(flows)+dataplane.Burst); err != nil {
		return cell, notInterrupted(ctx, err)
	}
	target := c.Rounds
	block := blockOf(c.Rounds)
	for ctx.Err() == nil {
		if cell.rounds >= target {
			more := 0
			if c.Until > 0 {
				more = cell.more(c.Until)
			}
			if more == 0 {
				break
			}
			target += max(block, min(more, target)) // doubled at most: the guess gets better
		}
		if !deadline.IsZero() && time.Now().After(deadline) && cell.rounds > 0 {
			break
		}
		progress(cell.rounds, target)
		if !deadline.IsZero() && time.Now().After(deadline) {
			block = 1 // something rather than nothing
		}
		if err := cell.measure(ctx, w, c.Slice, block); err != nil {
			return cell, notInterrupted(ctx, err)
		}
	}
	return cell, nil
}

// measure measures a block of rounds without probes and one with, in random order.
func (cell *overheadCell) measure(ctx context.Context, w *rig, d time.Duration, rounds int) error {
	plain := func() error {
		for range rounds {
			for _, i := range rand.Perm(len(plainLevels)) {
				l := plainLevels[i]
				if err := cell.slice(ctx, w, l.level, d, cell.plain[l.name]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	probed := func() (err error) {
		stop, err := w.supervise(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
		for range rounds {
			for _, i := range rand.Perm(2) {
				level, to := perf.Off, &cell.off
				if i == 1 {
					level, to = perf.Detailed, &cell.all
				}
				if err := cell.slice(ctx, w, level, d, to); err != nil {
					return err
				}
			}
		}
		return nil
	}
	order := []func() error{plain, probed}
	for _, i := range rand.Perm(2) {
		if err := order[i](); err != nil {
			return err
		}
	}
	cell.rounds += rounds
	cell.blocks.off.add(cell.plain[levelOff].last(rounds))
	cell.blocks.probes.add(cell.off.last(rounds))
	return nil
}

// slice measures the forwarder at a level.
func (cell *overheadCell) slice(ctx context.Context, w *rig, l perf.Level, d time.Duration, to *series) error {
	if err := w.setLevel(ctx, l); err != nil {
		return err
	}
	m, err := w.measure(d)
	if err != nil {
		return err
	}
	cell.slices++
	if m.Away() > 0 {
		cell.away++
	}
	to.add(m.mpps, m.cycles)
	return nil
}

// besideProbes is how wide the interval of everything may be, in parts of the width that
// is wanted, as long as what the probes cost is not added: the squares add up.
const besideProbes = 0.8

// more returns how many more rounds it takes until no change, in percent, has an interval
// wider than width.
func (cell *overheadCell) more(width float64) (rounds int) {
	for _, l := range plainLevels[1:] {
		rounds = max(rounds, moreRounds(change(cell.plain[levelOff].mpps, cell.plain[l.name].mpps), cell.rounds, width))
	}
	return max(rounds, moreRounds(change(cell.off.mpps, cell.all.mpps), cell.rounds, besideProbes*width))
}

// report adds the cells' rows.
//
// The probes take a part of the core's time that has nothing to do with what the
// forwarder does. They take too long to open and close for a slice, so their part
// shows only between blocks of slices, which are further apart and differ more: all
// cells' blocks together tell it. To what everything else costs, measured while they
// run, it is added.
func (r *Report) addOverhead(cells []*overheadCell) {
	var off, probes series
	more := 0
	for _, cell := range cells {
		off.mpps, probes.mpps = append(off.mpps, cell.blocks.off.mpps...), append(probes.mpps, cell.blocks.probes.mpps...)
		more = max(more, cell.more(widthWanted))
		if cell.generator > 0 {
			r.generator = append(r.generator, cell.generator)
		}
		r.away += cell.away
		r.slices += cell.slices
		if fastest := middle(cell.plain[levelOff].mpps); cell.generator > 0 && cell.generator < 1.5*fastest {
			r.note("%d flows, %d subtables: the generator alone makes %.1f Mpps, which is little more than the %.1f Mpps forwarded.", cell.flows, cell.subtables, cell.generator, fastest)
		}
	}
	if len(cells) == 0 {
		return
	}
	probe := change(off.mpps, probes.mpps)
	for _, cell := range cells {
		cell.report(r, probe)
	}
	r.Rows = append(r.Rows, Row{
		Labels:  []Parameter{{"flows", "all"}, {"subtables", "all"}, {"level", levelProbes}},
		Figures: []Figure{{Name: "change", Unit: "%", Estimate: probe}},
	})
	if more > 0 {
		r.note("The intervals are not all as narrow as %g points: the cell that needs most would take some %d more rounds, which --rounds or --until ask for.", widthWanted, more)
	}
}

func (cell *overheadCell) report(r *Report, probe Estimate) {
	row := func(level string, s *series, change, cost Estimate, more int) {
		mpps, cycles := figure("Mpps", "Mpps", s.mpps), figure("cycles", "cycles/packet", s.cycles)
		// They vary with what all levels have in common. What matters is the change's.
		mpps.Interval, cycles.Interval = nil, nil
		r.Rows = append(r.Rows, Row{
			Labels: []Parameter{parameter("flows", cell.flows), parameter("subtables", cell.subtables), {"level", level}},
			Figures: []Figure{mpps, cycles, {Name: "change", Unit: "%", Estimate: change}, {Name: "cost", Unit: "cycles/packet", Estimate: cost},
				exact("more", "rounds", float64(more))},
		})
	}
	off := cell.plain[levelOff]
	row(levelOff, off, Estimate{}, Estimate{}, 0)
	for _, l := range plainLevels[1:] {
		s := cell.plain[l.name]
		e := change(off.mpps, s.mpps)
		row(l.name, s, e, difference(off.cycles, s.cycles), moreRounds(e, cell.rounds, widthWanted))
	}
	e := plus(change(cell.off.mpps, cell.all.mpps), probe, 1)
	cost := difference(cell.off.cycles, cell.all.cycles)
	row(levelEverything, &cell.all, e, plus(cost, probe, -middle(off.cycles)/100), moreRounds(e, cell.rounds, widthWanted))
}
