package ovs

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/perf"
)

// What a real recorder recorded comes out in all formats.
func TestLiveRecorder(t *testing.T) {
	rec, err := perf.New(perf.Config{Core: 1, Level: perf.Detailed,
		Polling: perf.Polling{RxQueues: []perf.Queue{{Port: "p0"}, {Port: "p1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Start(); err != nil {
		t.Fatal(err)
	}
	const passes = 20000
	for i := range passes {
		rec.Poll(0)
		if i%4 == 0 {
			rec.Batch(32, 64)
			rec.Count(perf.EMCHit, 31)
			rec.Upcall(2500, true)
			rec.Tx(32, 1)
		}
		rec.Poll(1)
		rec.End()
	}
	rec.Close()
	var s perf.Snapshot
	if err := rec.Snapshot(context.Background(), perf.Want{Iterations: 1000, Millis: 1000}, &s); err != nil {
		t.Fatal(err)
	}
	snaps := []*perf.Snapshot{&s}
	o := Options{Iterations: 1000, Milliseconds: 1000}
	report := BuildPerf(snaps, o)
	if diff := cmp.Diff(report, parsePerf(t, report.String())); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	b := &report.Blocks[0]
	for label, want := range map[string]uint64{
		"Iterations": passes, "busy iterations": passes / 4, "Rx packets": 8 * passes, "EMC hits": 31 * passes / 4,
		"Upcalls": passes / 4, "Tx batches": passes / 4,
	} {
		if got, ok := b.Value(label); !ok || got != want {
			t.Errorf("%s = %d, %v, want %d", label, got, ok, want)
		}
	}
	for i, a := range []string{"", "8.00000", "", "32.00000", "16.00000", "0.25000", "2500"} {
		if a != "" && b.Averages[i].Number != a {
			t.Errorf("average of %s = %s, want %s", b.Averages[i].Title, b.Averages[i].Number, a)
		}
	}
	if n := len(b.Iterations.Rows); n != 1000 {
		t.Errorf("%d iterations, want 1000", n)
	}
	var sum uint64
	for i := range b.Milliseconds.Rows {
		n, _ := b.Milliseconds.Uint(i, "iterations")
		sum += n
	}
	if n := len(b.Milliseconds.Rows); n < 1000 && sum+uint64(s.OpenMilli.Iterations) != passes {
		t.Errorf("%d + %d iterations in all milliseconds, want %d", sum, s.OpenMilli.Iterations, passes)
	}
	d := NewDocument(snaps, o)
	encode(t, d)
	if c := d.Threads[0].Cycles; c.Wall != c.Used+c.Sleep+c.Gaps {
		t.Errorf("cycles don't add up: %+v", c)
	}
	for _, text := range []string{BuildStats(snaps, o).String(), BuildRxq(snaps, 0, o).String(), BuildSleep(snaps, 0, o).String()} {
		if text == "" {
			t.Error("a report is empty")
		}
	}
}
