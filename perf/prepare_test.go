package perf

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/pmdperf/pmdperf/perf/tsc"
)

// rebalanced is the polling configuration of a PMD after the i-th of many rebalances,
// each of which moves some of its queues.
func rebalanced(i int) *Polling {
	p := &Polling{TxQueues: []Queue{{Port: "out"}}}
	for q := range 8 {
		p.RxQueues = append(p.RxQueues, Queue{Port: fmt.Sprint("port", q), ID: (q + i) / 4})
	}
	return p
}

func TestPrepareRefuses(t *testing.T) {
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	twice := []Queue{{Port: "a"}, {Port: "a"}}
	if p, err := r.Prepare(&Polling{RxQueues: twice}); err == nil {
		t.Errorf("prepared %+v", p)
	}
	p, err := r.Prepare(&Polling{RxQueues: twice[:1]})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.ResumeWith(p); err != nil {
		t.Fatal(err)
	}
	if err := r.ResumeWith(p); err == nil {
		t.Error("a running recorder was resumed")
	}
	r.Close()
	if err := r.ResumeWith(p); err == nil {
		t.Error("a closed recorder was resumed")
	}
}

// A recorder that is configured again and again keeps nothing of the configurations
// of before.
func TestReloadsKeepNothing(t *testing.T) {
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	reload := func(n int) {
		for range n {
			for i := range 2 {
				p, err := r.Prepare(rebalanced(4 * i))
				if err != nil {
					t.Fatal(err)
				}
				if err := r.ResumeWith(p); err != nil {
					t.Fatal(err)
				}
				r.Park()
			}
		}
	}
	reload(100)
	const reloads = 1000
	before := heap()
	reload(reloads)
	if after := heap(); after > before+reloads*512 {
		t.Errorf("%d KiB of memory before %d reloads, %d after", before>>10, 2*reloads, after>>10)
	}
	runtime.KeepAlive(r)
}

// Of queues that went long ago a sum is kept.
func TestForgottenQueues(t *testing.T) {
	const changes = 3 * remembered
	d := drive(t, 1e6, Config{})
	for i := range changes {
		d.park(d.now, Parked)
		p, err := d.Prepare(&Polling{RxQueues: []Queue{{Port: fmt.Sprint(i)}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.ResumeWith(p); err != nil {
			t.Fatal(err)
		}
		d.to(0)
		d.pass(100, 3, 0)
	}
	s := d.snapshot()
	if s.RxQueues[0].Packets != 3 || s.Gone.Packets != 3*(changes-1) || s.Gone.BusyCycles != 100*(changes-1) {
		t.Errorf("polled are %+v, gone %+v", s.RxQueues, s.Gone)
	}
}

// What was prepared is the recorder's: a caller may go on to use its slices.
func TestPreparedIsACopy(t *testing.T) {
	d := drive(t, 1e6, Config{Polling: twoQueues})
	queues := []Queue{{Port: "b"}, {Port: "c"}}
	p, err := d.Prepare(&Polling{RxQueues: queues})
	if err != nil {
		t.Fatal(err)
	}
	queues[0].Port = "other"
	d.park(d.now, Parked)
	if err := d.ResumeWith(p); err != nil {
		t.Fatal(err)
	}
	s := d.snapshot()
	if len(s.RxQueues) != 2 || s.RxQueues[0].Port != "b" || s.RxQueues[1].Port != "c" {
		t.Errorf("polled are %+v", s.RxQueues)
	}
}

func TestResumeWithAllocatesNothing(t *testing.T) {
	r, err := New(Config{Level: Detailed, Polling: *rebalanced(0)})
	if err != nil {
		t.Fatal(err)
	}
	r.Start()
	defer r.Close()
	var before, after runtime.MemStats
	allocated := uint64(math.MaxUint64)
	for i := range 30 {
		p, err := r.Prepare(rebalanced(i + 1))
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&before)
		r.Park()
		err = r.ResumeWith(p)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		// Others may allocate meanwhile, but not always.
		allocated = min(allocated, after.Mallocs-before.Mallocs)
		busyPass(r, 32)
	}
	if allocated != 0 {
		t.Errorf("%d allocations in each reload", allocated)
	}
}

// Others prepare while the loop runs, is reloaded and cleared.
func TestPrepareWhileRunning(t *testing.T) {
	r, err := New(Config{Level: Detailed, Polling: *rebalanced(0)})
	if err != nil {
		t.Fatal(err)
	}
	r.Start()
	prepared := make(chan *Prepared)
	var others sync.WaitGroup
	for g := range 2 {
		others.Go(func() {
			for i := range 200 {
				p, err := r.Prepare(rebalanced(2*i + g))
				if err != nil {
					t.Error(err)
				}
				prepared <- p
				if i%50 == 0 {
					if err := r.Clear(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	go func() { others.Wait(); close(prepared) }()
	for open := true; open; {
		select {
		case p, ok := <-prepared:
			if open = ok; !ok {
				break
			}
			r.Park()
			if err := r.ResumeWith(p); err != nil {
				t.Fatal(err)
			}
			if q := r.rx[3].Queue; q != p.polling.RxQueues[3] {
				t.Fatalf("%+v is polled, not %+v", q, p.polling.RxQueues[3])
			}
		default:
			busyPass(r, 32)
		}
	}
	r.Close()
	s := new(Snapshot)
	if err := r.Snapshot(t.Context(), Want{}, s); err != nil {
		t.Fatal(err)
	}
	checkSnapshot(t, s, Want{})
}

// BenchmarkReload measures what the recorder adds to a reload, in ticks.
func BenchmarkReload(b *testing.B) {
	for _, prepare := range []bool{false, true} {
		b.Run(map[bool]string{false: "resume", true: "prepared"}[prepare], func(b *testing.B) {
			r := newBench(b, Detailed)
			var all []float64
			for i := range max(b.N, 1000) {
				next := rebalanced(i)
				p, err := r.Prepare(next)
				if err != nil {
					b.Fatal(err)
				}
				busyPass(r, 32)
				began := tsc.Now()
				r.Park()
				if prepare {
					err = r.ResumeWith(p)
				} else {
					err = r.Resume(next)
				}
				if err != nil {
					b.Fatal(err)
				}
				all = append(all, float64(tsc.Now()-began))
			}
			slices.Sort(all)
			b.ReportMetric(all[len(all)/2], "ticks/op")
		})
	}
}
