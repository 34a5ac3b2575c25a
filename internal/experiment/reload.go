package experiment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/internal/dataplane"
	"github.com/pmdperf/pmdperf/perf"
)

// ReloadConfig says what Reload measures.
type ReloadConfig struct {
	Common
	PMDs     []int         // how many PMDs, for a table each; without cores they run on the last ones
	Reloads  int           // with each scheme
	Rate     float64       // packets a second and port in memory; real ports get what is sent to them
	RingSize int           // packets that a receive queue holds
	Queues   int           // receive queues
	Window   time.Duration // for which lost packets are counted, beginning with the reload
}

// Validate returns what is wrong with the configuration on this machine.
func (c *ReloadConfig) Validate() error {
	switch {
	case c.Reloads < 1:
		return fmt.Errorf("%d reloads: choose at least 1", c.Reloads)
	case len(c.PMDs) == 0:
		return errors.New("no number of PMDs: name at least one")
	case c.inMemory() && !(c.Rate > 0):
		return fmt.Errorf("rate %v: choose more than 0, as what is lost depends on it", c.Rate)
	}
	if err := checkSlice(c.Window); err != nil {
		return err
	}
	for _, n := range c.PMDs {
		if n < 1 || len(c.Cores) > 0 && n > len(c.Cores) {
			return fmt.Errorf("%d PMDs on %d cores: choose at least 1, and name a core for each", n, len(c.Cores))
		}
		if _, err := c.coresFor(n); err != nil {
			return err
		}
	}
	return c.forwarder(nil).Validate()
}

func (c *ReloadConfig) forwarder(cores []int) dataplane.Config {
	cfg := c.dataplane()
	cfg.Cores = cores
	cfg.Queues, cfg.RingSize = c.Queues, c.RingSize
	if c.inMemory() {
		cfg.Rate = c.Rate
	}
	cfg.Flows, cfg.Subtables = 1000, 4
	cfg.Profile = dataplane.ProfileScatter
	cfg.Level = perf.Detailed
	return cfg
}

// schemeNone stands for windows without a reload.
const schemeNone dataplane.ReloadScheme = "none"

// schemes are what is compared.
var schemes = []dataplane.ReloadScheme{dataplane.ReloadHandover, dataplane.ReloadBusy, dataplane.ReloadBlocking, schemeNone}

// Where a PMD's thread was in a window.
const (
	threadKept = "on its core"
	threadAway = "off its core"
)

// Reload measures how long a change of the polling configuration keeps PMDs and
// queues from polling, and how many packets are lost meanwhile. The schemes and
// windows without a reload take turns in random order.
func Reload(ctx context.Context, c ReloadConfig) (r *Report, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	rate := "as they come"
	if c.inMemory() {
		rate = fmt.Sprintf("%.0f packets/s", c.Rate)
	}
	r = begin("reload", append(c.parameters(), parameter("reloads", c.Reloads), parameter("rate", rate),
		parameter("ring", c.RingSize), parameter("queues", c.Queues), parameter("window", c.Window))...)
	defer r.end(ctx)
	for _, n := range c.PMDs {
		if ctx.Err() != nil {
			return r, nil
		}
		cores, err := c.coresFor(n)
		if err != nil {
			return nil, err
		}
		l := newLayout(n)
		if err := l.measure(ctx, &c, cores, r); err != nil && notInterrupted(ctx, err) != nil {
			return nil, err
		}
		l.report(r)
	}
	return r, nil
}

// coresFor returns the cores of n PMDs.
func (c *Common) coresFor(n int) ([]int, error) {
	cores := c.Cores
	if len(cores) == 0 {
		cores = dataplane.Cores()
		if n > len(cores) {
			return nil, fmt.Errorf("%d PMDs need a core each and there are %d: choose fewer", n, len(cores))
		}
		return cores[len(cores)-n:], nil
	}
	return cores[:n], nil
}

// layout is what was measured with a number of PMDs.
type layout struct {
	pmds    int
	gaps    map[gapOf][]uint64 // ticks
	windows map[windowOf]*losses
}

// gapOf tells gaps from others: of what, with which scheme, and where the threads
// were.
type gapOf struct {
	scheme       dataplane.ReloadScheme
	what, thread string
}

type windowOf struct {
	scheme dataplane.ReloadScheme
	thread string
}

// losses are the packets lost in windows.
type losses struct {
	lost []float64 // by window
	ms   float64   // how long all windows were
}

func newLayout(pmds int) *layout {
	return &layout{pmds: pmds, gaps: make(map[gapOf][]uint64), windows: make(map[windowOf]*losses)}
}

func (l *layout) measure(ctx context.Context, c *ReloadConfig, cores []int, r *Report) error {
	w, err := openRig(c.forwarder(cores), r)
	if err != nil {
		return err
	}
	defer w.close()
	if err := w.warmUp(ctx, 10_000); err != nil {
		return err
	}
	for i := range c.Reloads {
		if i%16 == 0 {
			c.progress("%d PMDs: %d of %d reloads", l.pmds, i, c.Reloads)
		}
		for _, k := range rand.Perm(len(schemes)) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := l.window(w, schemes[k], c.Window); err != nil {
				return err
			}
		}
	}
	return nil
}

// window counts what is lost in a window with a reload, or without.
func (l *layout) window(w *rig, scheme dataplane.ReloadScheme, d time.Duration) error {
	from, err := w.mark()
	if err != nil {
		return err
	}
	begun := time.Now()
	var out dataplane.Reloaded
	if scheme != schemeNone {
		if err := w.f.SetReload(scheme); err != nil {
			return err
		}
		if out, err = w.f.Reload(0); err != nil {
			return err
		}
	}
	if rest := d - time.Since(begun); rest > 0 {
		nap(rest)
	}
	to, err := w.mark()
	if err != nil {
		return err
	}
	seen := to.Sub(from)
	away := seen.Away() > 0
	if scheme == dataplane.ReloadBlocking { // it sleeps by itself
		away = seen.Taken > 0
	}
	key := windowOf{scheme, threadWas(away)}
	if l.windows[key] == nil {
		l.windows[key] = new(losses)
	}
	l.windows[key].lost = append(l.windows[key].lost, float64(seen.Missed+seen.Drops))
	l.windows[key].ms += float64(seen.Tick) / w.hz * 1e3
	if scheme != schemeNone {
		thread := threadWas(out.WasAway())
		for _, ticks := range out.Threads {
			l.add(gapOf{scheme, "thread", thread}, ticks)
		}
		for _, ticks := range out.Queues {
			l.add(gapOf{scheme, "queue", thread}, ticks)
		}
	}
	return nil
}

// threadWas says where threads were.
func threadWas(away bool) string {
	if away {
		return threadAway
	}
	return threadKept
}

func (l *layout) add(k gapOf, ticks uint64) { l.gaps[k] = append(l.gaps[k], ticks) }

// report adds the layout's rows: the gaps, then what was lost.
func (l *layout) report(r *Report) {
	for _, scheme := range schemes {
		for _, what := range []string{"thread", "queue"} {
			for _, thread := range []string{threadKept, threadAway} {
				ticks := l.gaps[gapOf{scheme, what, thread}]
				if len(ticks) == 0 {
					continue
				}
				row := Row{Labels: []Parameter{parameter("PMDs", l.pmds), {"scheme", string(scheme)}, {"gap of the", what}, {"threads", thread}}}
				var h *Histogram
				row.Figures, h = gapFigures(ticks)
				// The queues of a single PMD have the gaps of its thread.
				if thread == threadKept && (what == "thread" || l.pmds > 1) {
					row.Histogram = h
				}
				r.Rows = append(r.Rows, row)
			}
		}
	}
	for _, scheme := range schemes {
		for _, thread := range []string{threadKept, threadAway} {
			w := l.windows[windowOf{scheme, thread}]
			if w == nil {
				continue
			}
			var sum, most, with float64
			for _, n := range w.lost {
				sum, most = sum+n, max(most, n)
				if n > 0 {
					with++
				}
			}
			n := float64(len(w.lost))
			r.Rows = append(r.Rows, Row{
				Labels: []Parameter{parameter("PMDs", l.pmds), {"reload", string(scheme)}, {"threads", thread}},
				Figures: []Figure{exact("windows", "windows", n), exact("length", "ms", w.ms/n), exact("lost", "packets", sum),
					exact("most", "packets", most), exact("with loss", "windows", with)},
			})
		}
	}
}

// gapFigures sums up gaps.
func gapFigures(ticks []uint64) ([]Figure, *Histogram) {
	values := make([]float64, len(ticks))
	var h histogram.Fine
	for i, t := range ticks {
		values[i] = float64(t)
		h.Add(t)
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	m := figure("median", "cycles", values)
	hist := &Histogram{Unit: "cycles"}
	for b := range h.Buckets() {
		hist.Buckets = append(hist.Buckets, Bucket{b.Lo, b.Hi, b.Count})
	}
	sorted := slices.Sorted(slices.Values(values))
	return []Figure{
		exact("gaps", "gaps", float64(len(values))),
		exact("min", "cycles", sorted[0]),
		exact("average", "cycles", sum/float64(len(values))),
		exact("max", "cycles", sorted[len(sorted)-1]),
		m,
		exact("p99", "cycles", sorted[(len(sorted)*99+99)/100-1]),
	}, hist
}
