package live

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/pmdperf/pmdperf/export/ovs"
)

// answer is the JSON of pmd-perf-show: ours, or a text in the wrapping that Open vSwitch
// gives to what has no JSON form.
type answer struct {
	ovs.Document
	Missing []Missing `json:"missing"`
	Notes   []string  `json:"notes"`

	Wrapped string  `json:"reply-format"`
	Reply   *string `json:"reply"`
}

func parseAnswer(text string) (*answer, error) {
	var a answer
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return nil, fmt.Errorf("the answer is not understood: %w", err)
	}
	if a.Reply == nil && a.Version != ovs.DocumentVersion {
		return nil, fmt.Errorf("the answer has version %d, this program reads version %d", a.Version, ovs.DocumentVersion)
	}
	return &a, nil
}

// read fills the sample from an answer of ours.
func (s *Sample) read(a *answer) {
	for i := range a.Threads {
		if t := &a.Threads[i]; t.Kind == "pmd" {
			s.PMDs = append(s.PMDs, fromDocument(t))
		}
	}
	s.Missing, s.Notes = a.Missing, a.Notes
	s.sort()
}

func (s *Sample) sort() {
	slices.SortStableFunc(s.PMDs, func(a, b PMD) int { return cmp.Compare(a.Core, b.Core) })
}

func fromDocument(t *ovs.Recorded) PMD {
	p := PMD{
		Core: ovs.Unspecified, NUMA: ovs.Unspecified, Name: t.Name, Level: t.Level, State: t.State,
		Hz: math.NaN(), Seconds: math.NaN(),
		Slowest: t.Slowest, Iterations: t.IterationHistory,
		clearTick: t.SinceTick, untilTick: t.UntilTick,
	}
	if t.Core != nil {
		p.Core = *t.Core
	}
	if t.NUMA != nil {
		p.NUMA = *t.NUMA
	}
	if t.Hz > 0 {
		p.Hz = t.Hz
	}
	if t.Seconds != nil {
		p.Seconds = *t.Seconds
	}
	set := p.Counts.set
	if it := t.Iterations; it != nil {
		set(Iterations, it.Total)
		set(IdleIterations, it.Idle)
		set(BusyIterations, it.Busy)
		set(SleepIterations, it.Sleeping)
	}
	if c := t.Cycles; c != nil {
		set(UsedCycles, c.Used)
		set(IdleCycles, c.Idle)
		set(BusyCycles, c.Busy)
		set(GapCycles, c.Gaps)
		set(SleepCycles, c.Sleep)
		if c.Upcall != nil {
			set(UpcallCycles, *c.Upcall)
		}
	}
	if s := t.Suspicious; s != nil && (s.Watched || s.Total > 0) {
		set(Suspicious, s.Total)
	}
	set(RxPackets, t.Packets.Rx)
	set(BusyPackets, t.Packets.Rx)
	set(TxPackets, t.Packets.Tx)
	set(Drops, t.Packets.Drops)
	set(RxDrops, t.Packets.RxDrops)
	set(TxBatches, t.Packets.TxBatches)
	if b := t.Packets.RxBatches; b != nil {
		set(RxBatches, *b)
	}
	d := &t.Datapath
	set(Passes, d.Passes)
	set(PHWOLHits, d.PHWOLHits)
	set(MFEXOptHits, d.MFEXOptHits)
	set(SimpleMatchHits, d.SimpleMatchHits)
	set(EMCHits, d.EMCHits)
	set(SMCHits, d.SMCHits)
	set(MegaflowHits, d.MegaflowHits)
	set(Upcalls, d.Upcalls)
	set(LostUpcalls, d.LostUpcalls)

	for m := range NumMetrics {
		data, ok := t.Histograms[metrics[m].key]
		if !ok {
			continue
		}
		h := histogram(data.Walls, data.Bins)
		if h.Known() && data.Max != nil {
			h.most, h.reached, h.exact = *data.Max, true, data.Percentiles
		}
		p.Histograms[m] = h
	}
	for i := range t.MillisecondHistory {
		row := &t.MillisecondHistory[i]
		p.Millis = append(p.Millis, Milli{
			Age:        float64(t.MillisecondHistory[0].EndTick-row.EndTick) / p.Hz,
			Seconds:    float64(row.Ticks) / p.Hz,
			Iterations: float64(row.Iterations),
			Cycles:     float64(row.Cycles),
			BusyCycles: float64(row.BusyCycles),
			Rx:         float64(row.Rx),
			Upcalls:    float64(row.Upcalls),
			Fill:       float64(row.MaxFill),
		})
	}
	return p
}
