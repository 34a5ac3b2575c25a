package evidence

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/suspicious/investigate"
	"github.com/pmdperf/pmdperf/suspicious/ovslog"
)

// multiply writes captured logs many times, with rising numbers of messages and
// iterations, until the file has size bytes, and returns the number of headers.
func multiply(t testing.TB, name string, size int) (headers int) {
	t.Helper()
	var events []*ovslog.Event
	for _, n := range []string{"idle-hog", "vhost-txonly", "upcalls-flowlimit"} {
		for rec := range ovslog.NewReader(strings.NewReader(log(t, n))).Records() {
			if ev, ok := rec.(*ovslog.Event); ok {
				events = append(events, ev.Clone())
			}
		}
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
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
			text = ev.Append(text[:0], ovslog.TwoMessages)
			if _, err := w.Write(text); err != nil {
				t.Fatal(err)
			}
			size -= len(text)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return headers
}

// peak watches memory until the function it returns is called, which returns the most
// that the heap and the stacks took, in bytes.
func peak() func() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	stop, done := make(chan bool), make(chan uint64)
	go func() {
		var most uint64
		for {
			metrics.Read(samples)
			most = max(most, samples[0].Value.Uint64()-samples[1].Value.Uint64())
			select {
			case <-stop:
				done <- most
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		stop <- true
		return <-done
	}
}

// cpu returns the processor time that this process has used, in seconds.
func cpu(t testing.TB) float64 {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// BenchmarkAgainstGrep investigates a log of 200 MB, or 1 GB in the long version, and
// gives the time in multiples of what grep needs to count the headers: the least times
// of interleaved runs, by the wall clock and by the processors' (which other load on the
// machine disturbs less).
func BenchmarkAgainstGrep(b *testing.B) {
	grep := need.Tool(b, "grep")
	size := 200 << 20
	if need.Long() {
		size = 1 << 30
	}
	name := filepath.Join(b.TempDir(), "log")
	want := multiply(b, name, size)
	ours, theirs := math.Inf(1), math.Inf(1)
	oursCPU, theirsCPU := math.Inf(1), math.Inf(1)
	var most uint64
	for b.Loop() {
		start := time.Now()
		cmd := exec.Command(grep, "-c", "Suspicious iteration", name)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		out, err := cmd.Output()
		if err != nil {
			b.Fatal(err)
		}
		theirs = min(theirs, time.Since(start).Seconds())
		theirsCPU = min(theirsCPU, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
		if got := strings.TrimSpace(string(out)); got != fmt.Sprint(want) {
			b.Fatalf("grep counts %s headers, want %d", got, want)
		}
		memory := peak()
		start = time.Now()
		before := cpu(b)
		c := &Collector{Case: investigate.NewCase()}
		if err := c.Add(b.Context(), name); err != nil || len(c.Failed) > 0 {
			b.Fatal(err, c.Failed)
		}
		r := c.Case.Result()
		ours = min(ours, time.Since(start).Seconds())
		oursCPU = min(oursCPU, cpu(b)-before)
		most = max(most, memory())
		if n := r.Sources[0].Events; n != uint64(want) {
			b.Fatalf("%d headers, want %d", n, want)
		}
	}
	b.ReportMetric(ours/theirs, "x-grep")
	b.ReportMetric(oursCPU/theirsCPU, "x-grep-cpu")
	b.ReportMetric(float64(size)/ours/1e6, "MB/s")
	b.ReportMetric(float64(most)/1e6, "MB-memory")
}
