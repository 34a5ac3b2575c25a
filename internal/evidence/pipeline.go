package evidence

import (
	"io"

	"github.com/pmdperf/pmdperf/suspicious/ovslog"
)

// A log is read, parsed and investigated by a goroutine each, as each takes a third of
// the time. They hand over many lines or events at a time, in buffers that are used
// again; the buffers are large, as a processor that others use too is slow to be had.

const (
	ahead       = 4     // buffers under way
	batchEvents = 1024  // events in one, or
	batchRows   = 12288 // rows of their tables
)

// readAhead returns a reader of what s lets pass, which it reads in a goroutine of its own.
// It must be read to its end.
func readAhead(s *shows) io.Reader {
	a := &aheadReader{full: make(chan aheadBuffer, ahead), free: make(chan []byte, ahead)}
	for range ahead {
		a.free <- nil // made when it is needed
	}
	go func() {
		defer close(a.full)
		for buf := range a.free {
			if buf == nil {
				buf = make([]byte, chunk)
			}
			text, used, err := s.next(buf)
			a.full <- aheadBuffer{text, used, err}
			if err != nil {
				return
			}
		}
	}()
	return a
}

type aheadReader struct {
	full chan aheadBuffer
	free chan []byte
	now  aheadBuffer
}

type aheadBuffer struct {
	text []byte // not read yet
	buf  []byte // to be used again
	err  error  // after the text
}

func (a *aheadReader) Read(p []byte) (int, error) {
	for len(a.now.text) == 0 {
		if a.now.err != nil {
			return 0, a.now.err
		}
		if a.now.buf != nil {
			a.free <- a.now.buf
		}
		a.now = <-a.full
	}
	n := copy(p, a.now.text)
	a.now.text = a.now.text[n:]
	return n, nil
}

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
