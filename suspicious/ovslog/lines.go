package ovslog

import (
	"bytes"
	"io"
)

const (
	// maxLine is how much of a line is looked at. A table of 1000 rows whose line
	// ends became "\n" is 115 kB long.
	maxLine   = 1 << 20
	minBuffer = 1 << 18 // more than Decode's, so that it reads past it
)

// lines cuts the input into lines. They are in a buffer that grows up to maxLine, or
// where chunks of whole lines are read ahead, in those.
type lines struct {
	r          io.Reader
	ahead      *ahead // of r, nil for none
	own        []byte // the buffer that grows
	buf        []byte // it, or the text of a chunk
	start, end int
	eof        bool
	err        error   // why the input ended, nil for its end
	rows       []rowAt // of the chunk
	parsed     bool    // there are no others in buf
	now        Row     // the one read last, if it is not of a chunk
	number     int     // of the line returned last
	midLine    bool    // the next piece goes on with the same line
	skipping   bool    // the rest of an overlong line is to be skipped
}

func newLines(r io.Reader) *lines {
	own := make([]byte, minBuffer)
	return &lines{r: r, own: own, buf: own}
}

// peek returns the beginning of the input.
func (l *lines) peek() []byte {
	for l.end < minBuffer && l.fill() {
	}
	return l.buf[l.start:l.end]
}

// readAhead has the rest of the input be read in a goroutine of its own if it is long.
// close ends that.
func (l *lines) readAhead() {
	whole := bytes.LastIndexByte(l.buf[:l.end], '\n') + 1
	if l.eof || whole == 0 {
		return
	}
	l.ahead = startAhead(l.r, l.buf[whole:l.end])
	l.r, l.end = l.ahead, whole
}

func (l *lines) close() {
	if l.ahead != nil {
		l.ahead.close()
	}
}

// fill reads more and reports whether it could.
func (l *lines) fill() bool {
	if l.eof {
		return false
	}
	if l.ahead != nil && l.start == l.end {
		c := l.ahead.take()
		l.buf, l.start, l.end = c.text, c.used, len(c.text)
		l.rows, l.parsed = c.rows, true
		c.used = len(c.text)
		l.ended(c.err)
		return l.start < l.end
	}
	if l.start > 0 || l.parsed {
		if l.end-l.start > len(l.own) {
			l.own = make([]byte, l.end-l.start)
		}
		l.end = copy(l.own, l.buf[l.start:l.end])
		l.buf, l.start = l.own, 0
		l.rows, l.parsed = nil, false
	}
	if l.end == len(l.buf) {
		if len(l.buf) >= maxLine {
			return false
		}
		l.own = append(l.buf, make([]byte, len(l.buf))...)
		l.buf = l.own
	}
	for range 100 {
		n, err := l.r.Read(l.buf[l.end:])
		l.end += n
		l.ended(err)
		if n > 0 || err != nil {
			return n > 0
		}
	}
	l.ended(io.ErrNoProgress)
	return false
}

// ended notes that the input ends behind what was read, if err is not nil.
func (l *lines) ended(err error) {
	if err != nil {
		l.eof = true
		if err != io.EOF {
			l.err = err
		}
	}
}

// row returns the next line if it is a row as Open vSwitch writes it and wholly in the
// buffer, and else nil. It is valid until the next call of row or next.
func (l *lines) row() *Row {
	if l.midLine || l.skipping || l.start == l.end && !l.fill() {
		return nil
	}
	for len(l.rows) > 0 && l.rows[0].at < l.start {
		l.rows = l.rows[1:]
	}
	row := &l.now
	switch {
	case len(l.rows) > 0 && l.rows[0].at == l.start:
		row = &l.rows[0].Row
	case l.parsed || !beginsRow(l.buf[l.start:l.end], row):
		return nil
	}
	l.start += rowLen + 1
	l.number++
	return row
}

// beginsRow reports whether a line that is a row as Open vSwitch writes it is what b begins
// with, and parses it.
func beginsRow(b []byte, row *Row) bool {
	return len(b) > rowLen && b[rowLen] == '\n' && parseRow(b[:rowLen], row)
}

// next returns the next line without its end; it is valid until the next call. A
// line that is longer than the buffer comes in pieces, cut at line ends that were
// written as something else; where there is none, cut is true and the rest of the
// line is lost. It returns false at the end of the input.
func (l *lines) next() (line []byte, cut, ok bool) {
	searched := 0 // bytes known to hold no line end
	for {
		b := l.buf[l.start:l.end]
		if i := bytes.IndexByte(b[searched:], '\n'); i >= 0 {
			i += searched
			l.start += i + 1
			searched = 0
			if l.skipping {
				l.skipping = false
				continue
			}
			l.count()
			l.midLine = false
			return b[:i], false, true
		}
		if l.skipping {
			l.start = l.end
			searched = 0
			if !l.fill() {
				return nil, false, false
			}
			continue
		}
		searched = len(b)
		if l.fill() {
			continue
		}
		b = l.buf[l.start:l.end]
		if len(b) == 0 {
			return nil, false, false
		}
		l.count()
		if l.eof {
			l.start = l.end
			return b, false, true
		}
		// The buffer is full.
		l.midLine = true
		if i := lastBreak(b); i > 0 {
			l.start += i
			return b[:i], false, true
		}
		l.start = l.end
		l.midLine, l.skipping = false, true
		return b, true, true
	}
}

func (l *lines) count() {
	if !l.midLine {
		l.number++
	}
}

// lastBreak returns the end of the last line end that is not a '\n', or 0.
func lastBreak(b []byte) int {
	last := 0
	for _, sep := range []string{`\n`, "#012", `\012`, "\r", "<br>"} {
		if i := bytes.LastIndex(b, []byte(sep)); i >= 0 {
			last = max(last, i+len(sep))
		}
	}
	return last
}
