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
