package hdr

import (
	"bytes"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/pmdperf/pmdperf/histogram"
	"pgregory.net/rapid"
)

// A histogram converted is the same as one that HdrHistogram recorded itself, and
// merging converted ones is the same as converting merged ones.
func TestWithoutLoss(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vs := rapid.SliceOf(rapid.Custom(func(t *rapid.T) uint64 {
			return rapid.Uint64Range(0, histogram.FineMax).Draw(t, "v") >> rapid.UintRange(0, 47).Draw(t, "shift")
		})).Draw(t, "values")
		cut := rapid.IntRange(0, len(vs)).Draw(t, "cut")
		want := hdrhistogram.New(1, histogram.FineMax, 2)
		wantSmall := hdrhistogram.New(1, histogram.SmallMax, 3)
		var f, a, b histogram.Fine
		var s histogram.Small
		for i, v := range vs {
			if err := want.RecordValue(int64(v)); err != nil {
				t.Fatal(err)
			}
			f.Add(v)
			if i < cut {
				a.Add(v)
			} else {
				b.Add(v)
			}
			s.Add(v % 1024)
			if err := wantSmall.RecordValue(int64(v % 1024)); err != nil {
				t.Fatal(err)
			}
		}
		if got := FromFine(&f); !got.Equals(want) {
			t.Fatal("the fine histogram differs")
		}
		if got := FromSmall(&s); !got.Equals(wantSmall) {
			t.Fatal("the small histogram differs")
		}
		merged := FromFine(&a)
		if dropped := merged.Merge(FromFine(&b)); dropped != 0 {
			t.Fatalf("%d values lost in merging", dropped)
		}
		if !merged.Equals(want) {
			t.Fatal("the merged histogram differs")
		}
	})
}

// What a Log writes, HdrHistogram's own reader reads.
func TestLog(t *testing.T) {
	start := time.UnixMilli(1_767_323_045_000)
	var f histogram.Fine
	for v := range uint64(100_000) {
		f.Add(v * v)
	}
	var buf bytes.Buffer
	l, err := NewLog(&buf, start)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Write("pmd-c01.cycles", start.Add(time.Second), start.Add(2*time.Second), FromFine(&f)); err != nil {
		t.Fatal(err)
	}
	got, err := hdrhistogram.NewHistogramLogReader(&buf).NextIntervalHistogram()
	if err != nil || got == nil {
		t.Fatalf("%v, %v", got, err)
	}
	if !got.Equals(FromFine(&f)) {
		t.Error("the histogram read back differs")
	}
	if got.Tag() != "pmd-c01.cycles" || got.StartTimeMs() != start.Add(time.Second).UnixMilli() {
		t.Errorf("tag %q, start %d", got.Tag(), got.StartTimeMs())
	}
}

// A tag that would spoil the line is refused, and the log stays as it was.
func TestLogRefusesTags(t *testing.T) {
	var buf bytes.Buffer
	l, err := NewLog(&buf, time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	head := buf.Len()
	for _, tag := range []string{"", "a b", "a,b", "a\tb", "a\nb", "\r"} {
		if err := l.Write(tag, time.UnixMilli(0), time.UnixMilli(1), hdrhistogram.New(1, 100, 2)); err == nil {
			t.Errorf("tag %q was accepted", tag)
		}
	}
	if buf.Len() != head {
		t.Errorf("something was written: %q", buf.String()[head:])
	}
}
