package dataplane

import "github.com/pmdperf/pmdperf/perf/tsc"

// memPort is a port in memory: a generator behind every receive queue, and a sink
// that takes whatever is sent.
type memPort struct {
	name   string
	queues []memQueue
	size   int // of a queue
	frames *template
	now    func() uint64
}

// memQueue is a receive queue. Queues of different PMDs don't share cache lines.
type memQueue struct {
	ring      *ring
	generator *generator
	missed    uint64
	flows     [Burst]uint32
	_         [64]byte
}

// newMemPort returns a port with c's queues, rings and generators. rx false makes
// one that only sends.
func newMemPort(name string, c *Config, rx bool) (*memPort, error) {
	p := &memPort{name: name, size: c.RingSize, now: tsc.Now, frames: newTemplate(c.PacketSize, c.Subtables, c.Tunnel)}
	if !rx {
		return p, nil
	}
	p.queues = make([]memQueue, c.Queues)
	hz := tsc.System().Hz()
	// Queues without a flow stay idle, as with RSS, and the others share the rate.
	rate := c.Rate / float64(min(c.Queues, c.Flows))
	for q := range p.queues {
		g, err := newGenerator(c.Profile, q, c.Queues, c.Flows, rate, hz)
		if err != nil {
			return nil, err
		}
		p.queues[q].ring = newRing(c.RingSize)
		p.queues[q].generator = g
	}
	return p, nil
}

func (p *memPort) Name() string  { return p.name }
func (p *memPort) RxQueues() int { return len(p.queues) }
func (p *memPort) RxSize() int   { return p.size }

func (p *memPort) RxBurst(q int, b *Batch) int {
	m := &p.queues[q]
	m.missed += m.generator.fill(m.ring, p.now)
	fill := m.ring.len()
	n := m.ring.pop(m.flows[:Burst-b.n])
	for _, i := range m.flows[:n] {
		p.frames.render(b.Add(), i)
	}
	return fill
}

func (p *memPort) TxBurst(_ int, b *Batch) int { return b.n }

func (p *memPort) Missed(q int) uint64 { return p.queues[q].missed }

// Quiesce also lets arrive what was due until now.
func (p *memPort) Quiesce(q int) {
	m := &p.queues[q]
	m.missed += m.generator.fill(m.ring, p.now)
	m.generator.quiet = true
}

func (p *memPort) Drained(q int) bool { return p.queues[q].ring.len() == 0 }
func (p *memPort) Close() error       { return nil }
