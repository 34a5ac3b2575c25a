package investigate

import (
	"container/heap"
	"slices"
	"time"

	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/ovslog"
)

// A class is a sort of iteration, as far as its row alone tells.
type class int

const (
	rowless  class = iota // its row is lost
	idle                  // neither packets nor upcalls
	packets               // packets
	upcalls               // half of it or more were upcalls
	fullOnly              // reported, but not for its length
	numClasses
)

// window is how many iterations apart the mentions of one iteration are at most: Open
// vSwitch's history.
const window = 1024

const (
	hasRow = 1 << iota
	hasHeader
)

// A sighting is where and when something was seen.
type sighting struct {
	source int32
	epoch  int
	line   int
	time   time.Time
}

// A slot is an iteration while more may be said about it. It is small, as it is written
// for every row of a log; what only few have is behind pointers.
type slot struct {
	row     ovslog.Row // its iteration is set from the beginning
	at      *sighting  // of the header, else of the table
	head    *head      // of its own report
	hood    *hood
	newest  uint64 // iteration of the table it is from
	has     uint8
	culprit bool // of that table
}

// A head is what a report says.
type head struct {
	us      float64
	reasons []string
	more    *flight
	said    string // causes, in words
}

// A hood is a neighborhood, of one iteration or more.
type hood struct {
	rows []ovslog.Row // newest first
	refs int          // kept iterations that have it
}

// flight is what only flight records say.
type flight struct {
	causes   []suspicious.Cause
	rows     []Row // oldest first
	hz       float64
	capacity uint64 // packets, of all queues; 0 if unknown
}

// A thread is what is known of a thread.
type thread struct {
	c    *Case
	name string
	core int
	span span
	ring []slot // by iteration modulo its length

	// The clock, as the longest iteration tells.
	hzFrom        float64 // its length in us
	hzLow, hzHigh float64

	ours             bool    // recorded by this module: fill is that of any rx queue
	absurd           int     // reports whose length can't be
	absurdHz         float64 // the frequency that they would mean
	epochs           int
	dropped, missing uint64
	lastDropped      ovslog.Dropped
	tables, headless uint64
	reported         uint64
	byReason         map[string]uint64
	rows             uint64
	minByCycles      float64                     // shortest reported for its length, in us; 0 for none
	cycles           [numClasses]*histogram.Fine // of rows that were not reported
	cpp, cpu         *histogram.Fine             // cycles per packet and upcall, as above
	restUs           [numClasses]*histogram.Fine // lengths of reported iterations that were not kept
	restCycles       [numClasses]*histogram.Fine // cycles of rows that were not kept
	fill             fillStats
	first, last      anchor // reported iterations

	sums // set by analyse
}

// fillStats says how often the fullest queue was as full as it ever was.
type fillStats struct {
	most, count uint64
	cycles      uint64
	any         uint64 // iterations with something in it
	reported    uint64
}

// An anchor is when an iteration was.
type anchor struct {
	epoch     int
	iteration uint64
	time      time.Time
}

// find returns the slot that an iteration of any epoch has, or nil.
func (t *thread) find(iteration uint64) *slot {
	if len(t.ring) == 0 {
		return nil
	}
	if s := &t.ring[iteration%window]; s.has != 0 && s.row.Iteration == iteration {
		return s
	}
	return nil
}

// slot returns the slot of an iteration, which may be new.
func (t *thread) slot(at *sighting, iteration uint64) *slot {
	if t.ring == nil {
		t.ring = make([]slot, window)
	}
	s := &t.ring[iteration%window]
	if s.has != 0 {
		if s.row.Iteration == iteration && s.at.epoch == at.epoch {
			return s
		}
		if !t.pass(s) {
			t.commit(s)
		}
		s.head, s.hood, s.newest, s.has, s.culprit = nil, nil, 0, 0, false
	}
	s.row = ovslog.Row{Iteration: iteration}
	s.at = at
	return s
}

// table adds the rows of a neighborhood, newest first. A row of several tables is shown
// in the one of which it is the culprit, else in the one that was logged first.
func (t *thread) table(at *sighting, rows []ovslog.Row, culprit int) {
	var shared *hood
	newest := rows[0].Iteration
	for i := range rows {
		row := &rows[i]
		s := t.slot(at, row.Iteration)
		switch {
		case s.has&hasRow == 0:
			s.row = *row
			s.has |= hasRow
		case s.culprit || i != culprit && s.newest <= newest:
			continue
		}
		s.newest, s.culprit = newest, i == culprit
		if s.has&hasHeader == 0 {
			s.at = at
		}
		if float64(row.Cycles) >= t.c.bar {
			if shared == nil {
				shared = &hood{rows: slices.Clone(rows)}
			}
			s.hood = shared
		}
	}
}

// header adds that an iteration was reported. It returns what the first report said, if
// there was one.
func (t *thread) header(at *sighting, iteration uint64, h *head) *head {
	s := t.slot(at, iteration)
	if s.head != nil {
		return s.head
	}
	s.has |= hasHeader
	s.at, s.head = at, h
	a := anchor{at.epoch, iteration, at.time}
	if t.first.time.IsZero() || a.before(t.first) {
		t.first = a
	}
	if t.last.time.IsZero() || t.last.before(a) {
		t.last = a
	}
	return s.head
}

func (a anchor) before(b anchor) bool {
	return a.epoch < b.epoch || a.epoch == b.epoch && a.iteration < b.iteration
}

// forLength reports whether an iteration was reported for its length.
func forLength(reasons []string) bool {
	return slices.ContainsFunc(reasons, func(r string) bool {
		return r != ovslog.ReasonQueue && r != "queue_fill" && r != "full_batches" && r != "drops"
	})
}

func (s *slot) class() class {
	switch {
	case s.has&hasHeader != 0 && !forLength(s.head.reasons):
		return fullOnly
	case s.has&hasRow == 0:
		return rowless
	case s.row.Upcalls > 0 && 2*s.row.Upcalls*s.row.CyclesPerUpcall >= s.row.Cycles:
		return upcalls
	case s.row.Packets > 0:
		return packets
	}
	return idle
}

func add(h **histogram.Fine, v uint64) {
	if *h == nil {
		*h = new(histogram.Fine)
	}
	(*h).Add(v)
}

// pass is commit for nearly all rows of a long log, which only count: they are shorter
// than what is kept and not among those sampled. It reports whether this is one.
func (t *thread) pass(s *slot) bool {
	if s.has != hasRow || s.row.Cycles >= never || s.row.QueueFill > 0 || t.rows+1 < manyRows || s.row.Iteration%sampled == 0 {
		return false
	}
	if len(t.c.heap) < MaxStalls || float64(s.row.Cycles) >= t.c.heap[0].key {
		return false
	}
	t.rows++
	return true
}

// commit books an iteration about which nothing more will be said.
func (t *thread) commit(s *slot) {
	c := s.class()
	if s.has&hasRow != 0 {
		t.rows++
		if t.rows < manyRows || s.row.Iteration%sampled == 0 {
			t.sample(s, c)
		}
		if s.row.QueueFill > 0 {
			t.fill.see(s)
		}
	}
	absurd := s.absurd()
	switch {
	case absurd:
		t.absurd++
		if s.has&hasRow != 0 {
			t.absurdHz = 1e6 * float64(s.row.Cycles) / s.head.us
		}
	case s.has == hasRow|hasHeader && s.head.more == nil:
		t.frequency(s.head.us, s.row.Cycles)
	}
	if s.has&hasHeader != 0 {
		t.reported++
		if t.byReason == nil {
			t.byReason = make(map[string]uint64)
		}
		for _, r := range s.head.reasons {
			if len(t.byReason) < 64 || t.byReason[r] > 0 {
				t.byReason[r]++
			}
		}
		if c != fullOnly && !absurd && (t.minByCycles == 0 || s.head.us < t.minByCycles) {
			t.minByCycles = max(s.head.us, 1e-3)
		}
	}
	t.c.keep(t, s, c)
}

// Of a thread with so many rows only some count for what is usual.
const (
	manyRows = 200_000
	sampled  = 16
)

// sample counts a row for what is usual.
func (t *thread) sample(s *slot, c class) {
	if s.has&hasHeader == 0 {
		add(&t.cycles[c], s.row.Cycles)
		if s.row.Packets > 0 && s.row.Upcalls == 0 {
			add(&t.cpp, s.row.CyclesPerPacket)
		}
	}
	if s.row.Upcalls > 0 {
		add(&t.cpu, s.row.CyclesPerUpcall)
	}
}

// absurd reports whether the length that was reported can't be: it is hours, or doesn't
// fit the cycles.
func (s *slot) absurd() bool {
	const hour = 3600e6
	if s.head == nil || s.head.us <= 0 {
		return false
	}
	hz := 1e6 * float64(s.row.Cycles) / s.head.us
	return s.head.us >= hour || s.has&hasRow != 0 && (hz < minHz || hz > maxHz)
}

// frequency narrows the frequency of the clock down. A length is rounded down to a
// microsecond, so that the longest iteration tells most.
func (t *thread) frequency(us float64, cycles uint64) {
	low, high := 1e6*float64(cycles)/(us+1), 1e6*float64(cycles)/us
	if us > 0 && (us > t.hzFrom || us == t.hzFrom && low > t.hzLow) {
		t.hzFrom, t.hzLow, t.hzHigh = us, low, high
	}
}

func (f *fillStats) see(s *slot) {
	fill := s.row.QueueFill
	f.any++
	switch {
	case fill > f.most:
		f.most, f.count, f.cycles, f.reported = fill, 0, 0, 0
	case fill < f.most:
		return
	}
	f.count++
	f.cycles += s.row.Cycles
	if s.has&hasHeader != 0 {
		f.reported++
	}
}

// flush books everything.
func (t *thread) flush() {
	for i := range t.ring {
		if s := &t.ring[i]; s.has != 0 {
			t.commit(s)
			*s = slot{}
		}
	}
}

// A kept is an iteration that may be shown.
type kept struct {
	slot
	thread *thread
	class  class
	kind   Kind
	lost   float64 // us
	index  int     // in Result.Stalls
	key    float64 // what decides whether it is kept: cycles, or what would be them at assumedHz
}

// reasons returns the reasons of its report, if there is one.
func (k *kept) reasons() []string {
	if k.head == nil {
		return nil
	}
	return k.head.reasons
}

// said returns the causes that its report names.
func (k *kept) said() string {
	if k.head == nil {
		return ""
	}
	return k.head.said
}

// more returns what its flight record says, if there is one.
func (k *kept) more() *flight {
	if k.head == nil {
		return nil
	}
	return k.head.more
}

// assumedHz is the frequency with which iterations are compared whose own isn't known;
// it only decides which of more than MaxStalls are kept.
const assumedHz = 2e9

func (a *kept) less(b *kept) bool { return a.before(b.key, b.row.Iteration, b.thread.name) }

// before is less for a stall that is none yet. Where keys are equal any order will do
// that doesn't depend on that of the evidence.
func (a *kept) before(key float64, iteration uint64, name string) bool {
	switch {
	case a.key != key:
		return a.key < key
	case a.row.Iteration != iteration:
		return a.row.Iteration > iteration
	}
	return a.thread.name > name
}

// A stallHeap has the least stall first. The keys are in it, as looking them up is what
// takes the time.
type stallHeap []heapItem

type heapItem struct {
	key float64
	*kept
}

func (h stallHeap) Len() int { return len(h) }
func (h stallHeap) Less(i, k int) bool {
	if h[i].key != h[k].key {
		return h[i].key < h[k].key
	}
	return h[i].less(h[k].kept)
}
func (h stallHeap) Swap(i, k int) { h[i], h[k] = h[k], h[i] }

// sink brings the first to its place: [heap.Fix] of it without calls through an interface.
func (h stallHeap) sink() {
	for i := 0; ; {
		least := 2*i + 1
		if least >= len(h) {
			return
		}
		if other := least + 1; other < len(h) && h.Less(other, least) {
			least = other
		}
		if !h.Less(least, i) {
			return
		}
		h.Swap(i, least)
		i = least
	}
}

func (h *stallHeap) Push(x any) { *h = append(*h, x.(heapItem)) }
func (h *stallHeap) Pop() any   { return nil } // nobody does

// keep keeps an iteration if it is among the longest.
func (c *Case) keep(t *thread, s *slot, cl class) {
	key := float64(s.row.Cycles)
	if s.has&hasRow == 0 {
		key = s.head.us * assumedHz / 1e6
	}
	full := len(c.heap) >= MaxStalls
	if full && (key < c.heap[0].key || !c.heap[0].before(key, s.row.Iteration, t.name)) { // nearly all of a long log: nothing is allocated
		t.rest(s, cl)
		return
	}
	c.hold(s.hood)
	if full {
		k := c.heap[0].kept
		k.thread.rest(&k.slot, k.class)
		c.release(k.hood)
		*k = kept{slot: *s, thread: t, class: cl, key: key} // in the place of the least
		c.heap[0].key = key
		c.heap.sink()
	} else {
		heap.Push(&c.heap, heapItem{key, &kept{slot: *s, thread: t, class: cl, key: key}})
	}
	if len(c.heap) >= MaxStalls {
		c.bar = max(c.bar, c.heap[0].key)
	}
	for c.rows > maxRows { // what they share is freed with the last of them
		c.thin()
	}
}

// hold and release count the rows of the neighborhoods that are kept.
func (c *Case) hold(h *hood) {
	if h == nil {
		return
	}
	if h.refs++; h.refs == 1 {
		c.rows += len(h.rows)
	}
}

func (c *Case) release(h *hood) {
	if h == nil {
		return
	}
	if h.refs--; h.refs == 0 {
		c.rows -= len(h.rows)
	}
}

// thin takes the neighborhoods of the shorter half of the stalls that have one.
func (c *Case) thin() {
	var with []*kept
	for _, item := range c.heap {
		if item.hood != nil {
			with = append(with, item.kept)
		}
	}
	slices.SortFunc(with, func(a, b *kept) int {
		if a.less(b) {
			return -1
		}
		return 1
	})
	half := with[:(len(with)+1)/2]
	for _, k := range half {
		c.release(k.hood)
		k.hood = nil
	}
	c.bar = max(c.bar, half[len(half)-1].key)
}

// rest sums up an iteration that is not kept.
func (t *thread) rest(s *slot, c class) {
	if s.has&hasHeader != 0 {
		add(&t.restUs[c], uint64(s.head.us))
		return
	}
	if s.row.Cycles >= never {
		add(&t.restCycles[c], s.row.Cycles)
	}
}

// never is how many cycles are no stall under any threshold that makes sense: 10 us at
// 2 GHz. Where more than MaxStalls are kept, unreported rows below aren't even counted.
const never = 20_000
