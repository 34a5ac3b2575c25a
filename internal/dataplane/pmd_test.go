package dataplane

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pmdperf/pmdperf/perf"
)

// newTestPMD returns the first PMD of a forwarder that is not started, for a test to
// run passes of by itself.
func newTestPMD(t testing.TB, cfg Config) (*Forwarder, *pmd) {
	t.Helper()
	f, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Stop() })
	p := f.pmds[0]
	p.start()
	return f, p
}

// TestPassAllocatesNothing runs every branch of the pipeline, upcalls included.
func TestPassAllocatesNothing(t *testing.T) {
	for name, cfg := range map[string]Config{
		"one flow":    {},
		"upcalls":     {Flows: MaxFlows, FlowLimit: 1 << 20, Subtables: 7, Profile: ProfileScatter},
		"lost":        {Flows: MaxFlows, FlowLimit: 1, Profile: ProfileScatter},
		"recirculate": {Flows: 100_000, Subtables: 20, Profile: ProfileScatter, Recirculate: true},
		"tunnel":      {Flows: 100_000, Subtables: 20, Tunnel: true, Sinks: 32, FlushInterval: 1000},
		"paced":       {Rate: 1e6, Sizes: true, Drop: true, MaxSleep: 1000},
		"normal":      {Ports: []string{"mem", "mem"}, Flows: 1000, Normal: true, Stats: StatsShared},
		"at once":     {Flows: 1000, SendAtOnce: true, Profile: ProfileScatter, Level: perf.Detailed},
	} {
		t.Run(name, func(t *testing.T) {
			_, p := newTestPMD(t, cfg)
			if got := testing.AllocsPerRun(1000, func() { p.pass() }); got != 0 {
				t.Errorf("a pass allocates %v times", got)
			}
			if cfg.Rate == 0 && p.tally[0].rx < 32*1000 {
				t.Errorf("received %d packets, want at least 32,000", p.tally[0].rx)
			}
		})
	}
}

// BenchmarkForward reports millions of packets a second of one PMD, generator and
// recorder included. An operation is one packet.
func BenchmarkForward(b *testing.B) {
	for _, flows := range []int{1, 10_000, 100_000, 1_000_000} {
		for _, subtables := range []int{1, 5, 20} {
			if flows == 1 && subtables != 1 {
				continue
			}
			b.Run(fmt.Sprintf("flows=%d/subtables=%d", flows, subtables), func(b *testing.B) {
				benchmarkForward(b, Config{Flows: flows, Subtables: subtables, Profile: ProfileScatter})
			})
		}
	}
	for _, profile := range []Profile{ProfileBurst, ProfileScatter} {
		for _, tunnel := range []bool{false, true} {
			for _, once := range []bool{false, true} {
				b.Run(fmt.Sprintf("profile=%s/sinks=32/tunnel=%v/atonce=%v", profile, tunnel, once), func(b *testing.B) {
					benchmarkForward(b, Config{Flows: 1_000_000, Profile: profile, Sinks: 32, Tunnel: tunnel, SendAtOnce: once})
				})
			}
		}
	}
}

func benchmarkForward(b *testing.B, cfg Config) {
	f, p := newTestPMD(b, cfg)
	for p.tally[0].rx < uint64(2*f.cfg.Flows) { // all megaflows are there
		p.pass()
	}
	b.ReportAllocs()
	start := p.tally[0].rx
	b.ResetTimer()
	for p.tally[0].rx-start < uint64(b.N) {
		p.pass()
	}
	b.ReportMetric(float64(p.tally[0].rx-start)/1e6/b.Elapsed().Seconds(), "Mpps")
}

// BenchmarkGenerate is what a port in memory could do alone.
func BenchmarkGenerate(b *testing.B) {
	_, p := newTestPMD(b, Config{Flows: 1_000_000, Profile: ProfileScatter})
	n := 0
	for n < b.N {
		p.ports[0].RxBurst(0, &p.rx)
		n += p.rx.Len()
		p.rx.Release()
	}
	b.ReportMetric(float64(n)/1e6/b.Elapsed().Seconds(), "Mpps")
}

// recordPort is a sink that remembers the destinations of what it was sent, and the
// sizes of the batches. It takes at most limit packets a batch.
type recordPort struct {
	memPort
	limit   int
	got     []uint32
	batches []int
}

func (r *recordPort) TxBurst(_ int, b *Batch) int {
	n := min(b.Len(), r.limit)
	for i := range n {
		r.got = append(r.got, binary.BigEndian.Uint32(b.At(i).Frame()[etherLen+16:]))
	}
	r.batches = append(r.batches, n)
	return n
}

// TestEveryPacketToItsPort compares what arrives at every port, in which order, with
// the flows that were generated, over all kinds of pipeline.
func TestEveryPacketToItsPort(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{
			Sinks:       rapid.IntRange(1, 5).Draw(rt, "sinks"),
			Flows:       rapid.IntRange(1, 300).Draw(rt, "flows"),
			Subtables:   rapid.IntRange(1, MaxSubtables).Draw(rt, "subtables"),
			FlowLimit:   rapid.SampledFrom([]int{0, 1, 50}).Draw(rt, "flow limit"),
			EMCInverse:  rapid.SampledFrom([]int{-1, 1, 100}).Draw(rt, "EMC"),
			Profile:     rapid.SampledFrom([]Profile{ProfileBurst, ProfileScatter}).Draw(rt, "profile"),
			Tunnel:      rapid.Bool().Draw(rt, "tunnel"),
			Recirculate: rapid.Bool().Draw(rt, "recirculate"),
		}
		switch rapid.IntRange(0, 2).Draw(rt, "sending") {
		case 1:
			cfg.SendAtOnce = true
		case 2:
			cfg.FlushInterval = time.Second
		}
		f, p := newTestPMD(t, cfg)
		defer f.Stop()
		sinks := make([]*recordPort, cfg.Sinks)
		for i := range sinks {
			sinks[i] = &recordPort{limit: rapid.SampledFrom([]int{Burst, Burst, 20, 0}).Draw(rt, "limit")}
			p.ports[1+i] = sinks[i]
		}
		passes := rapid.IntRange(1, 40).Draw(rt, "passes")
		for range passes {
			p.pass()
		}
		p.flushAll()
		p.rec.End()

		g, err := newGenerator(cfg.Profile, 0, 1, cfg.Flows, 0, 1e9)
		if err != nil {
			rt.Fatal(err)
		}
		want := make([][]uint32, cfg.Sinks)
		for range passes * Burst {
			dst := flowDst(g.next())
			to := int(dst % uint32(cfg.Sinks))
			want[to] = append(want[to], dst)
		}
		drops := 0
		for i, s := range sinks {
			// What the sink refused is missing, and nothing else.
			if s.limit == Burst {
				if !slices.Equal(s.got, want[i]) {
					rt.Fatalf("sink %d got %v, want %v", i, s.got, want[i])
				}
			} else {
				rest := want[i]
				for _, dst := range s.got {
					k := slices.Index(rest, dst)
					if k < 0 {
						rt.Fatalf("sink %d got %d, not among %v", i, dst, rest)
					}
					rest = rest[k+1:]
				}
			}
			drops += len(want[i]) - len(s.got)
			if out := p.tally[1+i].out; out != uint64(len(s.got)) {
				rt.Fatalf("sink %d got %d packets, counted are %d", i, len(s.got), out)
			}
		}
		in := p.tally[0]
		if in.rx != uint64(passes*Burst) || in.drops != uint64(drops) || in.rx != in.tx+in.drops {
			rt.Fatalf("counted %+v, want received %d, dropped %d", in, passes*Burst, drops)
		}
		if free := len(p.rx.pool.free); free != len(p.rx.pool.packets) {
			rt.Fatalf("%d of %d packets came back to the pool", free, len(p.rx.pool.packets))
		}
	})
}

// TestFlush: with an interval, packets wait over passes until it is over or a batch
// is full; without, they go at the end of the pass.
func TestFlush(t *testing.T) {
	for _, c := range []struct {
		interval time.Duration
		atOnce   bool
		want     func(n int) bool
	}{
		{0, false, func(n int) bool { return n == 8 }}, // 32 packets to 4 sinks a pass
		{0, true, func(n int) bool { return n == 1 }},
		{time.Second, false, func(n int) bool { return n == Burst }},
	} {
		f, p := newTestPMD(t, Config{Sinks: 4, Flows: 4, Profile: ProfileScatter, FlushInterval: c.interval, SendAtOnce: c.atOnce})
		r := &recordPort{limit: Burst}
		p.ports[1] = r
		for range 4 {
			p.pass()
		}
		if len(r.batches) == 0 {
			t.Fatalf("interval %v: nothing was sent", c.interval)
		}
		for _, n := range r.batches {
			if !c.want(n) {
				t.Errorf("interval %v, at once %v: a batch of %d", c.interval, c.atOnce, n)
			}
		}
		f.Stop()
	}
	f, p := newTestPMD(t, Config{Sinks: 1, Rate: 1e6, FlushInterval: time.Millisecond, RingSize: 1 << 16})
	defer f.Stop()
	p.ports[0].(*memPort).queues[0].generator.quiet = true
	p.ports[0].(*memPort).queues[0].ring.push(3, func() uint32 { return 0 })
	r := &recordPort{limit: Burst}
	p.ports[1] = r
	begun := time.Now()
	for len(r.batches) == 0 {
		p.pass()
	}
	if d := time.Since(begun); d < 900*time.Microsecond || len(r.got) != 3 {
		t.Errorf("%d packets were sent after %v, want 3 after 1 ms", len(r.got), d)
	}
}

// TestSleepGrows: a microsecond a pass up to the longest, and from nothing again
// after half a batch.
func TestSleepGrows(t *testing.T) {
	const longest = 3 * time.Microsecond
	f, p := newTestPMD(t, Config{Profile: ProfileIdle, MaxSleep: longest})
	defer f.Stop()
	for i, want := range []time.Duration{1, 2, 3, 3, 3} {
		p.pass()
		if p.nextSleep != want*time.Microsecond {
			t.Errorf("pass %d: next sleep %v, want %d us", i, p.nextSleep, want)
		}
	}
	q := &p.ports[0].(*memPort).queues[0]
	for _, c := range []struct {
		packets int
		want    time.Duration
	}{{sleepBurst - 1, longest}, {sleepBurst, 0}, {0, time.Microsecond}} {
		q.ring.push(c.packets, q.generator.next)
		p.pass()
		if p.nextSleep != c.want {
			t.Errorf("after %d packets: next sleep %v, want %v", c.packets, p.nextSleep, c.want)
		}
	}
	p.rec.Close()
	var s perf.Snapshot
	if err := p.rec.Snapshot(t.Context(), perf.Want{}, &s); err != nil {
		t.Fatal(err)
	}
	if s.Totals.SleepIterations != 5 || s.Totals.Sleep == 0 {
		t.Errorf("%d passes slept %d ticks, want 5 and more than none", s.Totals.SleepIterations, s.Totals.Sleep)
	}
}

// TestSizes wants the recorder to know the sizes of what came and went.
func TestSizes(t *testing.T) {
	f, p := newTestPMD(t, Config{PacketSize: 300, Sizes: true, Level: perf.Detailed})
	defer f.Stop()
	for range 3 {
		p.pass()
	}
	p.rec.Close()
	var s perf.Snapshot
	if err := p.rec.Snapshot(t.Context(), perf.Want{}, &s); err != nil {
		t.Fatal(err)
	}
	for _, q := range []perf.QueueStats{s.RxQueues[0], s.TxQueues[0]} {
		var all uint64
		for _, n := range q.Sizes.Classes {
			all += n
		}
		if all != 96 || q.Packets != 96 || q.Sizes.Multicast != 0 {
			t.Errorf("queue %+v, want 96 packets", q)
		}
	}
}

// TestTroubleIsNoQueuesDoing: the cycles of an injected stall are the loop's, and
// not those of the queue polled last.
func TestTroubleIsNoQueuesDoing(t *testing.T) {
	f, p := newTestPMD(t, Config{Profile: ProfileIdle, Inject: []Injection{{InjectCompute, 20 * time.Millisecond, time.Hour}}})
	defer f.Stop()
	p.schedule.entries[0].at = 1
	p.schedule.next = 1
	p.pass()
	p.rec.Close()
	var s perf.Snapshot
	if err := p.rec.Snapshot(t.Context(), perf.Want{}, &s); err != nil {
		t.Fatal(err)
	}
	q, stall := s.RxQueues[0], p.schedule.entries[0].duration
	if s.Totals.Cycles < stall || q.BusyCycles+q.IdleCycles > s.Totals.Cycles-stall {
		t.Errorf("queue %+v and the loop %d ticks, of which the stall took %d", q, s.Totals.Cycles, stall)
	}
}
