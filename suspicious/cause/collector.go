package cause

import (
	"runtime/metrics"
)

// collector reads what the Go runtime tells of collections and stops of the world.
// It takes no lock that a loop could wait for.
type collector struct{ samples []metrics.Sample }

// collections are the sums since the process began.
type collections struct{ cycles, pauses, others int64 }

func newCollector() *collector {
	c := &collector{samples: []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/sched/pauses/total/gc:seconds"},
		{Name: "/sched/pauses/total/other:seconds"},
	}}
	c.read()
	return c
}

func (c *collector) read() (n collections) {
	metrics.Read(c.samples)
	if v := c.samples[0].Value; v.Kind() == metrics.KindUint64 {
		n.cycles = int64(v.Uint64())
	}
	n.pauses, n.others = count(c.samples[1].Value), count(c.samples[2].Value)
	return n
}

func count(v metrics.Value) (n int64) {
	if v.Kind() != metrics.KindFloat64Histogram {
		return 0
	}
	for _, c := range v.Float64Histogram().Counts {
		n += int64(c)
	}
	return n
}

// debt tells a collection under way: each stops the world at its start and at its
// end, so that this is higher by one in between. (It also rises for good when a
// collection has to stop the world once more to end; compare it with readings just
// before.)
func (n collections) debt() int64 { return n.pauses - 2*n.cycles }
