package ovslog

import (
	"bytes"
	"io"
)

const (
	chunkSize = 1 << 19
	chunks    = 4 // under way; large and few, as a processor that others use too is slow to be had
)

// A chunk is some of the input: whole lines, unless one is longer, with the rows in them.
type chunk struct {
	room []byte // memory of text
	text []byte
	rows []rowAt // those that are as Open vSwitch writes them
	err  error   // what comes after the text, nil for more
	used int     // bytes of text that were taken
}

// A rowAt is a row, and where its line begins.
type rowAt struct {
	at int
	Row
}

// ahead reads an input, and parses its rows, in a goroutine of its own: that is as much
// work as all the rest.
type ahead struct {
	full, free chan *chunk
	done       chan struct{}
	now        *chunk
}

// startAhead begins with what was already read of the input.
func startAhead(r io.Reader, begun []byte) *ahead {
	a := &ahead{full: make(chan *chunk, chunks), free: make(chan *chunk, chunks), done: make(chan struct{})}
	for range chunks {
		a.free <- new(chunk)
	}
	go a.run(r, bytes.Clone(begun))
	return a
}

// close ends the goroutine, at the latest when the read that is under way has ended.
func (a *ahead) close() { close(a.done) }

func (a *ahead) closed() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

func (a *ahead) run(r io.Reader, begun []byte) {
	var c *chunk
	for (c == nil || c.err == nil) && !a.closed() {
		select {
		case <-a.done:
			return
		case c = <-a.free:
		}
		begun = c.read(r, begun, a.closed)
		a.full <- c // which has room for all
	}
}

// read reads the next chunk, which begins with what is left over of the one before, and
// returns what is left over of this one. It stops between two reads once nobody wants it.
func (c *chunk) read(r io.Reader, begun []byte, unwanted func() bool) (rest []byte) {
	if c.room == nil {
		c.room = make([]byte, chunkSize)
		c.rows = make([]rowAt, 0, chunkSize/(rowLen+1))
	}
	n := copy(c.room, begun)
	whole := 0
	for tries := 0; whole == 0 && n < len(c.room) && c.err == nil && !unwanted(); tries++ {
		var m int
		m, c.err = r.Read(c.room[n:])
		whole = bytes.LastIndexByte(c.room[n:n+m], '\n') + 1
		if whole > 0 {
			whole += n
		}
		if n += m; m > 0 {
			tries = 0
		} else if tries > 100 && c.err == nil {
			c.err = io.ErrNoProgress
		}
	}
	if whole == 0 || c.err != nil {
		whole = n
	}
	c.text, c.used = c.room[:whole], 0
	c.parse()
	return c.room[whole:n]
}

// parse finds the rows.
func (c *chunk) parse() {
	c.rows = c.rows[:0]
	for at := 0; at < len(c.text); {
		var row rowAt
		if beginsRow(c.text[at:], &row.Row) {
			row.at = at
			c.rows = append(c.rows, row)
			at += rowLen + 1
			continue
		}
		end := bytes.IndexByte(c.text[at:], '\n')
		if end < 0 {
			return
		}
		at += end + 1
	}
}

// take returns the chunk that is next, or the one of which something is left. It is valid
// until the next call of take or Read.
func (a *ahead) take() *chunk {
	if a.now != nil && a.now.used < len(a.now.text) {
		return a.now
	}
	if a.now != nil {
		a.free <- a.now // which has room for all
	}
	a.now = <-a.full
	return a.now
}

// Read reads what is next.
func (a *ahead) Read(p []byte) (n int, err error) {
	c := a.take()
	n = copy(p, c.text[c.used:])
	if c.used += n; c.used == len(c.text) {
		err = c.err
	}
	return n, err
}
