package evidence

import "github.com/pmdperf/pmdperf/suspicious/ovslog"

// A log is parsed and investigated by a goroutine each, beside the one in which ovslog reads
// ahead. They hand over many events at a time, in memory that is used again.

const (
	ahead       = 4     // batches under way
	batchEvents = 1024  // events in one, or
	batchRows   = 12288 // rows of their tables
)

// A batch is records in their order, and what they point to.
type batch struct {
	records []ovslog.Record
	events  []ovslog.Event
	rows    []ovslog.Row
}

// add adds a record; of an event a copy, as its reader uses it again.
func (b *batch) add(rec ovslog.Record) {
	ev, ok := rec.(*ovslog.Event)
	if !ok {
		b.records = append(b.records, rec)
		return
	}
	if b.events == nil {
		b.events = make([]ovslog.Event, 0, batchEvents)
	}
	at := len(b.rows)
	b.rows = append(b.rows, ev.Table...)
	b.events = append(b.events, *ev)
	own := &b.events[len(b.events)-1]
	own.Table = b.rows[at:len(b.rows):len(b.rows)]
	b.records = append(b.records, own)
}

// full reports whether another event may find no room where the batch is.
func (b *batch) full() bool {
	return len(b.events) == batchEvents || len(b.records) >= 2*batchEvents || len(b.rows) > batchRows
}

// eachRecord calls f for every record of a log, which is parsed in a goroutine of its
// own. A record is valid until f returns.
func eachRecord(log *ovslog.Reader, f func(ovslog.Record)) {
	full, free := make(chan *batch, ahead), make(chan *batch, ahead)
	for range ahead {
		free <- new(batch)
	}
	go func() {
		defer close(full)
		b := <-free
		for rec := range log.Records() {
			if b.add(rec); b.full() {
				full <- b
				b = <-free
			}
		}
		full <- b
	}()
	for b := range full {
		for _, rec := range b.records {
			f(rec)
		}
		clear(b.records)
		b.records, b.events, b.rows = b.records[:0], b.events[:0], b.rows[:0]
		free <- b
	}
}
