package ovslog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// maxLine is how much of a line is looked at. A table of 1000 rows whose line
	// ends became "\n" is 115 kB long.
	maxLine   = 1 << 20
	minBuffer = 1 << 18 // more than decode's, so that it reads past it
	// maxLayers is how many times the whole input may be compressed or encoded.
	maxLayers = 4
	sniffed   = 1024 // bytes, enough to know UTF-16 without its mark
)

// Decode undoes what was done to the input as a whole: gzip, UTF-16. All of it
// streams, so that a small file that unpacks to a huge one costs time, not memory. A
// Reader does it itself; it is for those who look at the text first.
func Decode(r io.Reader) (io.Reader, error) {
	for range maxLayers {
		b := bufio.NewReaderSize(r, 1<<16)
		head, err := b.Peek(sniffed)
		if err != nil && err != io.EOF {
			// What there is can be read; the error comes again after it.
			return b, nil
		}
		order, marked, ok := utf16Order(head)
		switch {
		case len(head) >= 3 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8:
			z, err := gzip.NewReader(b)
			if err != nil {
				return nil, fmt.Errorf("gzip: %w", err)
			}
			r = z
		case ok:
			if marked {
				if _, err := b.Discard(2); err != nil {
					return nil, err
				}
			}
			r = &utf16Reader{r: b, order: order}
		default:
			return b, nil
		}
	}
	return r, nil
}

// utf16Order tells the byte order of UTF-16 from its mark or, for want of one, from
// where the zero bytes of mostly ASCII text are.
func utf16Order(head []byte) (order binary.ByteOrder, marked, ok bool) {
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		return binary.LittleEndian, true, true
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return binary.BigEndian, true, true
	}
	var zeros [2]int
	for i, c := range head {
		if c == 0 {
			zeros[i&1]++
		}
	}
	half := len(head) / 2
	switch {
	case half < 8:
	case zeros[0] == 0 && zeros[1] > half*9/10:
		return binary.LittleEndian, false, true
	case zeros[1] == 0 && zeros[0] > half*9/10:
		return binary.BigEndian, false, true
	}
	return nil, false, false
}

// A utf16Reader turns UTF-16 into UTF-8.
type utf16Reader struct {
	r     *bufio.Reader
	order binary.ByteOrder
	rest  []byte // of a character that found no place
	room  [utf8.UTFMax]byte
	err   error
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	for n < len(p) && u.err == nil {
		var c rune
		if c, u.err = u.next(); u.err != nil {
			break
		}
		if len(p)-n >= utf8.UTFMax {
			n += utf8.EncodeRune(p[n:], c)
			continue
		}
		u.rest = u.room[:utf8.EncodeRune(u.room[:], c)]
		m := copy(p[n:], u.rest)
		u.rest = u.rest[m:]
		n += m
	}
	if n > 0 {
		return n, nil
	}
	if len(p) == 0 {
		return 0, nil
	}
	return 0, u.err
}

func (u *utf16Reader) next() (rune, error) {
	c, err := u.unit()
	if err != nil || !utf16.IsSurrogate(c) {
		return c, err
	}
	b, err := u.r.Peek(2)
	if err != nil {
		return utf8.RuneError, nil
	}
	both := utf16.DecodeRune(c, rune(u.order.Uint16(b)))
	if both != utf8.RuneError {
		_, err = u.r.Discard(2)
	}
	return both, err
}

func (u *utf16Reader) unit() (rune, error) {
	var b [2]byte
	for i := range b {
		c, err := u.r.ReadByte()
		if err != nil {
			return 0, err
		}
		b[i] = c
	}
	return rune(u.order.Uint16(b[:])), nil
}

// lines cuts the input into lines in a buffer that grows up to maxLine.
type lines struct {
	r          io.Reader
	buf        []byte
	start, end int
	eof        bool
	err        error // why the input ended, nil for its end
	number     int   // of the line returned last
	midLine    bool  // the next piece goes on with the same line
	skipping   bool  // the rest of an overlong line is to be skipped
}

func newLines(r io.Reader) *lines {
	return &lines{r: r, buf: make([]byte, minBuffer)}
}

// fill reads more and reports whether it could.
func (l *lines) fill() bool {
	if l.eof {
		return false
	}
	if l.start > 0 {
		l.end = copy(l.buf, l.buf[l.start:l.end])
		l.start = 0
	}
	if l.end == len(l.buf) {
		if len(l.buf) >= maxLine {
			return false
		}
		l.buf = append(l.buf, make([]byte, len(l.buf))...)
	}
	for range 100 {
		n, err := l.r.Read(l.buf[l.end:])
		l.end += n
		if err != nil {
			l.eof = true
			if err != io.EOF {
				l.err = err
			}
		}
		if n > 0 || err != nil {
			return n > 0
		}
	}
	l.eof, l.err = true, io.ErrNoProgress
	return false
}

// peek returns the beginning of the input.
func (l *lines) peek() []byte {
	for l.end < minBuffer && l.fill() {
	}
	return l.buf[l.start:l.end]
}

// row reads the next line if it is a row as Open vSwitch writes it and wholly in the
// buffer. It is next and parseRow in one, for speed.
func (l *lines) row(row *Row) bool {
	b := l.buf[l.start:l.end]
	if len(b) <= rowLen || b[rowLen] != '\n' || l.midLine || l.skipping || !parseRow(b[:rowLen], row) {
		return false
	}
	l.start += rowLen + 1
	l.number++
	return true
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
