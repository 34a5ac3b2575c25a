package perf

import (
	"testing"

	"github.com/pmdperf/pmdperf/perf/tsc"
)

func BenchmarkTSC(b *testing.B) {
	var x uint64
	for b.Loop() {
		x += tsc.Now()
	}
	_ = x
}

func benchRecorder(b *testing.B, l Level) *Recorder {
	r, err := New(Config{Level: l, Polling: Polling{RxQueues: []Queue{{Port: "p", ID: 0}, {Port: "q", ID: 0}}}})
	if err != nil {
		b.Fatal(err)
	}
	r.Start()
	return r
}

func BenchmarkBusyPass(b *testing.B) {
	r := benchRecorder(b, Detailed)
	for b.Loop() {
		r.Poll(0)
		r.Batch(32, 40)
		r.Count(EMCHit, 32)
		r.Tx(32, 1)
		r.End()
	}
}

func BenchmarkIdlePass(b *testing.B) {
	r := benchRecorder(b, Detailed)
	for b.Loop() {
		r.Poll(0)
		r.End()
	}
}

func BenchmarkOffPass(b *testing.B) {
	r := benchRecorder(b, Off)
	for b.Loop() {
		r.Poll(0)
		r.Batch(32, 40)
		r.Count(EMCHit, 32)
		r.Tx(32, 1)
		r.End()
	}
}

func BenchmarkBusyPass2Queues(b *testing.B) {
	r := benchRecorder(b, Detailed)
	for b.Loop() {
		r.Poll(0)
		r.Batch(32, 40)
		r.Poll(1)
		r.Count(EMCHit, 32)
		r.Tx(32, 1)
		r.End()
	}
}
