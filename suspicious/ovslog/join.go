package ovslog

import (
	"slices"
	"time"
)

const (
	maxThreads  = 128
	maxPending  = 1024 // headers of a thread that wait for their table; Open vSwitch's history holds 1000
	maxNameless = 16   // headers without a thread that do
	maxRows     = 2048 // of a table
	maxOpen     = 8    // tables whose rows may be interleaved
	window      = 1000 // iterations that header and table may be apart
)

// A thread is what is known of one of the log's threads.
type thread struct {
	name    string
	core    int
	pending []Event // headers whose table may still come, oldest first
	open    *table  // rows may still come
	waiting *table  // newest first only: whose header may still come

	epoch    int
	known    bool // the following are known
	lastIter uint64
	lastTime time.Time
	lastSeq  uint64
	unread   int // lines that could not be read, up to then

	recent [8]seen // the last headers, to know a repeated one
	next   int
	said   tableKey // the table closed last
}

type seen struct {
	seq, iteration, duration uint64
}

type tableKey struct {
	seq, first, last uint64
	rows             int
}

// A table is being read.
type table struct {
	thread  *thread // nil if its first line is lost
	rows    []Row
	seq     uint64
	time    time.Time
	line    int
	order   order
	under   bool    // a heading stands under its rows
	mixed   bool    // its rows and those of another one alternate
	twice   bool    // told already
	above   *thread // of the header just before it
	guessed bool    // whose it is, and only a header's iteration can confirm it
}

// order is that of rows or messages.
type order int

const (
	unknown order = iota
	newestFirst
	oldestFirst
)

func (t *table) last() uint64 { return t.rows[len(t.rows)-1].Iteration }

func (r *Reader) thread(name []byte) *thread {
	if r.same != nil && r.same.name == string(name) {
		return r.same
	}
	if t, ok := r.threads[string(name)]; ok {
		r.same = t
		return t
	}
	if len(r.threads) >= maxThreads {
		r.flush()
		clear(r.threads)
		r.all = nil
		r.current, r.above, r.same = nil, nil, nil
	}
	t := &thread{name: string(name)}
	t.core = Core(t.name)
	r.threads[t.name] = t
	r.all = append(r.all, t)
	return t
}

// message notes that a thread logged something, which ends its table.
func (r *Reader) message(t *thread, o Origin) {
	if t.open != nil {
		r.close(t.open)
	}
	if i := slices.IndexFunc(r.open, func(tab *table) bool { return tab.above == t && tab.thread != nil && tab.thread.name == "" }); i >= 0 {
		r.close(r.open[i])
	}
	r.above = nil
	if o.Seq == 0 || t.core < 0 && !isOldPMD(t.name) {
		return
	}
	if t.lastSeq != 0 {
		missing := uint64(0)
		switch {
		case r.order == newestFirst && o.Seq < t.lastSeq && t.lastSeq-o.Seq < 1<<32:
			missing = t.lastSeq - o.Seq - 1
		case r.order != newestFirst && o.Seq > t.lastSeq:
			missing = o.Seq - t.lastSeq - 1
		}
		// A line that can't be read may be such a message.
		if missing > uint64(r.stats.Unread-t.unread) {
			r.gap(o, missing)
		}
	}
	t.lastSeq, t.unread = o.Seq, r.stats.Unread
}

func (r *Reader) gap(o Origin, missing uint64) {
	r.emit(&Gap{Origin: o, Missing: missing})
}

// isOldPMD knows the threads "pmd12" of old versions.
func isOldPMD(name string) bool {
	return len(name) > len("pmd") && name[:3] == "pmd" && isDigit(name[3])
}

// header takes a header.
func (r *Reader) header(t *thread, o Origin, h *header) {
	key := seen{o.Seq, h.iteration, h.duration}
	if slices.Contains(t.recent[:], key) && (o.Seq != 0 || t.recent[(t.next+len(t.recent)-1)%len(t.recent)] == key) {
		r.stats.Repeated++
		return
	}
	t.recent[t.next] = key
	t.next = (t.next + 1) % len(t.recent)
	r.message(t, o)
	r.countEpoch(t, o, h.iteration)
	ev := Event{Origin: o, Core: t.core, Epoch: t.epoch, Reasons: r.reasons(h.reason), Iteration: h.iteration, Duration: h.duration, Began: h.began, Causes: string(h.causes), Culprit: -1, HasHeader: true}
	r.above = t
	// Where the newest message comes first, the table has already been.
	if tab, i := r.waiting(t, h.iteration); tab != nil {
		r.event = ev // which so needs no memory of its own
		r.tell(&r.event, tab, i)
		tab.twice = true // told
		return
	}
	// The header of a table that waits for it would have come by now.
	if tab := t.waiting; tab != nil && h.iteration > tab.rows[0].Iteration && t.name != "" {
		t.waiting = nil
		r.drop(tab)
	}
	// Whose table can't come any more, goes first.
	n := 0
	for n < len(t.pending) && t.stale(&t.pending[n], h.iteration, len(t.pending)-n) {
		r.tell(&t.pending[n], nil, -1)
		n++
	}
	t.pending = append(t.pending[:0], t.pending[n:]...)
	t.pending = append(t.pending, ev)
}

// waiting returns the table without header that has an iteration, and the row: one of
// the thread, or one of which it isn't known for sure whose it is.
func (r *Reader) waiting(t *thread, iteration uint64) (*table, int) {
	if t.waiting != nil {
		if i := t.waiting.find(iteration); i >= 0 {
			return t.waiting, i
		}
	}
	for _, other := range r.all {
		if tab := other.waiting; tab != nil && (other.name == "" || tab.guessed) {
			if i := tab.find(iteration); i >= 0 {
				return tab, i
			}
		}
	}
	return nil, -1
}

// stale reports whether the table of the oldest of n headers can't come any more when
// there is a header of another iteration. Lines without a prefix may be of several
// threads.
func (t *thread) stale(ev *Event, iteration uint64, n int) bool {
	if t.name == "" {
		return n >= maxNameless
	}
	return apart(ev.Iteration, iteration) > window || ev.Epoch != t.epoch || n >= maxPending
}

// countEpoch notices that a thread's iterations started anew.
func (r *Reader) countEpoch(t *thread, o Origin, iteration uint64) {
	if t.known && iteration != t.lastIter {
		back := iteration < t.lastIter
		if r.order == newestFirst {
			back = iteration > t.lastIter
		}
		later := o.Time.Compare(t.lastTime)
		if r.order == newestFirst {
			later = -later
		}
		if back && (later >= 0 || o.Time.IsZero()) {
			t.epoch++
		}
	}
	t.known, t.lastIter, t.lastTime = true, iteration, o.Time
}

// neighborhood takes the first line of a table.
func (r *Reader) neighborhood(t *thread, o Origin) {
	// Where it stands under its rows, they have made a table by now if it comes again.
	again := t.open != nil && t.open.seq == o.Seq || r.order == newestFirst && t.said.seq == o.Seq && t.lastSeq == o.Seq
	if again && o.Seq != 0 {
		r.stats.Repeated++
		return
	}
	above := r.above
	r.message(t, o)
	if o.Seq == 0 && t.name == "" {
		r.above = above
	}
	if tab := r.turned(t); tab != nil {
		r.order = newestFirst
		tab.guessed = tab.mixed
		tab.thread, tab.seq, tab.time, tab.line = t, o.Seq, o.Time, o.Line
		t.open = tab
		r.close(tab)
		return
	}
	r.start(t, o)
}

// turned returns the rows that stood before the first line of their own table: just
// before it, or at least before a heading.
func (r *Reader) turned(t *thread) *table {
	var best *table
	for _, tab := range r.open {
		switch {
		case tab.thread != nil || tab.order == newestFirst || len(tab.rows) == 0:
		case r.order != newestFirst && !tab.under && tab.order != oldestFirst:
		case !tab.under && tab != r.current:
		case best == nil || tab.under && !best.under:
			best = tab
		case best.under && !tab.under:
		case !t.known && tab == r.current || t.known && apart(tab.last(), t.lastIter) < apart(best.last(), t.lastIter):
			best = tab
		}
	}
	return best
}

// start opens a table of a thread, nil if it isn't known.
func (r *Reader) start(t *thread, o Origin) *table {
	if len(r.open) >= maxOpen {
		r.close(r.open[0])
	}
	tab := r.newTable()
	tab.above = r.above
	tab.thread, tab.seq, tab.time, tab.line = t, o.Seq, o.Time, o.Line
	if t != nil {
		t.open = tab
	}
	r.open = append(r.open, tab)
	r.current = tab
	return tab
}

func (r *Reader) newTable() *table {
	if n := len(r.free); n > 0 {
		tab := r.free[n-1]
		r.free = r.free[:n-1]
		*tab = table{rows: tab.rows[:0]}
		return tab
	}
	return &table{}
}

// heading takes the line of the columns' names. It may stand under rows, those just
// before it or, if lines of several threads are interleaved, others.
func (r *Reader) heading() {
	under := func(tab *table) bool {
		return tab != nil && tab.thread == nil && len(tab.rows) > 0 && !tab.under
	}
	if under(r.current) {
		r.current.under = true
	} else if i := slices.IndexFunc(r.open, under); i >= 0 && (r.order == newestFirst || r.open[i].order == oldestFirst) {
		r.open[i].under = true
	}
}

// row takes a row. Most go under the one before. A row of zeros is none: a place in
// the thread's history that nothing was written to yet.
func (r *Reader) row(row *Row, line int) {
	if row.Cycles == 0 && *row == (Row{}) {
		r.stats.Unfilled++
		return
	}
	if tab := r.current; tab != nil && len(tab.rows) > 0 && len(tab.rows) < maxRows && tab.order != oldestFirst && tab.last() == row.Iteration+1 {
		tab.rows = append(tab.rows, *row)
		tab.order = newestFirst
		return
	}
	tab := r.find(row)
	if tab == nil {
		for _, tab := range r.open {
			if i := slices.Index(tab.rows, *row); i >= 0 {
				r.stats.Repeated++
				return
			}
		}
		// A table without its first line: that of the header above it, if it is near.
		var t *thread
		if a := r.above; r.order != newestFirst && a != nil && a.open == nil && len(a.pending) > 0 && apart(a.pending[len(a.pending)-1].Iteration, row.Iteration) <= window {
			t = a
		}
		tab = r.start(t, Origin{Line: line})
		tab.guessed = true
	}
	if c := r.current; c != nil && c != tab && c.thread == nil && tab.thread == nil && len(tab.rows) > 0 {
		c.mixed, tab.mixed = true, true
	}
	r.current = tab
	if n := len(tab.rows); n > 0 {
		if tab.rows[n-1] == *row {
			r.stats.Repeated++
			return
		}
		tab.order = newestFirst
		if row.Iteration > tab.last() {
			tab.order = oldestFirst
		}
	}
	tab.rows = append(tab.rows, *row)
}

// fits reports whether a row that was put together can be one of a table under way or
// belong to a header that has none yet; if there is neither, all rows fit.
func (r *Reader) fits(row *Row) bool {
	any := false
	for _, tab := range r.open {
		if len(tab.rows) == 0 || apart(tab.last(), row.Iteration) <= window {
			return true
		}
		any = true
	}
	for _, t := range r.all {
		for i := range t.pending {
			if apart(t.pending[i].Iteration, row.Iteration) <= window {
				return true
			}
			any = true
		}
	}
	return !any
}

// find returns the open table that a row goes on with. Rows don't say whose they
// are, and several threads may write at once; but iterations of a table follow each
// other, one being left out only at a reload.
func (r *Reader) find(row *Row) *table {
	var best *table
	bestAt := uint64(3)
	for _, tab := range r.open {
		if len(tab.rows) == 0 || len(tab.rows) >= maxRows {
			continue
		}
		d := apart(tab.last(), row.Iteration)
		falls := row.Iteration < tab.last()
		if d == 0 && tab.rows[len(tab.rows)-1] != *row || d > 0 && (falls && tab.order == oldestFirst || !falls && tab.order == newestFirst) {
			continue
		}
		if d > 0 && !falls && tab.thread != nil {
			continue // only what precedes its first line can be the wrong way round
		}
		if d < bestAt {
			best, bestAt = tab, d
		}
	}
	if best != nil {
		return best
	}
	// The first row of a table, near its header.
	bestAt = window + 1
	for _, tab := range r.open {
		if len(tab.rows) > 0 || tab.thread == nil {
			continue
		}
		for i := range tab.thread.pending {
			if d := apart(tab.thread.pending[i].Iteration, row.Iteration); d < bestAt {
				best, bestAt = tab, d
			}
		}
	}
	if best != nil {
		return best
	}
	tab := r.current
	if tab == nil || len(tab.rows) >= maxRows || tab.thread == nil {
		return nil
	}
	if len(tab.rows) == 0 {
		return tab
	}
	// Rows in between are missing.
	if row.Iteration < tab.last() && tab.last()-row.Iteration <= window {
		return tab
	}
	return nil
}

func apart(a, b uint64) uint64 { return max(a, b) - min(a, b) }

// find returns the index of an iteration's row, or -1.
func (t *table) find(iteration uint64) int {
	// Rows fall by one mostly, so the place is known.
	if len(t.rows) == 0 || iteration > t.rows[0].Iteration {
		return -1
	}
	if i := t.rows[0].Iteration - iteration; i < uint64(len(t.rows)) && t.rows[i].Iteration == iteration {
		return int(i)
	}
	return slices.IndexFunc(t.rows, func(row Row) bool { return row.Iteration == iteration })
}

// close ends a table: no more rows come.
func (r *Reader) close(tab *table) {
	r.open = slices.DeleteFunc(r.open, func(t *table) bool { return t == tab })
	if r.current == tab {
		r.current = nil
	}
	t := tab.thread
	if t != nil {
		t.open = nil
	}
	if len(tab.rows) == 0 {
		r.stats.Empty++
		r.free = append(r.free, tab)
		return
	}
	if tab.order == oldestFirst {
		slices.Reverse(tab.rows)
		tab.order = newestFirst
	}
	if t == nil {
		t = r.thread(nil)
	}
	if a := tab.above; t.name == "" && a != nil && slices.ContainsFunc(a.pending, func(ev Event) bool { return tab.find(ev.Iteration) >= 0 }) {
		t = a
	}
	key := tableKey{tab.seq, tab.rows[0].Iteration, tab.last(), len(tab.rows)}
	again := key == t.said
	t.said = key
	found := false
	kept := t.pending[:0]
	for i := range t.pending {
		ev := &t.pending[i]
		at := tab.find(ev.Iteration)
		if at < 0 {
			kept = append(kept, *ev)
			continue
		}
		// What was logged before it can't get a table any more.
		if t.name != "" {
			for k := range kept {
				r.tell(&kept[k], nil, -1)
			}
			kept = kept[:0]
		}
		r.tell(ev, tab, at)
		found = true
	}
	t.pending = kept
	switch {
	case found:
		r.free = append(r.free, tab)
	case again:
		r.stats.Repeated += len(tab.rows)
		r.free = append(r.free, tab)
	default:
		// Its header may come after it where the newest message comes first.
		if t.waiting != nil {
			r.drop(t.waiting)
		}
		tab.thread = t
		t.waiting = tab
	}
}

// drop tells a table that has no header, unless it was told with one.
func (r *Reader) drop(tab *table) {
	if !tab.twice {
		r.event = Event{Core: -1, Culprit: -1}
		if t := tab.thread; t != nil && !tab.guessed {
			r.event.Thread, r.event.Core, r.event.Epoch = t.name, t.core, t.epoch
		}
		r.tell(&r.event, tab, -1)
	}
	r.free = append(r.free, tab)
}

// tell yields an event, with its table if there is one.
func (r *Reader) tell(ev *Event, tab *table, culprit int) {
	if tab != nil {
		ev.Table, ev.Culprit = tab.rows, culprit
		ev.TableTime, ev.TableSeq, ev.TableLine = tab.time, tab.seq, tab.line
	}
	r.stats.Events++
	r.emit(ev)
}

// flush ends everything that waits for more.
func (r *Reader) flush() {
	for len(r.open) > 0 {
		r.close(r.open[0])
	}
	for _, t := range r.all {
		for i := range t.pending {
			r.tell(&t.pending[i], nil, -1)
		}
		t.pending = nil
		if t.waiting != nil {
			r.drop(t.waiting)
			t.waiting = nil
		}
	}
}
