package ovslog

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pmdperf/pmdperf/internal/mangle"
	"github.com/pmdperf/pmdperf/internal/need"
)

// repeat reads text n times.
type repeat struct {
	text string
	n    int
	r    strings.Reader
}

func (r *repeat) Read(p []byte) (int, error) {
	if r.r.Len() == 0 {
		if r.n == 0 {
			return 0, io.EOF
		}
		r.n--
		r.r.Reset(r.text)
	}
	return r.r.Read(p)
}

// TestHostile wants bounded memory for input that isn't a log, and that a log after
// it is read.
func TestHostile(t *testing.T) {
	real := samples(t)["idle-sigstop"]
	var junk [1 << 16]byte
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(junk[:])
	for name, text := range map[string]string{
		"letters":     strings.Repeat("x", 1<<16),
		"digits":      strings.Repeat("7", 1<<16),
		"blanks":      strings.Repeat(" ", 1<<16),
		"numbers":     strings.Repeat("1 ", 1<<15),
		"zeros":       string(make([]byte, 1<<16)),
		"junk":        string(junk[:]),
		"escapes":     strings.Repeat(`\n`, 1<<15),
		"headers":     strings.Repeat("Suspicious iteration (", 1<<11),
		"json":        strings.Repeat(`{"log":"`, 1<<13),
		"short lines": strings.Repeat("\n", 1<<16),
		"row pieces":  strings.Repeat("1 2 3\n", 1<<13),
		"rows":        strings.Repeat("   7   1 0 0 0 0 0 0\n   5   1 0 0 0 0 0 0\n", 1<<11),
		"parts":       strings.Repeat("2026-11-30T14:49:54Z stderr P "+strings.Repeat("y", 5000)+"\n", 12),
	} {
		t.Run(name, func(t *testing.T) {
			mb := 4
			switch {
			case need.Long():
				mb = 100
			case name == "letters":
				mb = 20
			}
			n := mb << 20 / len(text)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			r := NewReader(io.MultiReader(&repeat{text: text, n: n}, strings.NewReader("\n"+real)))
			var found []uint64
			peak := uint64(0)
			i := 0
			for rec := range r.Records() {
				if i++; i%1000 == 0 {
					runtime.ReadMemStats(&after)
					peak = max(peak, after.HeapAlloc)
				}
				if ev, ok := rec.(*Event); ok && ev.HasHeader {
					found = append(found, ev.Duration)
				}
			}
			runtime.ReadMemStats(&after)
			peak = max(peak, after.HeapAlloc)
			if peak > before.HeapAlloc+64<<20 {
				t.Errorf("%d MB on the heap", (peak-before.HeapAlloc)>>20)
			}
			if len(found) != 4 || found[0] != 58966 {
				t.Errorf("durations %d; %+v", found, r.Stats())
			}
			if len(r.Stats().Lost) > maxUnread {
				t.Errorf("%d lost lines kept", len(r.Stats().Lost))
			}
		})
	}
}

// TestBomb unpacks 50 MB of zeros.
func TestBomb(t *testing.T) {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	io.Copy(w, &repeat{text: string(make([]byte, 1<<20)), n: 50})
	w.Close()
	r := NewReader(&b)
	for range r.Records() {
		t.Error("zeros are a record")
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	text := samples(t)["idle-hog"]
	packed := mangle.Gzip(text)
	r := NewReader(strings.NewReader(packed[:len(packed)/2]))
	n := 0
	for range r.Records() {
		n++
	}
	if !errors.Is(r.Err(), io.ErrUnexpectedEOF) || n == 0 {
		t.Errorf("half a file: %d records, %v", n, r.Err())
	}
	r = NewReader(strings.NewReader("\x1f\x8b\x08 no"))
	for range r.Records() {
		t.Error("a record of nothing")
	}
	if r.Err() == nil {
		t.Error("a broken header is no error")
	}
	r = NewReader(iotest.ErrReader(io.ErrClosedPipe))
	for range r.Records() {
	}
	if !errors.Is(r.Err(), io.ErrClosedPipe) {
		t.Errorf("got %v", r.Err())
	}
	// Several files one after the other, and reads of single bytes.
	r = NewReader(io.MultiReader(iotest.OneByteReader(strings.NewReader(packed)), strings.NewReader(packed)))
	n = 0
	for rec := range r.Records() {
		if ev, ok := rec.(*Event); ok && ev.HasHeader {
			n++
		}
	}
	if n != 2*38 || r.Err() != nil {
		t.Errorf("%d events, want %d; %v", n, 2*38, r.Err())
	}
}

// TestStop ends the loop after each number of records.
func TestStop(t *testing.T) {
	text := samples(t)["g03"]
	for stop := range 10 {
		n := 0
		for range NewReader(strings.NewReader(text)).Records() {
			if n++; n > stop {
				break
			}
		}
		if n != stop+1 {
			t.Errorf("stopped after %d, want %d", n, stop+1)
		}
	}
}

// TestAllocs wants plain lines to be read without allocating.
func TestAllocs(t *testing.T) {
	text := samples(t)["idle-hog"]
	allocs := func(times int) float64 {
		return testing.AllocsPerRun(5, func() {
			for range NewReader(&repeat{text: text, n: times}).Records() {
			}
		})
	}
	if one, ten := allocs(2), allocs(22); ten-one > 40 {
		t.Errorf("%.0f allocations for 2 logs, %.0f for 22", one, ten)
	}
}

func FuzzReader(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte) {
		r := NewReader(bytes.NewReader(text))
		lines := bytes.Count(text, []byte("\n")) + 1
		packed := len(text) > 1 && (text[0] == 0x1f || bytes.IndexByte(text, 0) >= 0)
		for rec := range r.Records() {
			if o := rec.Where(); o.Line < 0 || o.Line > lines && !packed {
				t.Errorf("line %d of %d", o.Line, lines)
			}
			ev, ok := rec.(*Event)
			if !ok {
				continue
			}
			if !ev.HasHeader && len(ev.Table) == 0 {
				t.Error("an event of nothing")
			}
			if ev.HasHeader && len(ev.Reasons) == 0 {
				t.Error("a header without reason")
			}
			if ev.Culprit >= 0 && ev.Table[ev.Culprit].Iteration != ev.Iteration {
				t.Error("another row is marked")
			}
			for i := range ev.Table {
				if i > 0 && ev.Table[i].Iteration >= ev.Table[i-1].Iteration {
					t.Errorf("rows are not from new to old: %d, %d", ev.Table[i-1].Iteration, ev.Table[i].Iteration)
				}
			}
		}
	})
}
