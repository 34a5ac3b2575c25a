package investigate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/pmdperf/pmdperf/suspicious/ovslog"
)

// What a Case keeps at most; the rest it sums up.
const (
	MaxStalls  = 10_000
	MaxNotes   = 1000
	MaxPoints  = 10_000 // of a series
	maxThreads = 64     // each of them needs some hundred kB
	maxRows    = 200_000
	maxSeries  = 64
	maxShown   = 256
)

// A Case is a collection of evidence. It belongs to one goroutine. NewCase makes one.
type Case struct {
	sources []Source
	threads map[string]*thread
	heap    stallHeap
	kept    []*kept // the same, when everything has been read
	rows    int     // in neighborhoods of kept stalls
	bar     float64
	notes   []Note
	topics  map[Topic]int
	set     []Threshold
	khz     uint64 // of the clock as logged
	khzAt   Place
	polls   []longPoll
	polled  int // long polls altogether
	shown   []Measured
	series  []Series
	span    span
}

// NewCase returns an empty case.
func NewCase() *Case {
	return &Case{threads: make(map[string]*thread), topics: make(map[Topic]int)}
}

// AddSource registers what evidence comes from and returns its number, for the other
// methods.
func (c *Case) AddSource(name string) int {
	c.sources = append(c.sources, Source{Name: name, Kinds: []string{}})
	return len(c.sources) - 1
}

// Source returns a source, to be completed. It is valid until the next AddSource.
func (c *Case) Source(n int) *Source { return &c.sources[n] }

// Found notes that something of a kind was recognised in a source.
func (c *Case) Found(source int, kind string) {
	s := &c.sources[source]
	if !slices.Contains(s.Kinds, kind) {
		s.Kinds = append(s.Kinds, kind)
	}
}

// A span is from the earliest to the latest time.
type span struct{ from, to time.Time }

func (s *span) see(t time.Time) {
	switch {
	case t.IsZero():
	case s.from.IsZero():
		s.from, s.to = t, t
	case t.Before(s.from):
		s.from = t
	case t.After(s.to):
		s.to = t
	}
}

// micros returns the length; 0 if it isn't known.
func (s *span) micros() float64 { return float64(s.to.Sub(s.from)) / 1e3 }

// AddRecord adds what a log of Open vSwitch says. It keeps nothing of the record.
func (c *Case) AddRecord(source int, rec ovslog.Record) {
	if ev, ok := rec.(*ovslog.Event); ok {
		c.addEvent(source, ev)
		return
	}
	o := rec.Where()
	c.Found(source, "log")
	note := func(topic Topic, format string, args ...any) {
		c.AddNote(source, Note{Place: Place{Line: o.Line}, Time: o.Time, Thread: o.Thread, Topic: topic, Text: fmt.Sprintf(format, args...)})
	}
	switch rec := rec.(type) {
	case *ovslog.Settings:
		c.AddThreshold(source, Threshold{
			Place: Place{Line: o.Line}, Time: o.Time, On: rec.On, Micros: rec.MaxDuration, QueueFill: rec.QueueFill,
			Before: rec.Before, After: rec.After, Extend: rec.Extend,
		})
	case *ovslog.Dropped:
		if ovslog.Core(o.Thread) >= 0 || rec.Module == "pmd_perf" {
			t := c.thread(o.Thread)
			said := *rec
			said.Line = 0
			if said == t.lastDropped {
				return // the line is there twice
			}
			t.lastDropped = said
			t.dropped += rec.Messages
			note(TopicDropped, "%d messages dropped in %d s", rec.Messages, rec.Seconds)
		}
	case *ovslog.Gap:
		c.thread(o.Thread).missing += rec.Missing
		note(TopicGap, "%d messages of this thread are missing before this one", rec.Missing)
	case *ovslog.LongPoll:
		c.longPoll(source, rec)
		note(TopicLongPoll, "poll interval of %v (%v user, %v system)", rec.Interval, rec.User, rec.System)
	case *ovslog.Switches:
		note(TopicLongPoll, "context switches: %d voluntary, %d involuntary", rec.Voluntary, rec.Involuntary)
	case *ovslog.Faults:
		note(TopicLongPoll, "page faults: %d minor, %d major", rec.Minor, rec.Major)
	case *ovslog.Blocked:
		note(TopicBlocked, "blocked %v waiting for %s to quiesce", rec.For, rec.Waited)
	case *ovslog.Frequency:
		note(TopicClock, "time stamp counter: %d kHz", rec.KHz)
		c.khz, c.khzAt = rec.KHz, Place{c.sources[source].Name, o.Line}
	case *ovslog.Assignment:
		note(TopicReload, "core %d polls %s queue %d", rec.Core, rec.Port, rec.Queue)
	case *ovslog.Threads:
		note(TopicReload, "%d PMD threads on NUMA node %d", rec.Count, rec.NUMA)
	case *ovslog.Notice:
		topic := map[ovslog.Topic]Topic{
			ovslog.LoadBalance: TopicBalance, ovslog.MaxSleep: TopicSleep, ovslog.Pinned: TopicPinned,
			ovslog.NotPolled: TopicNotPolled, ovslog.NoThread: TopicNotPolled,
		}[rec.Topic]
		note(topic, "%s", rec.Text)
	}
}

// A longPoll is a poll interval of a thread that is no PMD.
type longPoll struct {
	at     Place
	thread string
	time   time.Time
	wall   time.Duration
	cpu    time.Duration // that it used in it
}

// longPoll keeps the longest.
func (c *Case) longPoll(source int, rec *ovslog.LongPoll) {
	const most = 100
	c.polled++
	c.polls = append(c.polls, longPoll{Place{c.sources[source].Name, rec.Line}, clip(rec.Thread), rec.Time, rec.Interval, rec.User + rec.System})
	slices.SortStableFunc(c.polls, func(x, y longPoll) int {
		return cmp.Or(-cmp.Compare(x.wall, y.wall), x.time.Compare(y.time), strings.Compare(x.thread, y.thread))
	})
	c.polls = c.polls[:min(len(c.polls), most)]
}

// AddThreshold adds thresholds that were set.
func (c *Case) AddThreshold(source int, t Threshold) {
	t.Source = c.sources[source].Name
	c.span.see(t.Time)
	same := func(s Threshold) bool {
		s.Place = t.Place
		return s == t
	}
	if len(c.set) < MaxNotes && !slices.ContainsFunc(c.set, same) {
		c.set = append(c.set, t)
	}
}

// AddNote adds something beside stalls. No topic can crowd out the others.
func (c *Case) AddNote(source int, n Note) {
	n.Source = c.sources[source].Name
	c.span.see(n.Time)
	if c.topics[n.Topic]++; c.topics[n.Topic] <= MaxNotes/10 {
		n.Text = clip(n.Text)
		c.notes = append(c.notes, n)
	}
}

// clip shortens a text from outside, and takes out of it what would not be shown but
// obeyed.
func clip(s string) string {
	const most = 300
	if len(s) > most {
		s = s[:most] + "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// AddMeasured adds what a show command printed.
func (c *Case) AddMeasured(source int, m Measured) {
	m.Source = c.sources[source].Name
	c.Found(source, m.Command)
	c.span.see(m.Time)
	if len(c.shown) < maxShown {
		c.shown = append(c.shown, m)
	}
}

// AddSeries adds a counter, its points in the order of their times.
func (c *Case) AddSeries(source int, s Series) {
	s.Source = c.sources[source].Name
	c.Found(source, "counters")
	if len(c.series) < maxSeries && len(s.Points) > 0 {
		c.series = append(c.series, s)
	}
}

// thread returns the thread with a name. Those that are too many are one.
func (c *Case) thread(name string) *thread {
	if t, ok := c.threads[name]; ok {
		return t
	}
	core := ovslog.Core(name)
	if len(c.threads) >= maxThreads {
		name, core = "other threads", -1
		if t, ok := c.threads[name]; ok {
			return t
		}
	}
	t := &thread{c: c, name: clip(name), core: core, epochs: 1}
	c.threads[name] = t
	return t
}

// sorted returns the threads by core and name.
func (c *Case) sorted() []*thread {
	var all []*thread
	for _, t := range c.threads {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *thread) int {
		return cmp.Or(cmp.Compare(a.core, b.core), cmp.Compare(a.name, b.name))
	})
	return all
}

// addEvent adds a suspicious iteration and its neighborhood.
func (c *Case) addEvent(source int, ev *ovslog.Event) {
	if ev.HasHeader {
		c.sources[source].Events++
	}
	if len(c.sources[source].Kinds) == 0 {
		c.Found(source, "log")
	}
	t := c.thread(ev.Thread)
	if ev.Thread == "" && !ev.HasHeader {
		t = c.owner(ev.Table, t)
	}
	t.span.see(ev.Time)
	t.span.see(ev.TableTime)
	c.span.see(ev.Time)
	c.span.see(ev.TableTime)
	t.epochs = max(t.epochs, ev.Epoch+1)
	var own struct { // allocated as one
		table, header sighting
		head          head
	}
	own.table = sighting{source: int32(source), line: ev.TableLine, time: ev.TableTime, epoch: ev.Epoch}
	if own.table.time.IsZero() {
		own.table.time = ev.Time
	}
	if len(ev.Table) > 0 {
		t.table(&own.table, ev.Table, ev.Culprit)
		if ev.HasHeader {
			t.tables++
		} else {
			t.headless++
		}
	}
	if !ev.HasHeader {
		return
	}
	own.header = sighting{source: int32(source), line: ev.Line, time: ev.Time, epoch: ev.Epoch}
	if !ev.Began.IsZero() {
		own.header.time = ev.Began.Add(time.Duration(ev.Duration) * time.Microsecond)
	}
	own.head = head{us: float64(ev.Duration), reasons: ev.Reasons}
	h := t.header(&own.header, ev.Iteration, &own.head)
	if ev.Causes != "" {
		h.said = clip(ev.Causes)
	}
}

// owner returns the thread of a table that has lost its first line: the one that
// waits for one of its rows, else none.
func (c *Case) owner(table []ovslog.Row, none *thread) *thread {
	for _, t := range c.threads {
		for i := range table {
			if s := t.find(table[i].Iteration); s != nil && s.has&hasRow == 0 {
				return t
			}
		}
	}
	return none
}

// DropSource forgets the source added last, in which nothing was found.
func (c *Case) DropSource(n int) {
	if n == len(c.sources)-1 {
		c.sources = c.sources[:n]
	}
}
