package ovslog

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/need"
)

// BenchmarkRead reads the samples one after the other.
func BenchmarkRead(b *testing.B) {
	logs := samples(b)
	var text strings.Builder
	for _, name := range names(logs) {
		text.WriteString(logs[name])
	}
	s := text.String()
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(strings.NewReader(s))
		for range r.Records() {
		}
	}
}

// BenchmarkAgainstGrep reads a file of 200 MB, or 1 GB in the long version, and
// gives the time in multiples of what grep needs to count the headers: the least
// times of interleaved runs.
func BenchmarkAgainstGrep(b *testing.B) {
	grep := need.Tool(b, "grep")
	size := 200 << 20
	if need.Long() {
		size = 1 << 30
	}
	name := filepath.Join(b.TempDir(), "log")
	want := multiply(b, name, size)
	ours, theirs := math.Inf(1), math.Inf(1)
	for b.Loop() {
		start := time.Now()
		cmd := exec.Command(grep, "-c", "Suspicious iteration", name)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		out, err := cmd.Output()
		if err != nil {
			b.Fatal(err)
		}
		theirs = min(theirs, time.Since(start).Seconds())
		if got := strings.TrimSpace(string(out)); got != fmt.Sprint(want) {
			b.Fatalf("grep counts %s headers, want %d", got, want)
		}

		start = time.Now()
		f, err := os.Open(name)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		r := NewReader(f)
		for rec := range r.Records() {
			if ev, ok := rec.(*Event); ok && ev.HasHeader {
				n++
			}
		}
		f.Close()
		ours = min(ours, time.Since(start).Seconds())
		if n != want || r.Err() != nil {
			b.Fatalf("%d headers, want %d; %v", n, want, r.Err())
		}
	}
	b.ReportMetric(ours/theirs, "x-grep")
	b.ReportMetric(float64(size)/ours/1e6, "MB/s")
}

// multiply writes the samples many times, with rising numbers of messages and
// iterations, and returns the number of headers.
func multiply(b *testing.B, name string, size int) (headers int) {
	b.Helper()
	logs := samples(b)
	events, _, _ := read(b, logs["idle-hog"]+logs["vhost-txonly"]+logs["upcalls-flowlimit"])
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	var text []byte
	for step := uint64(0); size > 0; step += 1_000_000_000 {
		for _, ev := range events {
			ev := ev.Clone()
			ev.Iteration += step
			ev.Seq += step / 1000
			ev.TableSeq += step / 1000
			ev.Time = ev.Time.Add(time.Duration(step))
			for i := range ev.Table {
				ev.Table[i].Iteration += step
			}
			if ev.HasHeader {
				headers++
			}
			text = ev.Append(text[:0], TwoMessages)
			if _, err := w.Write(text); err != nil {
				b.Fatal(err)
			}
			size -= len(text)
		}
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	return headers
}
