package report

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pmdperf/pmdperf/internal/human"
	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/investigate"
)

// FromResult returns the page of an investigation, but for who made it.
func FromResult(r *investigate.Result) *Page {
	p := &Page{Title: "Drop investigation" + of(r.Sources)}
	threads := make(map[string]int) // by name
	for i := range r.PMDs {
		threads[r.PMDs[i].Thread] = len(p.Threads)
		p.Threads = append(p.Threads, fromPMD(&r.PMDs[i]))
	}
	for i := range r.Measured {
		at := threadOf(p, r, threads, &r.Measured[i])
		addMeasured(p, at, &r.Measured[i])
	}
	for i := range r.Stalls {
		s := &r.Stalls[i]
		at, ok := threads[s.Thread]
		if !ok {
			at = len(p.Threads)
			threads[s.Thread] = at
			p.Threads = append(p.Threads, Thread{Name: threadName(s.Thread, s.Core), Core: s.Core})
		}
		p.Stalls = append(p.Stalls, fromStall(s, at))
	}
	for i := range r.Findings {
		p.Findings = append(p.Findings, fromFinding(&r.Findings[i]))
	}
	p.Series = append(p.Series, fromCounters(r)...)
	for i := range r.Rises {
		rise := &r.Rises[i]
		p.Events = append(p.Events, line(rise.Place, moment(rise.To)+" "+rise.Text, rise.Stall))
	}
	for i := range r.Notes {
		n := &r.Notes[i]
		text := n.Text
		if n.Thread != "" {
			text = n.Thread + ": " + text
		}
		if !n.Time.IsZero() {
			text = moment(n.Time) + " " + text
		}
		p.Events = append(p.Events, line(n.Place, text, nil))
	}
	for i := range r.Sources {
		s := &r.Sources[i]
		p.Sources = append(p.Sources, Source{s.Name, strings.Join(s.Kinds, ", "), sourceNote(s)})
		if s.Error != "" {
			p.Warnings = append(p.Warnings, s.Name+": "+s.Error)
		}
	}
	p.summarize(r)
	return p
}

// of says what an investigation is of.
func of(sources []investigate.Source) string {
	if len(sources) == 0 {
		return ""
	}
	name := filepath.Base(sources[0].Name)
	if name == "-" {
		name = "standard input"
	}
	if more := len(sources) - 1; more > 0 {
		return fmt.Sprintf(": %s and %d more", name, more)
	}
	return ": " + name
}

// summarize fills in what is to be seen first.
func (p *Page) summarize(r *investigate.Result) {
	var count, dropped, missing, packets uint64
	var stalled, longest, share float64
	for i := range r.PMDs {
		m := &r.PMDs[i]
		count += m.Reported + m.Unreported
		dropped, missing = dropped+m.Dropped, missing+m.Missing
		stalled, longest, share = stalled+m.Stalled, max(longest, m.Longest), max(share, m.Share)
	}
	for i := range r.Stalls {
		if l := r.Stalls[i].Loss; l != nil {
			packets += l.Packets
		}
	}
	fact := func(is bool, name, value string) {
		if is {
			p.Facts = append(p.Facts, Fact{name, value})
		}
	}
	fact(true, "Stalls", human.Count(count))
	fact(longest > 0, "Longest", duration(longest))
	fact(stalled > 0, "In stalls, all together", duration(stalled))
	fact(share > 0, "Of the time, at most", percent(share))
	fact(packets > 0, "Packets lost, at most", human.Count(packets))

	p.Lead = plural(count, "stall") + " on " + plural(uint64(len(p.Threads)), "thread")
	if !r.From.IsZero() {
		p.Lead += ", from " + moment(r.From) + " to " + moment(r.To) + " (" + duration(float64(r.To.Sub(r.From))/1e3) + ")"
	}
	p.Lead += "."
	if dropped > 0 {
		p.Warnings = append(p.Warnings, plural(dropped, "message")+" fell to the rate limit of the log: there were more stalls than these.")
	}
	if missing > 0 {
		p.Warnings = append(p.Warnings, plural(missing, "message")+" missing from the text, by the numbers of those around.")
	}
	if r.LeftOut > 0 {
		p.Warnings = append(p.Warnings, "The shortest "+plural(r.LeftOut, "stall")+" of all are counted here, but neither listed nor drawn.")
	}
}

func percent(share float64) string { return human.Percent(100*share) + " %" }

func threadName(name string, core int) string {
	switch {
	case name != "":
		return name
	case core >= 0:
		return fmt.Sprintf("PMD on core %d", core)
	}
	return "thread not named"
}

func fromPMD(m *investigate.PMD) Thread {
	t := Thread{Name: threadName(m.Thread, m.Core), Core: m.Core, Hz: m.Hz}
	fact := func(is bool, name, value string) {
		if is {
			t.Facts = append(t.Facts, Fact{name, value})
		}
	}
	fact(true, "Stalls", human.Count(m.Reported+m.Unreported))
	fact(m.Unreported > 0, "of them found in neighborhoods only", human.Count(m.Unreported))
	fact(m.Longest > 0, "Longest", duration(m.Longest))
	fact(m.Stalled > 0, "In stalls", duration(m.Stalled))
	fact(m.Share > 0, "Of the time", percent(m.Share))
	fact(m.Usual > 0, "Usual iteration", human.Count(m.Usual)+" cycles"+inTime(float64(m.Usual), m.Hz))
	fact(m.CyclesPerPacket > 0, "A packet", human.Count(m.CyclesPerPacket)+" cycles"+inTime(float64(m.CyclesPerPacket), m.Hz))
	fact(m.CyclesPerUpcall > 0, "An upcall", human.Count(m.CyclesPerUpcall)+" cycles"+inTime(float64(m.CyclesPerUpcall), m.Hz))
	fact(m.Rate > 0, "Packets a second", human.Short(m.Rate))
	fact(m.Hz > 0, "Clock", human.Short(m.Hz)+"Hz")
	if m.Lengths != nil {
		h := fromHistogram(m.Lengths, 1)
		h.Title, h.Micros = "length of a stall", true
		t.Histograms = append(t.Histograms, h)
	}
	return t
}

// inTime returns a length in cycles as a time, if that is known.
func inTime(cycles, hz float64) string {
	if hz < 1e6 { // Open vSwitch takes 1 Hz where it doesn't know better
		return ""
	}
	return ", " + duration(cycles/hz*1e6)
}

// threadOf returns the thread that was measured.
func threadOf(p *Page, r *investigate.Result, threads map[string]int, m *investigate.Measured) int {
	for i := range r.PMDs {
		if !m.Main && (m.Name != "" && m.Name == r.PMDs[i].Thread || m.Core >= 0 && m.Core == r.PMDs[i].Core) {
			return i
		}
	}
	name, core := threadName(m.Name, m.Core), m.Core
	if m.Main {
		name, core = "main thread", -1
	}
	at, ok := threads[name]
	if !ok {
		at = len(p.Threads)
		threads[name] = at
		p.Threads = append(p.Threads, Thread{Name: name, Core: core, Hz: m.Hz})
	}
	return at
}

// addMeasured adds what a show command printed of a thread. Later shows add what
// earlier ones didn't have.
func addMeasured(p *Page, at int, m *investigate.Measured) {
	t := &p.Threads[at]
	if t.Hz == 0 {
		t.Hz = m.Hz
	}
	fact := func(name string, value *uint64, more string) {
		if value != nil && !slices.ContainsFunc(t.Facts, func(f Fact) bool { return f.Name == name }) {
			t.Facts = append(t.Facts, Fact{name, human.Count(*value) + more})
		}
	}
	rate := func(value *uint64) string {
		if value == nil || m.Seconds <= 0 {
			return ""
		}
		return ", " + human.Short(float64(*value)/m.Seconds) + "/s"
	}
	fact("Iterations", m.Iterations, rate(m.Iterations))
	fact("Received", m.RxPackets, rate(m.RxPackets))
	fact("Sent", m.TxPackets, rate(m.TxPackets))
	fact("Upcalls", m.Upcalls, rate(m.Upcalls))
	fact("Lost upcalls", m.LostUpcalls, rate(m.LostUpcalls))
	if m.UsedPercent != nil && m.BusyPercent != nil && m.IdlePercent != nil && len(t.Shares) == 0 {
		used := min(*m.UsedPercent, 100)
		t.Shares = []Share{{"busy", used * *m.BusyPercent / 100}, {"idle", used * *m.IdlePercent / 100}, {"asleep or not measured", 100 - used}}
	}
	for i := range m.Histograms {
		h := measuredHistogram(&m.Histograms[i], cmp.Or(m.Hz, t.Hz))
		if !slices.ContainsFunc(t.Histograms, func(g Histogram) bool { return g.Title == h.Title }) {
			t.Histograms = append(t.Histograms, h)
		}
	}
	if s := received(m, at); len(s.Points) > 0 {
		p.Series = append(p.Series, s)
	}
}

// measuredHistogram returns one of Open vSwitch's histograms, lengths in time if the
// clock's frequency is known.
func measuredHistogram(g *investigate.Histogram, hz float64) Histogram {
	cycles := strings.HasPrefix(g.Title, "cycles/")
	scale := 1.0
	if cycles && hz > 0 {
		scale = 1e6 / hz
	}
	h := fromHistogram(g, scale)
	h.Title = MetricTitle(g.Title)
	switch {
	case cycles && hz > 0:
		h.Micros = true
	case cycles:
		h.Unit = "cycles"
	default:
		h.Unit = "packets"
		if strings.HasPrefix(g.Title, "upcalls") {
			h.Unit = "upcalls"
		}
	}
	return h
}

// MetricTitle says in a few words what Open vSwitch's name of a histogram means.
func MetricTitle(name string) string {
	title, ok := map[string]string{
		"cycles/it": "time of an iteration", "packets/it": "packets of an iteration", "cycles/pkt": "time of a packet",
		"pkts/batch": "packets of a batch", "max vhost qlen": "queue fill", "upcalls/it": "upcalls of an iteration", "cycles/upcall": "time of an upcall",
	}[name]
	if !ok {
		return name
	}
	return title
}

func fromHistogram(g *investigate.Histogram, scale float64) Histogram {
	h := Histogram{Title: g.Title}
	for i, n := range g.Counts {
		b := Bin{Count: n, To: math.Inf(1)}
		if i > 0 && i <= len(g.Walls) {
			b.From = float64(g.Walls[i-1]) * scale
		}
		if i < len(g.Walls) {
			b.To = float64(g.Walls[i]) * scale
		}
		h.Bins = append(h.Bins, b)
	}
	for _, x := range g.Percentiles {
		sign := ""
		if x.Beyond {
			sign = ">"
		}
		h.Percentiles = append(h.Percentiles, Percentile{x.Percent, float64(x.Value) * scale, sign})
	}
	return h
}

// received returns the packets of a history of milliseconds whose end is known.
func received(m *investigate.Measured, at int) Series {
	s := Series{Name: "packets received in a millisecond", Unit: "packets", Thread: at}
	if m.Time.IsZero() {
		return s
	}
	end := m.Time
	for _, row := range slices.Backward(m.Milliseconds) {
		length := time.Millisecond
		if row.Micros > 0 {
			length = time.Duration(row.Micros * 1e3)
		}
		s.Points = append(s.Points, Point{end.Add(-length), end, float64(row.Packets)})
		end = end.Add(-length)
	}
	slices.Reverse(s.Points)
	return s
}

func fromStall(s *investigate.Stall, thread int) Stall {
	t := Stall{
		Thread: thread, End: s.Time, Micros: s.Micros, Iteration: s.Iteration, Reasons: s.Reasons, Source: place(s.Place),
		Causes: fromCauses(s.Causes), Culprit: s.Culprit,
	}
	if !s.Reported {
		t.Reasons = append(slices.Clone(t.Reasons), "in another's neighborhood")
	}
	for i := range s.Neighborhood {
		r := &s.Neighborhood[i]
		note := r.Queue
		if len(r.After) > 0 {
			note = strings.TrimPrefix(note+", after "+strings.Join(r.After, ", "), ", ")
		}
		t.Rows = append(t.Rows, Row{
			Iteration: r.Iteration, Cycles: r.Cycles, SleepMicros: r.Sleep, Rx: r.Packets, Drops: r.Drops, CyclesPerPacket: r.CyclesPerPacket,
			PacketsPerBatch: r.PacketsPerBatch, Fill: r.Fill, Upcalls: r.Upcalls, CyclesPerUpcall: r.CyclesPerUpcall, Note: note,
		})
	}
	return t
}

func fromCauses(causes []suspicious.Cause) (all []Cause) {
	for _, c := range causes {
		all = append(all, Cause{c.Title(), float64(c.Part) / 1e3, 100 * c.Share, c.How.String(), c.Evidence})
	}
	return all
}

func fromFinding(f *investigate.Finding) Finding {
	g := Finding{Title: headline(f.Title), Confidence: string(f.Confidence) + " confidence", Stalls: f.Stalls}
	if len(f.Text) > 0 {
		g.Text = []string{strings.Join(f.Text, " ")}
	}
	fact := func(is bool, name, value string) {
		if is {
			g.Facts = append(g.Facts, Fact{name, value})
		}
	}
	fact(f.Lost > 0, "Time lost", duration(f.Lost))
	fact(f.Share > 0, "Of the time", percent(f.Share))
	fact(f.Count > 0, "Iterations", human.Count(f.Count))
	if l := f.Loss; l != nil {
		fact(l.Packets > 0, "Packets lost, at most", human.Count(l.Packets))
		fact(l.Why != "", "Packets lost", "no estimate: "+l.Why)
		assumed := ""
		if l.Assumed {
			assumed = ", assumed"
		}
		fact(l.Packets > 0 && l.Capacity > 0, "Queues hold", human.Count(l.Capacity)+assumed)
	}
	if f.Because != "" {
		g.Text = append(g.Text, "Confidence is "+string(f.Confidence)+": "+f.Because+".")
	}
	for i := range f.Evidence {
		g.Evidence = append(g.Evidence, line(f.Evidence[i].Place, f.Evidence[i].Text, f.Evidence[i].Stall))
	}
	for _, s := range f.Next {
		g.Steps = append(g.Steps, Step{s.Why, s.Command})
	}
	return g
}

// headline begins a title with a capital letter, unless it begins with a name.
func headline(s string) string {
	word, _, _ := strings.Cut(s, " ")
	if word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") != "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func line(at investigate.Place, text string, stall *int) Line {
	l := Line{Source: at.Source, Number: at.Line, Text: text, Stall: -1}
	if stall != nil {
		l.Stall = *stall
	}
	return l
}

func place(p investigate.Place) string {
	if p.Line == 0 {
		return p.Source
	}
	return fmt.Sprintf("%s:%d", p.Source, p.Line)
}

// fromCounters returns how the counters rose. Those that didn't are left out.
func fromCounters(r *investigate.Result) (all []Series) {
	for i := range r.Counters {
		c := &r.Counters[i]
		s := Series{Name: c.Name, Unit: "between two readings", Thread: -1}
		s.Alarm = slices.ContainsFunc(r.Rises, func(rise investigate.Rise) bool { return rise.Counter == c.Name })
		rose := false
		for j := 1; j < len(c.Points); j++ {
			rise := max(0, c.Points[j].Value-c.Points[j-1].Value)
			rose = rose || rise > 0
			s.Points = append(s.Points, Point{c.Points[j-1].Time, c.Points[j].Time, rise})
		}
		if rose {
			all = append(all, s)
		}
	}
	return all
}

func sourceNote(s *investigate.Source) string {
	note := plural(uint64(s.Lines), "line")
	if s.Lines == 0 {
		note = ""
	}
	if s.Unread > 0 {
		var lines []string
		for _, l := range s.Lost {
			lines = append(lines, fmt.Sprint(l.Line))
		}
		note += ", " + human.Count(uint64(s.Unread)) + " of them could not be read"
		if len(lines) > 0 {
			note += ": " + strings.Join(lines[:min(len(lines), 10)], ", ")
		}
	}
	if s.Error != "" {
		note = strings.TrimPrefix(note+", "+s.Error, ", ")
	}
	return note
}
