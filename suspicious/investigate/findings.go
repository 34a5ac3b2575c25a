package investigate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pmdperf/pmdperf/suspicious"
)

const (
	maxEvidence = 5    // places that a finding names
	maxLinked   = 1000 // stalls that it links
)

// weight orders findings of the same time lost: what makes the others doubtful first.
func weight(k Kind) int {
	return slices.Index([]Kind{
		Clock, LostCPU, Stopped, CommonCause, Upcalls, QueueFull, Blocked, Work, Unexplained, SlowPackets, Drops, Reload, LowThreshold, DataLost,
		OtherThread, Overload, Bursts, Sleep, SelfDisturb, Overhead, Uneven, Quiet,
	}, k)
}

func (a *analysis) findings() {
	a.badClocks()
	a.commonCause()
	a.byKind(LostCPU, a.lostCPU)
	a.byKind(Stopped, a.stoppedThreads)
	a.byKind(Upcalls, a.upcallStorm)
	a.byKind(Unexplained, a.unexplained)
	a.byKind(SlowPackets, a.slowPackets)
	a.byKind(LowThreshold, a.lowThreshold)
	a.byKind(Blocked, a.caused("waited in the kernel", "it should not make system calls that block while it polls"))
	a.byKind(Work, a.caused("was busy with its own work", "the work has to be split, or done elsewhere"))
	a.byKind(Reload, a.caused("was parked for a new configuration", "changes of ports, queues and affinity stop every PMD"))
	a.byKind(Sleep, a.caused("slept too long", "a shorter longest sleep costs power and saves packets"))
	a.queueFull()
	a.reloads()
	a.otherThreads()
	a.dataLost()
	a.selfDisturbed()
	a.overload()
	a.sleeps()
	a.drops()
	a.measured()
	if len(a.r.Findings) == 0 {
		a.quiet()
	}
	a.rank()
}

// rank orders the findings and gives them names.
func (a *analysis) rank() {
	slices.SortStableFunc(a.r.Findings, func(x, y Finding) int {
		first := func(f Finding) int {
			if f.Kind == Clock {
				return 0
			}
			return 1
		}
		return cmp.Or(cmp.Compare(first(x), first(y)), -cmp.Compare(x.Lost, y.Lost), cmp.Compare(weight(x.Kind), weight(y.Kind)))
	})
	used := make(map[string]int)
	for i := range a.r.Findings {
		f := &a.r.Findings[i]
		f.ID = string(f.Kind)
		if used[f.ID]++; used[f.ID] > 1 {
			f.ID += "-" + itoa(used[f.ID])
		}
	}
}

// A group is the stalls of one kind.
type group struct {
	kind    Kind
	threads []*thread // that have some, the most time lost first
	stalls  []*kept   // the longest first
	count   uint64
	lost    float64
}

// byKind makes a finding of the stalls of a kind, if there are any.
func (a *analysis) byKind(k Kind, of func(*group, *Finding)) {
	g := &group{kind: k}
	for _, t := range a.threads {
		if s := t.perKind[k]; s != nil && s.count > 0 {
			g.threads = append(g.threads, t)
			g.count += s.count
			g.lost += s.lost
		}
	}
	if g.count == 0 {
		return
	}
	slices.SortStableFunc(g.threads, func(x, y *thread) int { return -cmp.Compare(x.perKind[k].lost, y.perKind[k].lost) })
	for _, s := range a.stalls {
		if s.kind == k {
			g.stalls = append(g.stalls, s)
		}
	}
	sortLongest(g.stalls)
	f := a.finding(g)
	of(g, f)
	if g.threads[0].ours {
		// Not Open vSwitch, but a program with this module's recorder in it.
		words := strings.NewReplacer("$(pidof ovs-vswitchd)", "PID", "ovs-appctl", "pmdperf appctl -t TARGET")
		for i := range f.Next {
			f.Next[i].Command = words.Replace(f.Next[i].Command)
		}
	}
	a.add(f)
}

func sortLongest(stalls []*kept) {
	slices.SortStableFunc(stalls, func(x, y *kept) int {
		return -cmp.Compare(x.thread.micros(&x.slot), y.thread.micros(&y.slot))
	})
}

func (a *analysis) add(f *Finding) {
	if f.Threads == nil {
		f.Threads = []string{}
	}
	if f.Evidence == nil {
		f.Evidence = []Evidence{}
	}
	if f.Next == nil {
		f.Next = []Step{}
	}
	a.r.Findings = append(a.r.Findings, *f)
}

// finding returns what the findings of all kinds have in common.
func (a *analysis) finding(g *group) *Finding {
	f := &Finding{Kind: g.kind, Count: g.count, Lost: g.lost, Confidence: Medium}
	for _, t := range g.threads {
		f.Threads = append(f.Threads, t.title())
	}
	a.show(f, g.stalls)
	if span := a.c.span.micros(); span > 0 {
		f.Share = min(1, g.lost/span/float64(max(1, len(g.threads))))
	}
	return f
}

// show links stalls and takes the first as evidence, and sums up their loss.
func (a *analysis) show(f *Finding, stalls []*kept) {
	for i, k := range stalls {
		if i < maxLinked {
			f.Stalls = append(f.Stalls, k.index)
		}
		s := &a.r.Stalls[k.index]
		if i < maxEvidence {
			at := k.index
			f.Evidence = append(f.Evidence, Evidence{s.Place, s.words(), &at})
		}
		l := s.Loss
		switch {
		case l == nil:
		case f.Loss == nil:
			sum := *l
			f.Loss = &sum
		default:
			f.Loss.Packets += l.Packets
			f.Loss.Rate = max(f.Loss.Rate, l.Rate)
			if f.Loss.Why != "" && l.Why == "" {
				f.Loss.Why = ""
				f.Loss.Capacity, f.Loss.Assumed = l.Capacity, l.Assumed
			}
		}
	}
}

// title is the thread's name for people.
func (t *thread) title() string {
	switch {
	case t.name == "" && t.core < 0:
		return "a thread without a name"
	case t.name == "":
		return fmt.Sprintf("the PMD of core %d", t.core)
	}
	return t.name
}

// words describes a stall in a line.
func (s *Stall) words() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, iteration %d", micros(s.Micros), s.Iteration)
	if !s.Time.IsZero() {
		fmt.Fprintf(&b, " at %s", clock(s))
	}
	switch {
	case !s.Known:
		b.WriteString(": its table is lost")
	default:
		fmt.Fprintf(&b, ": %s cycles, %s, %s", short(float64(s.Cycles)), plural(s.Packets, "packet"), plural(s.Upcalls, "upcall"))
		if s.Fill > 0 {
			fmt.Fprintf(&b, ", %d packets in the fullest queue", s.Fill)
		}
		if !s.Reported {
			b.WriteString("; not reported itself")
		}
	}
	switch {
	case len(s.Causes) > 0:
		fmt.Fprintf(&b, "; %s", s.Causes[0])
	case s.Said != "":
		fmt.Fprintf(&b, "; %s", s.Said)
	}
	return b.String()
}

func clock(s *Stall) string {
	if s.Time.Nanosecond() == 0 {
		return s.Time.Format("15:04:05")
	}
	return s.Time.Format("15:04:05.000")
}

// micros writes a length: "812 us", "3.1 ms", "1.20 s".
func micros(us float64) string {
	switch {
	case us < 1000:
		return fmt.Sprintf("%.0f us", us)
	case us < 1e6:
		return fmt.Sprintf("%.3g ms", us/1e3)
	default:
		return fmt.Sprintf("%.2f s", us/1e6)
	}
}

// short writes a number with three digits.
func short(v float64) string {
	for _, u := range [...]struct {
		from float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if v >= u.from {
			if u.name == "k" {
				return fmt.Sprintf("%.3gk", v/1e3)
			}
			return fmt.Sprintf("%.3g%s", v/u.from, u.name)
		}
	}
	return fmt.Sprintf("%.0f", v)
}

func plural(n uint64, what string) string {
	switch n {
	case 0:
		return "no " + what + "s"
	case 1:
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// names joins the names of threads.
func names(threads []*thread) string {
	var s []string
	for i, t := range threads {
		if i == 3 && len(threads) > 4 {
			s = append(s, fmt.Sprintf("%d more", len(threads)-3))
			break
		}
		s = append(s, t.title())
	}
	if len(s) > 1 {
		return strings.Join(s[:len(s)-1], ", ") + " and " + s[len(s)-1]
	}
	return strings.Join(s, "")
}

func times(n uint64) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

func (g *group) core() int {
	if len(g.threads) == 1 {
		return g.threads[0].core
	}
	return g.threads[0].core
}

// each writes a line for every thread, if there are several.
func (g *group) each(f *Finding) {
	if len(g.threads) < 2 {
		return
	}
	for i, t := range g.threads {
		if i == maxEvidence {
			f.Text = append(f.Text, fmt.Sprintf("And %d threads more.", len(g.threads)-i))
			return
		}
		s := t.perKind[g.kind]
		f.Text = append(f.Text, fmt.Sprintf("%s: %s, %s.", t.title(), times(s.count), micros(s.lost)))
	}
}

// median of the lengths of the stalls, and the longest.
func (g *group) lengths() (median, longest float64) {
	if len(g.stalls) == 0 {
		return 0, 0
	}
	k := g.stalls[len(g.stalls)/2]
	return k.thread.micros(&k.slot), g.stalls[0].thread.micros(&g.stalls[0].slot)
}

// gaps returns the median time between the ends of successive stalls of a thread, in
// us, how much the middle half of them differs from it, 0 to 1, and how many there are.
func (g *group) gaps(t *thread) (median, spread float64, n int) {
	if t.perKind[g.kind].rest > 0 {
		return 0, 1, 0
	}
	var own []*kept
	for _, k := range g.stalls {
		if k.thread == t && !k.at.time.IsZero() {
			own = append(own, k)
		}
	}
	slices.SortFunc(own, func(x, y *kept) int { return x.index - y.index })
	var gaps []float64
	for i := 1; i < len(own); i++ {
		gaps = append(gaps, float64(own[i].at.time.Sub(own[i-1].at.time))/1e3)
	}
	if len(gaps) == 0 {
		return 0, 1, 0
	}
	slices.Sort(gaps)
	median = gaps[len(gaps)/2]
	if median <= 0 {
		return 0, 1, len(gaps)
	}
	return median, (gaps[len(gaps)*3/4] - gaps[len(gaps)/4]) / 2 / median, len(gaps)
}

// workless counts the stalls in which neither packets nor upcalls can have taken the time.
func (g *group) workless() (without, usual, unknown int) {
	for _, k := range g.stalls {
		switch {
		case k.has&hasRow == 0:
			unknown++
		case k.row.Packets == 0 && k.row.Upcalls == 0:
			without++
		default:
			usual++
		}
	}
	return
}

func (a *analysis) lostCPU(g *group, f *Finding) {
	f.Title = fmt.Sprintf("%s lost its CPU %s, %s in all", names(g.threads), times(g.count), micros(g.lost))
	if len(g.threads) > 1 {
		f.Title = fmt.Sprintf("%s lost their CPUs, %s, %s in all", names(g.threads), times(g.count), micros(g.lost))
	}
	without, usual, unknown := g.workless()
	if without+usual > 0 {
		f.Text = append(f.Text, notWork(without, usual))
	}
	median, longest := g.lengths()
	s := fmt.Sprintf("The longest took %s, half of them %s or more", micros(longest), micros(median))
	if f.Share >= 0.01 {
		s += fmt.Sprintf("; %.0f %% of the time is lost", 100*f.Share)
	}
	f.Text = append(f.Text, s+".")
	f.Text = append(f.Text, a.rhythm(g, median)...)
	if len(g.threads) > 1 {
		f.Text = append(f.Text, "The threads stalled independently of each other: no more at the same instant than chance would have it.")
	}
	g.each(f)
	f.Confidence, f.Because = High, "the iterations had no work that takes that long"
	switch {
	case a.causedBy(g, f):
	case without+usual == 0:
		f.Confidence, f.Because = Low, "the tables that would show what the iterations did are lost"
	case unknown > without+usual:
		f.Confidence, f.Because = Medium, "most of the tables are lost"
	case g.count <= few:
		f.Confidence, f.Because = Medium, "there are only few of them"
	}
	f.Next = offCPU(g.core())
}

func notWork(without, usual int) string {
	switch {
	case usual == 0:
		return fmt.Sprintf("%s neither packet nor upcall: that was not packet work.", had(without))
	case without == 0:
		return fmt.Sprintf("%s as many packets as their neighbors, which took a fraction of the time, and no upcalls that explain it: that was not packet work.", had(usual))
	}
	return fmt.Sprintf("%s neither packet nor upcall, %d had packets but nothing that takes so long: that was not packet work.", had(without), usual)
}

func had(n int) string {
	if n == 1 {
		return "1 iteration had"
	}
	return fmt.Sprintf("%d iterations had", n)
}

// rhythm says whether stalls are periodic, or slices, or neither.
func (a *analysis) rhythm(g *group, median float64) (text []string) {
	for _, t := range g.threads[:min(len(g.threads), few)] {
		gap, spread, n := g.gaps(t)
		of := ""
		if len(g.threads) > 1 {
			of = " on " + t.title()
		}
		switch {
		case n < 6 || gap == 0:
		case spread < 0.15:
			s := fmt.Sprintf("They are periodic%s: one every %s.", of, micros(gap))
			if math.Abs(gap-100_000) < 5000 {
				s += " That is the period of a cgroup's CPU quota: look for throttling."
			}
			text = append(text, s)
		case median >= slice && gap < 10*median:
			text = append(text, fmt.Sprintf("They come in slices%s, one every %s or so, as when the scheduler shares the CPU among tasks.", of, micros(gap)))
		default:
			text = append(text, fmt.Sprintf("They are not periodic%s.", of))
		}
	}
	return text
}

// causedBy lets the causes speak that a flight record names.
func (a *analysis) causedBy(g *group, f *Finding) bool {
	parts := make(map[string]float64)
	exact := false
	for _, k := range g.stalls {
		if k.more() == nil {
			continue
		}
		for _, c := range k.more().causes {
			if c.Kind == suspicious.CauseUnknown {
				continue
			}
			parts[c.Title()] += float64(c.Part) / 1e3
			exact = exact || c.How > 0
		}
	}
	if len(parts) == 0 {
		return false
	}
	var titles []string
	for title := range parts {
		titles = append(titles, title)
	}
	slices.SortFunc(titles, func(x, y string) int { return cmp.Or(-cmp.Compare(parts[x], parts[y]), strings.Compare(x, y)) })
	for i, title := range titles[:min(len(titles), few)] {
		titles[i] = fmt.Sprintf("%s (%s)", title, micros(parts[title]))
	}
	f.Text = append(f.Text, "The probes say: "+strings.Join(titles[:min(len(titles), few)], ", ")+".")
	f.Confidence, f.Because = Medium, "probes inferred it"
	if exact {
		f.Confidence, f.Because = High, "probes saw it"
	}
	return true
}

func (a *analysis) stoppedThreads(g *group, f *Finding) {
	f.Title = fmt.Sprintf("%s was stopped, or off its CPU for long: %s, %s in all", names(g.threads), times(g.count), micros(g.lost))
	without, usual, unknown := g.workless()
	if without+usual > 0 {
		f.Text = append(f.Text, notWork(without, usual))
	}
	_, longest := g.lengths()
	f.Text = append(f.Text, fmt.Sprintf("The longest took %s; a scheduler that shares a CPU between two tasks switches at least every %s or so.", micros(longest), micros(stopped)))
	f.Text = append(f.Text, "A signal (SIGSTOP), a debugger, a freezer, a CPU quota, a task of higher priority and a paused virtual machine look the same here.")
	f.Text = append(f.Text, a.rhythm(g, 0)...)
	g.each(f)
	f.Confidence, f.Because = High, "nothing that a PMD does takes that long; which of the reasons it was can't be told"
	if !a.causedBy(g, f) && unknown == int(g.count) {
		f.Confidence, f.Because = Medium, "the tables that would show what the iterations did are lost"
	}
	f.Next = stoppedSteps(g.core())
}

func (a *analysis) commonCause() {
	if len(a.groups) == 0 {
		return
	}
	a.byKind(CommonCause, func(g *group, f *Finding) {
		f.Title = fmt.Sprintf("%d PMDs stalled at the same instant, %s, %s in all", len(g.threads), times(uint64(len(a.groups))), micros(g.lost))
		f.Text = append(f.Text,
			fmt.Sprintf("Chance would make that happen %.2g times in this time: they have a common cause.", a.commonBy),
			"A pause of the whole process or machine, a reload, or a lock that all of them need would look like this; another task on one of their cores would not.")
		g.each(f)
		f.Confidence, f.Because = High, "several threads ended a stall of the same length within milliseconds, repeatedly"
		if len(a.groups) <= few {
			f.Confidence, f.Because = Medium, "it happened only "+times(uint64(len(a.groups)))
		}
		a.causedBy(g, f)
		f.Next = append(stoppedSteps(g.core()), Step{"ovs-appctl vlog/set dpif_netdev:file:dbg", "logs reloads, which stop all PMDs at once"})
	})
}

func (a *analysis) upcallStorm(g *group, f *Finding) {
	var n, cycles uint64
	wild := 0
	for _, k := range g.stalls {
		if k.has&hasRow == 0 {
			continue
		}
		n += k.row.Upcalls
		cycles += k.row.Upcalls * k.row.CyclesPerUpcall
		if p := k.thread.perUpcall; p > 0 && k.row.CyclesPerUpcall >= 10*p {
			wild++
		}
	}
	f.Title = fmt.Sprintf("upcalls took %s of %s in %s", micros(g.lost), names(g.threads), plural(g.count, "iteration"))
	f.Text = append(f.Text, fmt.Sprintf("%s, %s cycles each at the median: packets without a matching flow, which the slow path handles in the PMD thread itself.", plural(n, "upcall"), short(float64(g.threads[0].perUpcall))))
	f.Text = append(f.Text, "That is no loss by itself: their packets are forwarded, even where pmd-stats-show calls the upcalls lost because their flow could not be installed.")
	if wild > 0 {
		f.Text = append(f.Text, fmt.Sprintf("In %s upcalls took ten times as long as usual: there the thread was off its CPU, or waited for a lock, in the middle of them.", plural(uint64(wild), "iteration")))
	}
	g.each(f)
	f.Confidence, f.Because = High, "the rows count the upcalls and their cycles"
	if n == 0 {
		f.Confidence, f.Because = Low, "it follows from the neighbors only"
	}
	f.Next = []Step{
		{"ovs-appctl upcall/show", "flows in use beside the flow limit: where the limit is reached, no flow is installed any more"},
		{"ovs-vsctl get Open_vSwitch . other_config:flow-limit", "the limit, if it was set"},
		{"ovs-appctl coverage/show | grep -E 'upcall|revalidate|flow_del'", "what removes flows, and how often"},
		{"ovs-appctl dpctl/dump-flows -m | sort | uniq -c | sort -rn | head", "whether flows match more narrowly than they need"},
	}
}

func (a *analysis) unexplained(g *group, f *Finding) {
	_, longest := g.lengths()
	f.Title = fmt.Sprintf("%s of %s without a known cause, %s at most", stallsOf(g.count), names(g.threads), micros(longest))
	f.Text = append(f.Text, "They are too few, and too short, to tell a pattern: an interrupt, a page fault, another task, or the machine's firmware would all look like this.")
	f.Confidence, f.Because = Low, "they are one-off"
	a.causedBy(g, f)
	f.Next = append(offCPU(g.core())[:1], liftRateLimit())
}

func stallsOf(n uint64) string {
	if n == 1 {
		return "one stall"
	}
	return fmt.Sprintf("%d one-off stalls", n)
}

func (a *analysis) slowPackets(g *group, f *Finding) {
	t := g.threads[0]
	f.Title = fmt.Sprintf("packets of %s took several times as long as usual in %s", names(g.threads), plural(g.count, "iteration"))
	f.Text = append(f.Text, fmt.Sprintf("Usually a packet takes %s cycles; in these iterations as many packets took more, without any upcall.", short(float64(t.perPacket))))
	f.Text = append(f.Text, "Cold caches after another task, a contended lock, a transmit queue that is shared, or flows that need more lookups would do that.")
	g.each(f)
	f.Because = "rows show the packets, but not what they needed"
	a.causedBy(g, f)
	f.Next = append([]Step{
		{"ovs-appctl dpif-netdev/pmd-perf-show -it 50 -ms 50", "cycles/pkt beside lookups per hit"},
		{"ovs-appctl coverage/show | grep -E 'vhost_tx_contention|datapath_drop'", "waiting for a transmit queue that several PMDs share"},
	}, offCPU(g.core())...)
}

// lowThreshold: the threshold lies in what is usual.
func (a *analysis) lowThreshold(g *group, f *Finding) {
	t := g.threads[0]
	usual := t.usualMicros(packets)
	if t.usual[packets] == 0 {
		usual = t.usualMicros(idle)
	}
	want := tidy(max(t.big(), 2*a.shorterKnown()))
	full := false
	for _, k := range g.stalls {
		full = full || k.class == fullOnly
	}
	if full {
		f.Title = fmt.Sprintf("the threshold of the queue fill is 0: every iteration of %s is suspicious", names(g.threads))
		f.Text = append(f.Text, "An empty queue is as full as the threshold. What was reported says nothing about trouble.")
		f.Confidence, f.Because = High, "iterations with empty queues were reported"
		f.Next = []Step{{"ovs-appctl dpif-netdev/pmd-perf-log-set on -q 128", "reports queues that are really full"}}
		return
	}
	f.Title = fmt.Sprintf("the threshold of %s is too low: %s of %s are noise", micros(a.shorterKnown()), plural(g.count, "report"), names(g.threads))
	if t.perPacket > 0 {
		f.Text = append(f.Text, fmt.Sprintf("A packet usually takes %s cycles, so that an iteration takes %s; that is too near the threshold.", short(float64(t.perPacket)), micros(usual)))
	} else {
		f.Text = append(f.Text, fmt.Sprintf("They are short, %s at the median: interrupts and cold caches alone take that long.", micros(first(g.lengths()))))
	}
	f.Text = append(f.Text, "They hide those that matter, and use up the log's rate limit.")
	f.Because = "none of them is longer than " + micros(t.big())
	f.Next = []Step{logFrom(want)}
}

func first(a, _ float64) float64 { return a }

func (a *analysis) shorterKnown() float64 {
	if math.IsInf(a.shorter, 0) {
		return 0
	}
	return a.shorter
}

// caused returns what makes the finding of a kind that only probes can tell.
func (a *analysis) caused(what, advice string) func(*group, *Finding) {
	return func(g *group, f *Finding) {
		f.Title = fmt.Sprintf("%s %s: %s, %s in all", names(g.threads), what, times(g.count), micros(g.lost))
		f.Because = "it follows from the neighborhood"
		a.causedBy(g, f)
		f.Text = append(f.Text, strings.ToUpper(advice[:1])+advice[1:]+".")
		g.each(f)
		f.Next = []Step{{"ovs-appctl dpif-netdev/pmd-perf-show -it 50 -ms 50", "the last iterations and milliseconds"}}
	}
}

func (a *analysis) badClocks() {
	for _, t := range a.threads {
		if !t.badClock && t.absurd == 0 {
			continue
		}
		f := &Finding{Kind: Clock, Threads: []string{t.title()}, Count: uint64(t.absurd), Confidence: High}
		if t.badClock {
			f.Count = t.reported
		}
		var own []*kept
		for _, k := range a.stalls {
			if k.thread == t && k.kind == Clock {
				own = append(own, k)
			}
		}
		sortLongest(own)
		a.show(f, own)
		what := "lengths"
		if !t.badClock {
			what = plural(uint64(t.absurd), "length")
		}
		if t.absurdHz > 0 {
			f.Title = fmt.Sprintf("%s of %s can't be believed: its clock seems to run at %s Hz", what, t.title(), short(t.absurdHz))
			f.Because = "the tables' cycles and the reported lengths give that frequency"
		} else {
			f.Title = fmt.Sprintf("%s of %s can't be believed: they are too long", what, t.title())
			f.Because = "an iteration can't take longer than the time over which it was logged, nor hours"
		}
		f.Text = append(f.Text,
			"The frequency of the time stamp counter was not known to the program: Open vSwitch takes 1 Hz then, and every iteration is longer than any threshold.")
		if t.badClock {
			f.Text = append(f.Text, fmt.Sprintf("Only the cycles in the tables can be compared. Usually an iteration took %s of them.", short(float64(max(t.usual[idle], t.usual[packets])))))
		}
		f.Next = []Step{
			{"grep -E 'TSC frequency|tsc' /var/log/openvswitch/ovs-vswitchd.log", "the frequency that was found at start, if any"},
			{"cat /sys/devices/system/clocksource/clocksource0/current_clocksource", "should be tsc"},
		}
		a.add(f)
	}
}

// queueFull: rx queues were full.
func (a *analysis) queueFull() {
	var threads []*thread
	for _, t := range a.threads {
		full := t.fill.most >= 2*fullBatch && (t.fill.count >= few || t.byReason[ovsQueueFull]+t.byReason["queue_fill"] > 0 && t.fill.count > 0)
		if full {
			threads = append(threads, t)
		}
	}
	if len(threads) == 0 {
		return
	}
	slices.SortStableFunc(threads, func(x, y *thread) int { return -cmp.Compare(x.fill.count, y.fill.count) })
	f := &Finding{Kind: QueueFull, Confidence: Medium}
	var reported uint64
	for _, t := range threads {
		f.Threads = append(f.Threads, t.title())
		f.Count += t.fill.count
		reported += t.fill.reported
		if t.hz > 0 && !t.badClock {
			f.Lost += float64(t.fill.cycles) / t.hz * 1e6
		}
	}
	var own []*kept
	for _, k := range a.stalls {
		if k.has&hasRow != 0 && k.row.QueueFill > 0 && k.row.QueueFill == k.thread.fill.most {
			own = append(own, k)
			if k.kind != QueueFull && k.kind != LowThreshold {
				f.Lost = max(0, f.Lost-k.thread.micros(&k.slot)) // booked there
			}
		}
	}
	sortLongest(own)
	a.show(f, own)
	f.Loss = nil
	most := threads[0].fill.most
	f.Title = fmt.Sprintf("an rx queue of %s was full: %d packets waited in %s", names(threads), most, plural(f.Count, "iteration"))
	f.Because = "the fill never went beyond that"
	if most&(most-1) == 0 {
		f.Confidence, f.Because = High, fmt.Sprintf("the fill never went beyond %d, which is the size of a ring", most)
	}
	f.Text = append(f.Text, fmt.Sprintf("%s of these iterations were reported: the rows over the threshold outnumber the messages.", quantity(reported)))
	if threads[0].vhost {
		f.Text = append(f.Text,
			"The queue is a vhost queue, the transmit ring of a guest: full means that the guest is held back, or drops packets itself. The switch loses none there.")
		f.Next = []Step{
			{"ovs-appctl dpif-netdev/pmd-rxq-show", "whether other queues of the same PMD take its time"},
			{"ovs-vsctl set Interface NAME other_config:pmd-rxq-affinity=0:CORE", "gives the queue a PMD of its own"},
		}
		f.Loss = &Loss{Why: "a full vhost ring holds the guest back"}
	} else {
		f.Text = append(f.Text, "What arrives while it is full is lost.")
		f.Next = []Step{{"ethtool -S NAME | grep -E 'miss|drop|no_desc'", "counts what was lost"}, {"ethtool -G NAME rx 4096", "makes the ring larger"}}
	}
	a.add(f)
}

func quantity(n uint64) string {
	if n == 0 {
		return "None"
	}
	return fmt.Sprint(n)
}

const ovsQueueFull = "Vhost RX queue full"

// reloads: the text shows that PMDs were reloaded.
func (a *analysis) reloads() {
	f := &Finding{Kind: Reload, Confidence: High, Because: "the log says so"}
	for i := range a.r.Notes {
		if n := &a.r.Notes[i]; n.Topic == TopicReload || n.Topic == TopicBalance {
			f.Count++
			if len(f.Evidence) < maxEvidence {
				f.Evidence = append(f.Evidence, Evidence{Place: n.Place, Text: n.Text})
			}
		}
	}
	if f.Count == 0 {
		return
	}
	f.Title = "queues were assigned to PMDs anew: all PMDs are stopped meanwhile"
	f.Text = []string{"The time of a reload is in no iteration, so it doesn't show as a stall; packets that arrive in it wait or are lost all the same."}
	f.Next = []Step{
		{"ovs-vsctl get Open_vSwitch . other_config", "pmd-auto-lb lets the switch rebalance by itself"},
		{"ovs-appctl dpif-netdev/pmd-rxq-show", "the assignment now"},
	}
	a.add(f)
}

// otherThreads: those that are no PMDs said that they took long.
func (a *analysis) otherThreads() {
	if len(a.c.polls) == 0 {
		return
	}
	f := &Finding{Kind: OtherThread, Count: uint64(a.c.polled), Confidence: High, Because: "the log says how much processor time was used"}
	worst := &a.c.polls[0]
	who := "the main thread"
	if worst.thread != "" {
		who = "thread " + worst.thread
	}
	f.Threads = []string{who}
	waited := 0
	for i := range a.c.polls {
		p := &a.c.polls[i]
		if p.cpu < p.wall/4 {
			waited++
		}
		if i < maxEvidence {
			f.Evidence = append(f.Evidence, Evidence{Place: p.at, Text: fmt.Sprintf("%v between two polls, %v of them on a processor", p.wall, p.cpu)})
		}
	}
	verb := "was busy"
	f.Text = []string{"Most of the time it used the processor: it had that much to do."}
	if 2*waited > len(a.c.polls) {
		verb = "waited, or was off its CPU,"
		f.Text = []string{"It used the processor for a fraction of the time: the kernel, a lock or disk, or another task held it back, not its own work. Many involuntary context switches mean another task, or a CPU quota."}
	}
	f.Text = append(f.Text, "Such messages are never about PMD threads; these wait for the main thread only at reloads.")
	f.Title = fmt.Sprintf("%s %s for up to %v, %s", who, verb, worst.wall, times(f.Count))
	f.Next = []Step{
		{"grep -A3 'Unreasonably long' /var/log/openvswitch/ovs-vswitchd.log", "page faults and context switches stand in the lines that follow"},
		{"cat /sys/fs/cgroup/$(cut -d: -f3 /proc/$(pidof ovs-vswitchd)/cgroup | tail -1)/cpu.stat", "nr_throttled rises where a CPU quota is used up"},
	}
	a.add(f)
}

// dataLost: the evidence is not complete.
func (a *analysis) dataLost() {
	var dropped, missing, headless, tableless uint64
	f := &Finding{Kind: DataLost, Confidence: High, Because: "the log counts what it dropped"}
	for _, t := range a.threads {
		n := dropped + missing + headless
		dropped += t.dropped
		missing += t.missing
		headless += t.headless
		if t.reported > t.tables && !t.badClock || t.dropped > 0 {
			tableless += t.reported - min(t.tables, t.reported)
		}
		if dropped+missing+headless > n && t.name != "" {
			f.Threads = append(f.Threads, t.title())
		}
	}
	if dropped+missing == 0 && headless+tableless <= few {
		return
	}
	for i := range a.r.Notes {
		n := &a.r.Notes[i]
		if (n.Topic == TopicDropped || n.Topic == TopicGap) && len(f.Evidence) < maxEvidence {
			f.Evidence = append(f.Evidence, Evidence{Place: n.Place, Text: n.Text})
		}
	}
	f.Count = dropped + missing
	switch {
	case dropped > 0:
		f.Title = fmt.Sprintf("the rate limit dropped %d messages: there were more stalls than the log shows", dropped)
	case missing > 0:
		f.Title = fmt.Sprintf("%d messages are missing from the text", missing)
		f.Because = "the numbers of messages jump"
	default:
		f.Title = "headers and tables lack their other half"
		f.Because = "they were looked for"
	}
	if missing > 0 && dropped > 0 {
		f.Text = append(f.Text, fmt.Sprintf("%d more are missing from the text: the numbers of messages jump, which dropped ones don't make them do.", missing))
	}
	if headless+tableless > 0 {
		f.Text = append(f.Text, fmt.Sprintf("%d tables have lost their header and %d headers their table.", headless, tableless))
	}
	if s, ok := a.fellBack(); ok {
		f.Text = append(f.Text, s)
	}
	f.Next = []Step{liftRateLimit(), logFrom(tidy(max(shortStall, 2*a.shorterKnown())))}
	a.add(f)
}

// fellBack notices tables that are smaller than was set: when Open vSwitch has to log
// while it gathers the neighborhood of the next one, it goes back to 5 and 5.
func (a *analysis) fellBack() (string, bool) {
	var want uint64
	for _, s := range a.c.set {
		if s.On {
			want = max(want, s.Before+s.After+1)
		}
	}
	largest := 0
	for _, k := range a.stalls {
		if k.hood != nil {
			largest = max(largest, len(k.hood.rows))
		}
	}
	if largest == 0 || uint64(largest) >= want || want <= 11 || largest > 11 {
		return "", false
	}
	return fmt.Sprintf("Tables have %d rows where %d were asked for: Open vSwitch fell back to 5 before and 5 after by itself, because events came too fast.", largest, want), true
}

// selfDisturbed: iterations were long because the one before was logged.
func (a *analysis) selfDisturbed() {
	const least, share = 3, 5
	for _, t := range a.threads {
		if t.badClock || t.ours {
			continue
		}
		var own, after []*kept
		for _, k := range a.stalls {
			if k.thread == t && k.has&hasHeader != 0 && k.class != fullOnly && k.hood != nil {
				own = append(own, k)
			}
		}
		slices.SortFunc(own, func(x, y *kept) int {
			return cmp.Or(cmp.Compare(x.at.epoch, y.at.epoch), cmp.Compare(x.row.Iteration, y.row.Iteration))
		})
		for i := 1; i < len(own); i++ {
			before, k := own[i-1], own[i]
			logged := before.hood.rows[0].Iteration // the last of its table
			if k.at.epoch != before.at.epoch || k.row.Iteration <= logged || k.row.Iteration > logged+2 || k.class == upcalls || t.micros(&k.slot) >= t.big() {
				continue
			}
			// What lies between must be no stall itself, or all of them are.
			calm := true
			for j := range k.hood.rows {
				if r := &k.hood.rows[j]; r.Iteration == k.row.Iteration-1 && float64(r.Cycles)/t.hz*1e6 >= a.shorter {
					calm = false
				}
			}
			if calm {
				after = append(after, k)
			}
		}
		if len(after) < least || share*len(after) < len(own) {
			continue
		}
		sortLongest(after)
		f := &Finding{Kind: SelfDisturb, Threads: []string{t.title()}, Count: uint64(len(after)), Confidence: Medium}
		a.show(f, after)
		f.Loss = nil
		f.Title = fmt.Sprintf("the log disturbed %s: %s came just after another was logged", t.title(), plural(f.Count, "report"))
		f.Text = []string{"A PMD writes the log itself, and the next iteration pays for it. Their time is counted above."}
		f.Because = "they follow on the last row of the table before"
		f.Next = []Step{logFrom(tidy(max(t.big(), 2*a.shorterKnown())))}
		a.add(f)
	}
}

// overload: every poll returned a full batch, before stalls too.
func (a *analysis) overload() {
	const least = 20
	for _, t := range a.threads {
		b := &t.before
		if b.rows < least || b.full*100 < b.rows*95 || t.badClock || t.perPacket == 0 && t.perUpcall == 0 || t.hz == 0 {
			continue
		}
		f := &Finding{Kind: Overload, Threads: []string{t.title()}, Count: b.full, Confidence: Medium}
		cost := float64(b.cycles) / float64(b.packets)
		f.Title = fmt.Sprintf("%s works at its limit: every poll returned a full batch", t.title())
		f.Text = []string{
			fmt.Sprintf("A packet takes %s cycles and the core has %s a second: more than %s packets/s can't be done, and any stall costs packets.", short(cost), short(t.hz), short(t.hz/cost)),
			"That holds before stalls too, so it is no backlog.",
		}
		f.Because = fmt.Sprintf("%d of %d rows before stalls had batches of %d", b.full, b.rows, fullBatch)
		f.Next = []Step{
			{"ovs-appctl dpif-netdev/pmd-perf-show -nh", "cycles per packet, and what lookups they need"},
			{"ovs-appctl dpif-netdev/pmd-rxq-show", "whether another PMD has time for some of the queues"},
		}
		a.add(f)
	}
}

// sleeps infers that a PMD sleeps: more time passes than its iterations take.
func (a *analysis) sleeps() {
	for _, t := range a.threads {
		first, last := t.first, t.last
		if t.badClock || t.hz == 0 || first.time.IsZero() || last.epoch != first.epoch || last.iteration <= first.iteration {
			continue
		}
		wall := float64(last.time.Sub(first.time)) / 1e3
		if wall < 100_000 || t.span.from.Nanosecond() == 0 && wall < 10e6 {
			continue
		}
		each := (wall - t.stalled) / float64(last.iteration-first.iteration)
		usual := max(t.usualMicros(idle), t.usualMicros(packets), t.usualMicros(upcalls))
		if each < 20 || each < 5*usual {
			continue
		}
		f := &Finding{Kind: Sleep, Threads: []string{t.title()}, Count: last.iteration - first.iteration, Confidence: Medium}
		f.Title = fmt.Sprintf("%s seems to sleep: an iteration comes every %s and takes %s", t.title(), micros(each), micros(usual))
		f.Text = []string{"What lies between is no stall, as it is in no iteration. A PMD with a longest sleep (pmd-maxsleep) does that when it has little to do; the first packets after a sleep wait for it."}
		f.Because = "it follows from the numbers of iterations and their times"
		f.Next = []Step{{"ovs-vsctl get Open_vSwitch . other_config:pmd-maxsleep", "the longest sleep in us"}, {"ovs-vsctl remove Open_vSwitch . other_config pmd-maxsleep", "no sleep"}}
		a.add(f)
	}
}

// quiet says over which time there was nothing.
func (a *analysis) quiet() {
	f := &Finding{Kind: Quiet, Confidence: Medium, Because: "only what was over the thresholds was logged"}
	f.Title = "no suspicious iteration was found"
	if len(a.r.Stalls)+len(a.c.shown) > 0 {
		f.Title = "nothing stands out"
	}
	for i := range a.c.shown {
		if m := &a.c.shown[i]; m.Iterations != nil && len(m.Histograms) == 0 {
			f.Text = append(f.Text, "Without histograms pmd-perf-show tells only averages, which hide stalls.")
			f.Next = append(f.Next, Step{"ovs-vsctl set Open_vSwitch . other_config:pmd-perf-metrics=true", "makes pmd-perf-show count in histograms"},
				Step{"ovs-appctl dpif-netdev/pmd-perf-show -it 50 -ms 50", "has them, unless -nh is given"})
			break
		}
	}
	if !a.c.span.from.IsZero() {
		f.Text = append(f.Text, fmt.Sprintf("Looked at %s to %s.", a.c.span.from.Format("2006-01-02 15:04:05"), a.c.span.to.Format("2006-01-02 15:04:05")))
	} else {
		f.Text = append(f.Text, "The evidence has no times.")
	}
	f.Text = append(f.Text, a.inForce())
	f.Next = append(f.Next, Step{"ovs-appctl dpif-netdev/pmd-perf-log-set on -us 500 -q 128", "logs iterations of 500 us and more"}, liftRateLimit())
	a.add(f)
}

// inForce says which thresholds were.
func (a *analysis) inForce() string {
	var s []string
	for _, t := range a.r.Thresholds {
		switch {
		case t.On:
			s = append(s, fmt.Sprintf("iterations of more than %d us, and queues with %d packets and more", t.Micros, t.QueueFill))
		default:
			s = append(s, "none (the log was off)")
		}
	}
	if len(s) == 0 {
		return "Which thresholds were in force, if any, the evidence doesn't say."
	}
	if len(s) > few {
		s = append(s[:few], "and others")
	}
	return "Thresholds in force: " + strings.Join(s, "; ") + "."
}
