package ovslog

import (
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
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
		at, rows, missed := 0, 0, 0
		for want := range bytes.Lines(text) {
			want = bytes.TrimSuffix(want, []byte("\n"))
			var wanted Row
			isRow := len(want) == rowLen && parseRow(want, &wanted)
			if row := l.row(); row != nil {
				if rows++; !isRow || *row != wanted {
					t.Fatalf("%d: at %d of %d: row %+v of %q", i, at, len(text), row, want)
				}
				at += len(want) + 1
				continue
			}
			// One that is not wholly in the buffer is read as any other line.
			if isRow {
				missed++
			}
			if line, cut, ok := l.next(); !ok || cut || !bytes.Equal(line, want) {
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
		// Of those that come in small pieces without being read ahead, many are cut.
		if rows < 7000 || missed > 50 && i%6 != 5 {
			t.Errorf("%d: %d rows were read as such, and %d were not", i, rows, missed)
		}
		l.close()
	}
}

// TestAheadEnds has a loop over records end early: no more is read then.
func TestAheadEnds(t *testing.T) {
	text := samples(t)["idle-hog"]
	src := &gated{r: &repeat{text: text, n: 100 * chunkSize / len(text)}, gate: make(chan struct{})}
	for range NewReader(src).Records() {
		break
	}
	before := src.reads.Load()
	close(src.gate)
	time.Sleep(50 * time.Millisecond)
	if n := src.reads.Load() - before; before == 0 || n > 1 {
		t.Errorf("%d reads after the end, %d before", n, before)
	}
}

// gated has all reads but the first wait until its gate is open.
type gated struct {
	r     io.Reader
	reads atomic.Int64
	begun int
	gate  chan struct{}
}

func (g *gated) Read(b []byte) (int, error) {
	if g.begun > minBuffer {
		<-g.gate
	}
	g.reads.Add(1)
	n, err := g.r.Read(b)
	g.begun += n
	return n, err
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
