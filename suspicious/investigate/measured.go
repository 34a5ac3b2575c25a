package investigate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// What a show text tells. The lengths of its iterations are known only by the bins of
// its histogram, so that time lost is a lower bound.

const (
	perIteration = "cycles/it"
	perBatch     = "pkts/batch"
	fillTitle    = "max vhost qlen"

	busyLimit    = 90  // percent of used cycles from which on a PMD is at its limit
	fullLimit    = 95  // percent of packets that come in full batches, likewise
	upcallLimit  = 1   // percent of datapath passes that are many upcalls
	sleepLimit   = 100 // us of sleep an iteration that are long
	overheadMost = 20  // percent of a PMD's cycles outside of its queues
	unevenBy     = 40  // percentage points between the busiest PMD and the idlest
)

// measured makes findings of what show commands printed.
func (a *analysis) measured() {
	for i := range a.c.shown {
		m := &a.c.shown[i]
		if m.Main {
			continue
		}
		switch {
		case m.Iterations != nil:
			a.measuredStalls(m)
			a.measuredUpcalls(m)
			a.measuredFill(m)
			a.measuredLoad(m)
			a.measuredSleep(m)
			a.measuredBursts(m)
			a.tooShort(m)
		case m.Command == "pmd-stats-show":
			a.measuredUpcalls(m)
		}
		a.measuredOverhead(m)
		a.covered(m)
	}
	a.uneven()
}

func (m *Measured) title() string {
	if m.Core < 0 {
		return "the PMD"
	}
	return "the PMD of core " + itoa(m.Core)
}

// new starts a finding about what was measured.
func (m *Measured) new(k Kind, c Confidence, because string) *Finding {
	return &Finding{Kind: k, Confidence: c, Because: because, Threads: []string{m.title()}, Evidence: []Evidence{}}
}

func (m *Measured) see(f *Finding, format string, args ...any) {
	f.Evidence = append(f.Evidence, Evidence{Place: m.Place, Text: fmt.Sprintf(m.Command+": "+format, args...)})
}

// clockHz returns the frequency of the clock: the text's own, or that of any log beside
// it, or 0.
func (a *analysis) clockHz(m *Measured) float64 {
	if m.Hz >= minHz && m.Hz <= maxHz {
		return m.Hz
	}
	for _, t := range a.threads {
		if t.hz > 0 && !t.badClock {
			return t.hz
		}
	}
	return 0
}

func (m *Measured) histogram(title string) *Histogram {
	i := slices.IndexFunc(m.Histograms, func(h Histogram) bool { return h.Title == title })
	if i < 0 {
		return nil
	}
	return &m.Histograms[i]
}

// above returns how many values lie in bins that are wholly above v, and the least that
// their sum can be.
func (h *Histogram) above(v float64) (n uint64, least float64) {
	for i := 1; i < len(h.Counts) && i <= len(h.Walls); i++ {
		if float64(h.Walls[i-1]) >= v {
			n += h.Counts[i]
			least += float64(h.Counts[i]) * float64(h.Walls[i-1])
		}
	}
	return n, least
}

func (h *Histogram) total() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// measuredStalls: the histogram of iterations has some that no work explains.
func (a *analysis) measuredStalls(m *Measured) {
	h := m.histogram(perIteration)
	hz := a.clockHz(m)
	if h == nil || hz == 0 || h.total() == 0 {
		a.measuredGaps(m)
		return
	}
	usual := float64(h.median())
	from := max(slice/1e6*hz, 20*usual)
	n, least := h.above(from)
	if n == 0 {
		return
	}
	// With many upcalls a long iteration may be work: what of an upcall takes longest is
	// in the histogram of their cycles.
	perUpcall := 0.0
	if up := m.histogram("cycles/upcall"); up != nil && m.upcalls()*100 > m.passes()*upcallLimit {
		perUpcall = float64(up.Quantiles(50)[0].Value) * 32 // a batch of them
	}
	if perUpcall*20 > from {
		n, least = h.above(perUpcall * 20)
		if n == 0 {
			return
		}
	}
	lost := least / hz * 1e6
	f := m.new(LostCPU, Medium, "nothing that a PMD does takes so long; the histogram doesn't say what they did")
	f.Count, f.Lost = n, lost
	f.Title = fmt.Sprintf("%s lost its CPU %s, %s or more in all", m.title(), times(n), micros(lost))
	s := fmt.Sprintf("%s took %s or more, where half of all take %s cycles at most", plural(n, "iteration"), micros(from/hz*1e6), short(usual))
	if m.Seconds > 0 {
		f.Share = min(1, lost/1e6/m.Seconds)
		s += fmt.Sprintf("; that is %.0f %% of the time or more", 100*f.Share)
	}
	f.Text = append(f.Text, s+".")
	if gaps, longest := m.gaps(); gaps > 0 {
		f.Text = append(f.Text, fmt.Sprintf("The millisecond history skips time %s, up to %d ms at once: nothing ended then.", times(uint64(gaps)), longest))
	}
	m.see(f, "the last bins of %s", perIteration)
	if m.RxPackets != nil && m.Seconds > 0 {
		t := &thread{sums: sums{rate: float64(*m.RxPackets) / m.Seconds, vhost: m.fill() > 0}}
		f.Loss = t.loss(lost/float64(n), LostCPU)
		if f.Loss != nil {
			f.Loss.Packets *= n
		}
	}
	f.Next = append([]Step{{"ovs-appctl dpif-netdev/pmd-perf-log-set on -us 1000", "logs such iterations with their time and neighborhood"}}, offCPU(m.Core)...)
	a.add(f)
}

// measuredGaps looks at the millisecond history where there is no histogram.
func (a *analysis) measuredGaps(m *Measured) {
	n, longest := m.gaps()
	if n < few {
		return
	}
	f := m.new(LostCPU, Low, "only the millisecond history shows it")
	f.Count = uint64(n)
	f.Title = fmt.Sprintf("%s stood still %s, for up to %d ms", m.title(), times(uint64(n)), longest)
	m.see(f, "milliseconds that are missing in the history")
	f.Next = offCPU(m.Core)
	a.add(f)
}

// gaps returns how often the millisecond history leaves out 3 ms or more, and the most.
func (m *Measured) gaps() (n int, longest uint64) {
	for i := 1; i < len(m.Milliseconds); i++ {
		before, now := m.Milliseconds[i-1].Number, m.Milliseconds[i].Number
		// A second and more: the PMD was reloaded, or the rows are not of one history.
		if now > before && now-before-1 >= slice/1000 && now-before < 1000 {
			n++
			longest = max(longest, now-before-1)
		}
	}
	return n, longest
}

func (h *Histogram) median() uint64 {
	if q := h.Quantiles(50); len(q) > 0 {
		return q[0].Value
	}
	return 0
}

// upcalls counts those whose flow could be installed and those whose could not.
func (m *Measured) upcalls() (n uint64) {
	if m.Upcalls != nil {
		n += *m.Upcalls
	}
	if m.LostUpcalls != nil {
		n += *m.LostUpcalls
	}
	return n
}

func (m *Measured) passes() uint64 {
	switch {
	case m.Passes != nil:
		return *m.Passes
	case m.RxPackets != nil:
		return *m.RxPackets
	}
	return 0
}

func (a *analysis) measuredUpcalls(m *Measured) {
	n, of := m.upcalls(), m.passes()
	if n == 0 || of == 0 {
		return
	}
	share := 100 * float64(n) / float64(of)
	hz := a.clockHz(m)
	var lost float64 // us
	if h := m.histogram("cycles/upcall"); h != nil && hz > 0 {
		// OVS counts this histogram once an iteration, by its average: the iterations with
		// upcalls times what they have of them.
		_, least := h.above(0)
		each := float64(n)
		if it := m.histogram("upcalls/it"); it != nil {
			if some, _ := it.above(0); some > 0 {
				each /= float64(some)
			}
		}
		lost = least / hz * 1e6 * each
	}
	if share < upcallLimit && (lost < 1e4 || m.Seconds > 0 && lost/1e6 < m.Seconds/100) {
		return
	}
	if m.Command == "pmd-stats-show" && slices.ContainsFunc(a.c.shown, func(o Measured) bool { return o.Core == m.Core && o.Iterations != nil }) {
		return // the other command tells more
	}
	f := m.new(Upcalls, High, "they are counted")
	f.Count, f.Lost = n, lost
	if m.Seconds > 0 {
		f.Lost = min(lost, m.Seconds*1e6)
		f.Share = f.Lost / 1e6 / m.Seconds
	}
	f.Title = fmt.Sprintf("upcalls: %.3g %% of the packets of %s found no flow", share, m.title())
	f.Text = append(f.Text, fmt.Sprintf("%s upcalls for %s packets; each is handled by the slow path in the PMD thread itself.", short(float64(n)), short(float64(of))))
	if m.LostUpcalls != nil && *m.LostUpcalls > 0 {
		f.Text = append(f.Text, fmt.Sprintf("%s of them are called lost: their flow could not be installed, so that the next packet has to ask again. Their packets may well have been forwarded; that is no packet loss.", short(float64(*m.LostUpcalls))))
	}
	m.see(f, "%d upcalls of %d datapath passes", n, of)
	f.Next = []Step{
		{"ovs-appctl upcall/show", "flows in use beside the flow limit"},
		{"ovs-appctl coverage/show | grep -E 'upcall|revalidate|flow_del'", "what removes flows, and how often"},
	}
	a.add(f)
}

// fill returns the largest queue fill that a histogram or history shows.
func (m *Measured) fill() (most uint64) {
	if h := m.histogram(fillTitle); h != nil {
		for i, n := range h.Counts {
			if n > 0 {
				most = max(most, h.Walls[min(i, len(h.Walls)-1)])
			}
		}
	}
	for i := range m.History {
		most = max(most, m.History[i].Fill)
	}
	return most
}

// measuredFill: an rx queue was full again and again.
func (a *analysis) measuredFill(m *Measured) {
	h := m.histogram(fillTitle)
	if h == nil || m.BusyIterations == nil || *m.BusyIterations == 0 {
		return
	}
	last := -1
	for i, n := range h.Counts {
		if n > 0 {
			last = i
		}
	}
	if last < 1 || last > len(h.Walls) {
		return
	}
	// The ring's size is where they pile up, in the last bin but for single ones.
	top := last
	if h.Counts[last] < h.Counts[last-1]/100 {
		top--
	}
	n := h.Counts[top]
	low := h.Walls[top-1] + 1
	if low <= 2*fullBatch || 10*n < *m.BusyIterations {
		return
	}
	size := "a ring"
	for s := uint64(64); s <= 32768; s *= 2 {
		if s >= low && (top >= len(h.Walls) || s <= h.Walls[top]) {
			size = fmt.Sprintf("a ring of %d", s)
		}
	}
	f := m.new(QueueFull, High, "the fill piles up in the bin where "+size+" would be full")
	f.Count = n
	if m.CyclesPerPacket != nil && a.clockHz(m) > 0 {
		f.Lost = float64(n) * *m.CyclesPerPacket * fullBatch / a.clockHz(m) * 1e6
	}
	f.Title = fmt.Sprintf("an rx queue of %s was full in %s, %.0f %% of the busy ones", m.title(), plural(n, "iteration"), 100*float64(n)/float64(*m.BusyIterations))
	f.Text = append(f.Text, "It is a vhost queue, the transmit ring of a guest: full means that the guest is held back, or drops packets itself. The switch loses none there.")
	f.Loss = &Loss{Why: "a full vhost ring holds the guest back"}
	m.see(f, "the bin of %s above %d has %d", fillTitle, low-1, n)
	f.Next = []Step{
		{"ovs-appctl dpif-netdev/pmd-rxq-show", "whether other queues of the same PMD take its time"},
		{"ovs-appctl dpif-netdev/pmd-perf-log-set on -q " + itoa(int(min(low, 1<<20))), "logs the iterations in which it is"},
	}
	a.add(f)
}

// measuredLoad: the PMD has no time left.
func (a *analysis) measuredLoad(m *Measured) {
	if m.BusyPercent == nil || *m.BusyPercent < busyLimit || m.RxPackets == nil || *m.RxPackets == 0 {
		return
	}
	h := m.histogram(perBatch)
	full := 0.0
	if h != nil {
		n, all := uint64(0), uint64(0)
		for i, c := range h.Counts {
			if i > 0 { // the first bin counts iterations without packets
				all += c
			}
			if i > 0 && h.Walls[i-1] >= fullBatch-2 {
				n += c
			}
		}
		if all > 0 {
			full = 100 * float64(n) / float64(all)
		}
	}
	if h != nil && full < fullLimit {
		return
	}
	f := m.new(Overload, Medium, fmt.Sprintf("%.1f %% of its cycles are busy", *m.BusyPercent))
	f.Title = fmt.Sprintf("%s works at its limit", m.title())
	if h != nil {
		f.Text = append(f.Text, fmt.Sprintf("%.0f %% of its batches are full: there was always more to fetch.", full))
	}
	if m.CyclesPerPacket != nil && *m.CyclesPerPacket > 0 {
		if hz := a.clockHz(m); hz > 0 {
			f.Text = append(f.Text, fmt.Sprintf("A packet takes %s cycles and the core has %s a second: more than %s packets/s can't be done.", short(*m.CyclesPerPacket), short(hz), short(hz / *m.CyclesPerPacket)))
		}
	}
	m.see(f, "%.1f %% of used cycles are busy", *m.BusyPercent)
	f.Next = []Step{
		{"ovs-appctl dpif-netdev/pmd-rxq-show", "whether another PMD has time for some of the queues"},
		{"ethtool -S NAME | grep -E 'miss|drop'", "whether packets are lost"},
	}
	a.add(f)
}

func (a *analysis) measuredSleep(m *Measured) {
	if m.SleepMicros == nil || m.SleepIterations == nil || *m.SleepIterations == 0 {
		return
	}
	each := float64(*m.SleepMicros) / float64(*m.SleepIterations)
	f := m.new(Sleep, High, "it is counted")
	f.Count = *m.SleepIterations
	f.Title = fmt.Sprintf("%s sleeps %s at a time", m.title(), micros(each))
	s := "Packets that arrive meanwhile wait so long in the ring"
	if m.RxPackets != nil && m.Seconds > 0 && *m.RxPackets > 0 {
		rate := float64(*m.RxPackets) / m.Seconds
		s += fmt.Sprintf("; at %s packets/s that are %s in a sleep", short(rate), short(math.Ceil(rate*each/1e6)))
	}
	f.Text = append(f.Text, s+".")
	if each < sleepLimit {
		f.Confidence, f.Because = Low, "the sleeps are short"
	}
	m.see(f, "%d us in %d iterations", *m.SleepMicros, *m.SleepIterations)
	f.Next = []Step{{"ovs-vsctl get Open_vSwitch . other_config:pmd-maxsleep", "the longest sleep in us"}, {"ovs-vsctl remove Open_vSwitch . other_config pmd-maxsleep", "no sleep"}}
	a.add(f)
}

// measuredBursts: milliseconds with many times the usual packets.
func (a *analysis) measuredBursts(m *Measured) {
	const least, by = 10, 8
	if len(m.Milliseconds) < least || m.RxPackets == nil || m.Seconds < 1 || value(m.BusyPercent) >= busyLimit || m.fill() > 0 {
		return
	}
	mean := float64(*m.RxPackets) / m.Seconds / 1000 // a millisecond
	var most float64
	for i := range m.Milliseconds {
		ms := &m.Milliseconds[i]
		// After a stall what waited comes at once, and that is no burst of the sender.
		if i > 0 && ms.Number <= m.Milliseconds[i-1].Number+1 {
			most = max(most, float64(ms.Packets))
		}
	}
	if mean < 1 || most < by*mean || most < 2*fullBatch {
		return
	}
	f := m.new(Bursts, Low, "the history has only few milliseconds")
	f.Title = fmt.Sprintf("packets of %s come in bursts: %s in a millisecond, %s on average", m.title(), short(most), short(mean))
	f.Text = []string{"A burst that is larger than the ring is lost even while the PMD is idle otherwise."}
	m.see(f, "the millisecond history")
	f.Next = []Step{{"ethtool -g NAME", "the size of the ring"}, {"ethtool -G NAME rx 4096", "makes it larger"}}
	a.add(f)
}

// tooShort: the text covers next to no time.
func (a *analysis) tooShort(m *Measured) {
	if m.Seconds >= 1 || m.Seconds <= 0 {
		return
	}
	f := m.new(DataLost, High, "it says so")
	f.Title = fmt.Sprintf("pmd-perf-show of %s covers only %s: it was cleared just before", m.title(), micros(m.Seconds*1e6))
	f.Next = []Step{{"ovs-appctl dpif-netdev/pmd-stats-clear && sleep 60 && ovs-appctl dpif-netdev/pmd-perf-show", "covers a minute"}}
	m.see(f, "measurement duration %.3g s", m.Seconds)
	a.add(f)
}

// measuredOverhead: cycles that no queue shows.
func (a *analysis) measuredOverhead(m *Measured) {
	if m.Overhead == nil || *m.Overhead < overheadMost {
		return
	}
	f := m.new(Overhead, Medium, "the usage is that of the last minute")
	f.Title = fmt.Sprintf("%.0f %% of the cycles of %s go to its main loop, not to its queues", *m.Overhead, m.title())
	f.Text = []string{"That is why the queues don't add up to 100 %. Upcalls, flushing of transmit queues, revalidation and garbage collection of the flow cache are in it; a rebalance doesn't count it."}
	m.see(f, "overhead: %.0f %%", *m.Overhead)
	f.Next = []Step{{"ovs-appctl dpif-netdev/pmd-perf-show", "upcalls and their cycles"}, {"ovs-appctl dpif-netdev/pmd-stats-show", "busy cycles beside those of the queues"}}
	a.add(f)
}

// uneven: some PMDs have much to do and others nothing.
func (a *analysis) uneven() {
	var most, least *Measured
	var high, low float64
	load := func(m *Measured) (sum float64, known bool) {
		for _, q := range m.Queues {
			if q.Percent != nil {
				sum += *q.Percent
				known = true
			}
		}
		return sum, known
	}
	for i := range a.c.shown {
		m := &a.c.shown[i]
		l, known := load(m)
		if !known {
			continue
		}
		if most == nil || l > high {
			most, high = m, l
		}
		if least == nil || l < low {
			least, low = m, l
		}
	}
	if most == nil || most == least {
		return
	}
	if high-low < unevenBy {
		return
	}
	f := most.new(Uneven, Medium, "the usage is that of the last minute")
	f.Title = fmt.Sprintf("%s does %.0f %% and %s %.0f %%: the queues are uneven", most.title(), high, least.title(), low)
	busiest := slices.MaxFunc(most.Queues, func(x, y Queue) int {
		return int(value(x.Percent)) - int(value(y.Percent))
	})
	if len(most.Queues) == 1 || value(busiest.Percent) > high*3/4 {
		f.Text = append(f.Text, fmt.Sprintf("Queue %d of %s alone takes %.0f %%: only more queues of that port can share it, if its flows hash to them.", busiest.ID, clip(busiest.Port), value(busiest.Percent)))
	} else {
		f.Text = append(f.Text, fmt.Sprintf("%d queues share that PMD; some could move.", len(most.Queues)))
	}
	most.see(f, "%.0f %%", high)
	least.see(f, "%.0f %%", low)
	f.Next = []Step{{"ovs-appctl dpif-netdev/pmd-rxq-rebalance", "assigns the queues anew, by their usage"}, {"ovs-vsctl set Interface " + "NAME options:n_rxq=4", "more queues for the port"}}
	a.add(f)
}

// covered: the datapath counted drops, or waits for locks.
func (a *analysis) covered(m *Measured) {
	var dropped uint64
	var events []Count
	for _, e := range m.Events {
		if drop := strings.Contains(e.Name, "drop"); e.Total > 0 && (drop || strings.Contains(e.Name, "contention")) {
			events = append(events, e)
			if drop {
				dropped += e.Total
			}
		}
	}
	if len(events) == 0 {
		return
	}
	slices.SortStableFunc(events, func(x, y Count) int { return -cmp.Compare(x.Total, y.Total) })
	f := &Finding{Kind: Drops, Count: dropped, Confidence: Medium, Because: "the counts are those since the program's start"}
	f.Title = fmt.Sprintf("the datapath dropped %s packets since its start", grouped(float64(dropped)))
	if dropped == 0 {
		f.Title = "PMDs waited for transmit queues that they share"
	}
	now := false
	for i, e := range events {
		if i < maxEvidence {
			m.see(f, "%s %s, %.3g/s in the last minute", clip(e.Name), grouped(float64(e.Total)), e.PerMinute)
		}
		now = now || e.PerMinute > 0
	}
	if now {
		f.Text = []string{"Some of it happened in the last minute. The name of the counter tells where the packets went."}
	} else {
		f.Text = []string{"None of it happened in the last minute."}
	}
	f.Next = []Step{{"while sleep 2; do date -u +%FT%T.%NZ; echo NAME: $(ovs-appctl coverage/read-counter NAME); done > counters.txt", "gives the counter times, to be lined up with the stalls by --counters"}}
	a.add(f)
}

func value(p *float64) float64 {
	if p == nil {
		return 0
	}
	return *p
}
