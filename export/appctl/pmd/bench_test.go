package pmd

import (
	"runtime"
	"testing"

	"github.com/pmdperf/pmdperf/perf"
)

// perfShowText returns the default show as a function, to be called in process.
func perfShowText(t testing.TB, l *lab) func() {
	for _, c := range Commands(l.registry, Options{Timeout: patience}) {
		if c.Name == "dpif-netdev/pmd-perf-show" {
			return func() {
				if _, err := c.Text(t.Context(), nil); err != nil {
					t.Error(err)
				}
			}
		}
	}
	t.Fatal("no such command")
	return nil
}

// TestShowReusesSnapshots: a show allocates its text and little else, since a snapshot
// is far larger and would keep the garbage collector busy.
func TestShowReusesSnapshots(t *testing.T) {
	l := start(t, Options{}, perf.Detailed)
	show := perfShowText(t, l)
	show()
	const shows = 200
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range shows {
		show()
	}
	runtime.ReadMemStats(&after)
	// A snapshot of each PMD would be some 600 KB. The race detector has a pool
	// forget one thing in four.
	per := (after.TotalAlloc - before.TotalAlloc) / shows
	if t.Logf("%d bytes for a show of 2 PMDs", per); per > 300_000 {
		t.Error("that is more than the text takes")
	}
}

func BenchmarkShow(b *testing.B) {
	l := start(b, Options{}, perf.Detailed)
	show := perfShowText(b, l)
	b.ReportAllocs()
	for b.Loop() {
		show()
	}
}
