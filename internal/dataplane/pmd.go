package dataplane

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/perf/tsc"
)

// pmd is one poll-mode thread: all that its loop touches. Everything but request
// belongs to the loop's goroutine.
type pmd struct {
	request atomic.Pointer[request] // what the control goroutine wants; looked at once a pass
	_       [56]byte

	rec     *perf.Recorder
	index   int // among the PMDs: also its transmit queue
	core    int
	tid     int // of its thread
	queues  []rxQueue
	awaited int // how many of those other PMDs poll still

	emc     *emc
	class   *classifier
	slow    *slowPath
	rx      Batch
	miss    [Burst]uint32
	sizes   [Burst]uint16
	ports   []Port
	tally   []tally // by port
	tx      []txBatch
	dirty   uint64 // ports whose tx batch is not empty, a bit each
	flushed uint64 // batches sent
	macs    *macTable
	stats   statistics

	flushTicks uint64 // longest wait of a packet in a tx batch; 0 = until the end of the pass
	passNow    uint64 // tick at which the pass began, where flushTicks needs it
	sendAtOnce bool
	recSizes   bool
	received   int // packets of the fullest burst of this pass
	moved      int // packets received in this pass

	maxSleep  time.Duration
	nextSleep time.Duration

	schedule schedule
	gaps     GapSummary // unpolled time of queues around reloads
	injected []uint64   // by injection: how often the loop made it
}

// rxQueue is a receive queue as a PMD polls it.
type rxQueue struct {
	port   Port
	in     uint16 // index of the port
	queue  int
	size   int // packets it holds, or 0
	number int // among the queues of all ports

	handing *handing
	awaited bool // another PMD polls it still
}

// txBatch is what waits to be sent on one port.
type txBatch struct {
	Batch
	due uint64 // tick at which it must go
}

// tally counts the packets of one port: in by the port they came from, out by the
// one they left by.
type tally struct {
	rx, tx, drops uint64
	out           uint64
}

// sleepStep and sleepBurst steer the sleep of a PMD as pmd-sleep-max does in Open
// vSwitch: a pass without a burst of at least half a batch lets the next sleep be
// a microsecond longer, any other ends it.
const (
	sleepStep  = time.Microsecond
	sleepBurst = Burst / 2
)

// loop runs passes until the control goroutine asks it to stop. By then every
// packet it received was sent or dropped.
func (p *pmd) loop() {
	for !p.pass() {
	}
}

// overrun tells the recorder what a queue that was full has dropped since this was last
// asked.
func (p *pmd) overrun(q *rxQueue) {
	missed := q.port.Missed(q.queue)
	p.rec.RxDrop(int(missed - q.handing.missed))
	q.handing.missed = missed
}

// pass polls every queue once. It reports whether the loop is to end.
func (p *pmd) pass() (end bool) {
	p.received, p.moved = 0, 0
	if p.flushTicks != 0 {
		p.passNow = tsc.Now()
	}
	for i := range p.queues {
		q := &p.queues[i]
		if q.awaited {
			continue
		}
		p.rec.Poll(i)
		fill := q.port.RxBurst(q.queue, &p.rx)
		if fill >= q.size && q.size != 0 {
			p.overrun(q)
		}
		if n := p.rx.n; n != 0 {
			p.rec.Batch(n, fill)
			if p.recSizes {
				p.recordSizes(i)
			}
			if p.stats.mode != StatsOff {
				p.stats.rx(q.in, &p.rx, n)
			}
			p.tally[q.in].rx += uint64(n)
			p.moved += n
			p.received = max(p.received, n)
			for j := range n {
				pk := p.rx.At(j)
				pk.in = q.in
				pk.extract(q.in, 0, 0)
			}
			p.process()
		}
	}
	if p.dirty != 0 {
		if len(p.queues) > 1 {
			p.rec.PollEnd() // the last queue does not answer for the packets of all
		}
		p.flushDue()
	}
	if p.schedule.next != 0 && tsc.Now() >= p.schedule.next {
		p.rec.PollEnd() // it is no queue's doing
		p.schedule.run(tsc.Now)
	}
	if p.maxSleep != 0 {
		p.sleep()
	}
	p.rec.End()
	if p.request.Load() != nil {
		return p.serve()
	}
	return false
}

// recordSizes gives the sizes of the packets received to the recorder, and how many
// go to many.
func (p *pmd) recordSizes(q int) {
	multicast, broadcast := p.measure(&p.rx, p.rx.n)
	p.rec.RxSizes(q, p.sizes[:p.rx.n])
	p.rec.RxCasts(q, multicast, broadcast)
}

// measure notes the sizes of the first n packets of b in sizes and counts those to
// a multicast and to the broadcast address.
func (p *pmd) measure(b *Batch, n int) (multicast, broadcast int) {
	for i := range n {
		f := b.At(i).Frame()
		p.sizes[i%Burst] = uint16(len(f))
		if len(f) >= 6 && f[0]&1 != 0 {
			if string(f[:6]) == "\xff\xff\xff\xff\xff\xff" {
				broadcast++
			} else {
				multicast++
			}
		}
	}
	return multicast, broadcast
}

// process takes the packets in rx, whose keys are known, through the pipeline. rx
// is empty afterwards.
func (p *pmd) process() {
	for p.rx.n != 0 {
		p.classify()
		p.execute()
	}
}

// classify sets the flow of every packet in rx.
func (p *pmd) classify() {
	pool := p.rx.pool
	missed := 0
	for _, i := range p.rx.idx[:p.rx.n] {
		pk := &pool.packets[i]
		f := p.emc.lookup(&pk.key, pk.hash)
		pk.flow = f
		if f == 0 {
			p.miss[missed%Burst] = i // never wraps; spares a bounds check
			missed++
		}
	}
	p.rec.Count(perf.EMCHit, uint64(p.rx.n-missed))
	if missed == 0 {
		return
	}
	var todo [Burst]uint32
	copy(todo[:], p.miss[:missed])
	unknown, lookups := p.class.find(pool, todo[:missed])
	if missed != unknown {
		for _, i := range p.miss[:missed] {
			if pk := &pool.packets[i]; pk.flow != 0 {
				p.emc.offer(&pk.key, pk.hash, pk.flow)
			}
		}
	}
	upcalls := 0
	known := p.class.installed()
	for j := range unknown {
		// A packet before it in this batch may have brought a flow for it.
		if p.class.installed() != known {
			if left, n := p.class.find(pool, todo[j:j+1]); left == 0 {
				lookups += n
				pk := &pool.packets[todo[j]]
				p.emc.offer(&pk.key, pk.hash, pk.flow)
				continue
			}
		}
		p.upcall(&pool.packets[todo[j]], upcalls)
		upcalls++
	}
	p.rec.Count(perf.MegaflowHit, uint64(missed-upcalls))
	p.rec.Count(perf.SubtableLooks, lookups)
}

// upcall asks the slow path about a packet and installs a megaflow for its like.
// Where there is no room for one, the packet goes its way all the same, by a flow
// of this batch only: nth is its number among the batch's upcalls.
func (p *pmd) upcall(pk *Packet, nth int) {
	t := p.rec.StartTimer()
	id, rule, act := p.slow.decide(pk.key)
	f := p.class.install(pk.key, rule.pin, id, act)
	if f != 0 {
		p.emc.offer(&pk.key, pk.hash, f)
		pk.flow = f
	} else {
		pk.flow = p.class.passing(nth, act)
	}
	p.rec.Upcall(p.rec.StopTimer(t), f != 0)
}

// execute does what the flows of the packets in rx say. Packets for another pass
// through the pipeline stay in rx, with their new keys.
func (p *pmd) execute() {
	n := p.rx.n
	p.rx.n = 0
	before := uint32(0)
	for j := range n {
		i := p.rx.idx[j]
		pk := &p.rx.pool.packets[i]
		f := &p.class.flows[pk.flow]
		f.packets++
		if p.sendAtOnce && pk.flow != before {
			p.flushAll()
			before = pk.flow
		}
		switch f.action.kind {
		case actOutput:
			p.output(i, f.action.port)
			continue
		case actNormal:
			pk := &p.rx.pool.packets[i]
			port, ok := p.macs.forward(pk.Frame(), pk.in)
			if !ok {
				port = f.action.port
			}
			p.output(i, port)
			continue
		case actRecirc:
			pk.extract(pk.in, pk.recirc()+1, pk.tunnel())
		case actPop:
			if !pk.pop() {
				p.drop(i)
				continue
			}
		default:
			p.drop(i)
			continue
		}
		p.rx.idx[p.rx.n] = i
		p.rx.n++
	}
	if p.sendAtOnce {
		p.flushAll()
	}
	if p.rx.n != 0 {
		p.rec.Count(perf.Recirc, uint64(p.rx.n))
	}
}

// drop gives up a packet.
func (p *pmd) drop(i uint32) {
	p.tally[p.rx.pool.packets[i].in].drops++
	p.rec.Drop(1)
	p.rx.pool.put([]uint32{i})
}

// output puts a packet in the batch of a port, and sends the batch when it is full.
func (p *pmd) output(i uint32, port uint16) {
	t := &p.tx[port]
	if t.n == 0 {
		t.due = p.passNow + p.flushTicks
		p.dirty |= 1 << (port % maxPorts)
	}
	t.idx[t.n] = i
	if t.n++; t.n == Burst {
		p.flush(int(port))
	}
}

// flushDue sends the batches that must go at the end of this pass.
func (p *pmd) flushDue() {
	if p.flushTicks == 0 {
		p.flushAll()
		return
	}
	now := tsc.Now()
	for d := p.dirty; d != 0; d &= d - 1 {
		if port := bits.TrailingZeros64(d); now >= p.tx[port].due {
			p.flush(port)
		}
	}
}

// flushAll sends all batches.
func (p *pmd) flushAll() {
	for d := p.dirty; d != 0; d &= d - 1 {
		p.flush(bits.TrailingZeros64(d))
	}
}

// flush sends the batch of a port, which is not empty, and counts every packet by
// the port it came from. What the port did not take is dropped.
func (p *pmd) flush(port int) {
	p.dirty &^= 1 << port
	t := &p.tx[port]
	n := t.n
	sent := p.ports[port].TxBurst(p.index, &t.Batch)
	p.rec.Tx(sent, 1)
	p.flushed++
	p.tally[port].out += uint64(sent)
	if p.stats.mode != StatsOff {
		p.stats.tx(port, &t.Batch, sent)
	}
	if p.recSizes {
		multicast, broadcast := p.measure(&t.Batch, sent)
		p.rec.TxSizes(port, p.sizes[:sent])
		p.rec.TxCasts(port, multicast, broadcast)
	}
	// Packets of one port come in runs.
	for i := 0; i < sent; {
		in := t.At(i).in
		first := i
		for i++; i < sent && t.At(i).in == in; i++ {
		}
		p.tally[in].tx += uint64(i - first)
	}
	if sent < n {
		p.rec.Drop(n - sent)
		for i := sent; i < n; i++ {
			p.tally[t.At(i).in].drops++
		}
	}
	t.Release()
}

// sleep lets the thread sleep a little longer with every pass in which no queue
// brought half a batch. Nothing waits to be sent meanwhile.
func (p *pmd) sleep() {
	if p.received >= sleepBurst {
		p.nextSleep = 0
		return
	}
	if p.nextSleep > 0 {
		p.flushAll()
		p.rec.SleepBegin()
		sleep(p.nextSleep)
		p.rec.SleepEnd()
	}
	p.nextSleep = min(p.nextSleep+sleepStep, p.maxSleep)
}
