package ovslog

import (
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// randomLines returns lines of all kinds that matter to how they are cut: rows, text, empty
// ones, and some that are longer than a chunk.
func randomLines(rnd *rand.Rand, size int) (text []byte) {
	ev := Event{Table: make([]Row, 1), Culprit: -1}
	for len(text) < size {
		switch rnd.IntN(20) {
		case 0:
			text = append(text, '\n')
		case 1, 2:
			text = append(text, strings.Repeat("x", rnd.IntN(200))...)
			text = append(text, '\n')
		case 3:
			if rnd.IntN(300) == 0 {
				text = append(text, strings.Repeat("y", chunkSize/2+rnd.IntN(chunkSize))...)
				text = append(text, '\n')
			}
		default:
			ev.Table[0] = Row{Iteration: rnd.Uint64N(1e6), Cycles: rnd.Uint64N(1e9), Packets: rnd.Uint64N(40)}
			table := ev.Append(nil, TwoMessages)
			text = append(text, table[bytes.LastIndexByte(table[:len(table)-1], '\n')+1:]...)
		}
	}
	return append(text, "an end without a line end"...)
}

// TestLines cuts long inputs, as they come in pieces of all sizes, into the lines that
// there are.
func TestLines(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	rows := 0
	for i := range 12 {
		text := randomLines(rnd, 5*chunkSize)
		var src io.Reader = bytes.NewReader(text)
		switch i % 4 {
		case 1:
			src = iotest.DataErrReader(src)
		case 2:
			src = iotest.HalfReader(src)
		case 3:
			src = &pieces{src, rnd}
		}
		l := newLines(src)
		l.peek()
		if i%6 != 5 { // else as short inputs are read
			l.readAhead()
		}
		at := 0
		for want := range bytes.Lines(text) {
			want = bytes.TrimSuffix(want, []byte("\n"))
			var wanted Row
			isRow := len(want) == rowLen && parseRow(want, &wanted)
			// Where all rows are to be found, or one is missed, doesn't depend on the pieces.
			if row := l.row(); row != nil {
				if rows++; !isRow || *row != wanted {
					t.Fatalf("%d: at %d of %d: row %+v of %q", i, at, len(text), row, want)
				}
			} else if line, cut, ok := l.next(); !ok || cut || !bytes.Equal(line, want) {
				t.Fatalf("%d: at %d of %d: %.40q of %d bytes, %v, %v, want %.40q of %d", i, at, len(text), line, len(line), cut, ok, want, len(want))
			}
			at += len(want) + 1
		}
		if line, _, ok := l.next(); ok || l.err != nil {
			t.Errorf("%d: %q, %v after the end", i, line, l.err)
		}
		if n := bytes.Count(text, []byte("\n")) + 1; l.number != n {
			t.Errorf("%d: %d lines, want %d", i, l.number, n)
		}
		l.close()
	}
	if rows < 100_000 {
		t.Errorf("only %d rows were read as such", rows)
	}
}

// TestLinesEndEarly has an input break off in what is read ahead.
func TestLinesEndEarly(t *testing.T) {
	text := randomLines(rand.New(rand.NewPCG(3, 4)), 2*chunkSize)
	l := newLines(io.MultiReader(bytes.NewReader(text), iotest.ErrReader(io.ErrUnexpectedEOF)))
	l.peek()
	l.readAhead()
	var got []byte
	for {
		line, _, ok := l.next()
		if !ok {
			break
		}
		got = append(append(got, line...), '\n')
	}
	if !bytes.Equal(got, append(slices.Clone(text), '\n')) || l.err != io.ErrUnexpectedEOF {
		t.Errorf("%d of %d bytes before %v", len(got), len(text), l.err)
	}
}

// pieces reads as much as it likes.
type pieces struct {
	r   io.Reader
	rnd *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) {
	return p.r.Read(b[:min(len(b), p.rnd.IntN(100_000))])
}
