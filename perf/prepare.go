package perf

import (
	"slices"

	"github.com/pmdperf/pmdperf/suspicious"
)

// remembered is how many queues that are no longer polled keep their own sums, so that
// one that comes back goes on where it was.
const remembered = 64

// queueSet is which queues a recorder knows, in the order in which it keeps them. It
// never changes.
type queueSet struct {
	rx, goneRx, tx, goneTx []Queue
}

// A Prepared is a polling configuration with all that a recorder needs to change to it,
// for Recorder.ResumeWith. It is good for one use, and for the recorder that made it.
type Prepared struct {
	polling Polling
	base    *queueSet // that of before
	// Apart from the rest, as the recorder keeps it: nothing may lead from there to the
	// configurations of before.
	queues *queueSet

	// Where queues come from: indices in base, the polled ones first, then the gone
	// ones; -1 for a new one.
	rxFrom, goneRxFrom, txFrom, goneTxFrom []int
	forgotten                              []int // gone rx queues of which only a sum is kept

	// Memory for what is kept of them. Those that are gone stay where they were.
	rx      []rxQueue
	goneRx  []*rxQueue
	tx      []txQueue
	goneTx  []*txQueue
	usage   [UsageIntervals + 1][]uint64
	scratch []uint64
	polled  []suspicious.Polled // what is polled comes last, if it is new
}

// Prepare does what a change of the polling configuration needs but for what only the
// owner can do, which is ResumeWith's. An error says what is wrong with p. Any goroutine
// may call it, also while the loop runs.
func (r *Recorder) Prepare(p *Polling) (*Prepared, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	// The owner changes them in the other order.
	base := r.reader.queues.Load()
	return prepare(p, base, r.reader.polled.Load()), nil
}

// plan is Prepare by the owner while it is not parked.
func (r *Recorder) plan(p *Polling) *Prepared {
	if r.queues == nil {
		// After a clear: what is gone was forgotten.
		r.queues = &queueSet{rx: r.setup.Polling.RxQueues, tx: r.setup.Polling.TxQueues}
	}
	return prepare(p, r.queues, r.reader.polled.Load())
}

func prepare(p *Polling, base *queueSet, polled *[]suspicious.Polled) *Prepared {
	n := &Prepared{polling: *p, base: base, queues: new(queueSet)}
	n.polling.RxQueues, n.polling.TxQueues = slices.Clone(p.RxQueues), slices.Clone(p.TxQueues)
	n.queues.rx, n.queues.tx = n.polling.RxQueues, n.polling.TxQueues

	had := slices.Concat(base.rx, base.goneRx)
	n.rxFrom, n.goneRxFrom = origins(had, n.queues.rx)
	if extra := len(n.goneRxFrom) - remembered; extra > 0 {
		n.goneRxFrom, n.forgotten = n.goneRxFrom[:remembered], n.goneRxFrom[remembered:]
	}
	n.queues.goneRx = pick(had, n.goneRxFrom)
	n.rx, n.goneRx = make([]rxQueue, len(n.rxFrom)), make([]*rxQueue, len(n.goneRxFrom))

	had = slices.Concat(base.tx, base.goneTx)
	n.txFrom, n.goneTxFrom = origins(had, n.queues.tx)
	n.goneTxFrom = n.goneTxFrom[:min(len(n.goneTxFrom), remembered)]
	n.queues.goneTx = pick(had, n.goneTxFrom)
	n.tx, n.goneTx = make([]txQueue, len(n.txFrom)), make([]*txQueue, len(n.goneTxFrom))

	for i := range n.usage {
		n.usage[i] = make([]uint64, len(n.rx))
	}
	n.scratch = make([]uint64, 0, len(n.rx))
	n.polled = addPolled(polled, n.queues.rx)
	return n
}

// origins returns where in had each of the queues is, or -1, and where those are that are
// none of them.
func origins(had, queues []Queue) (from, gone []int) {
	for _, q := range queues {
		from = append(from, slices.IndexFunc(had, q.same))
	}
	for i, q := range had {
		if !slices.ContainsFunc(queues, q.same) {
			gone = append(gone, i)
		}
	}
	return from, gone
}

func pick(queues []Queue, which []int) []Queue {
	picked := make([]Queue, len(which))
	for i, w := range which {
		picked[i] = queues[w]
	}
	return picked
}

// addPolled returns what was polled so far, and these queues behind it if they are not
// those polled last.
func addPolled(list *[]suspicious.Polled, rx []Queue) []suspicious.Polled {
	queues := make([]suspicious.Queue, len(rx))
	for i, q := range rx {
		queues[i] = suspicious.Queue{Port: q.Port, ID: q.ID, Size: q.Size}
	}
	var kept []suspicious.Polled
	if list != nil {
		kept = *list
	}
	if n := len(kept); n > 0 && slices.Equal(kept[n-1].Queues, queues) {
		return nil
	}
	return append(slices.Clone(kept), suspicious.Polled{Queues: queues})
}

// configure makes p, which was prepared for the queues there are, the polling
// configuration.
func (r *Recorder) configure(p *Prepared) {
	for i, j := range p.rxFrom {
		if j >= 0 {
			p.rx[i] = *r.rxQueue(j)
		}
		p.rx[i].Queue = p.queues.rx[i]
	}
	for i, j := range p.goneRxFrom {
		p.goneRx[i] = r.rxQueue(j)
	}
	for _, j := range p.forgotten {
		r.gone.add(r.rxQueue(j))
	}
	for i, j := range p.txFrom {
		if j >= 0 {
			p.tx[i] = *r.txQueue(j)
		}
		p.tx[i].Queue = p.queues.tx[i]
	}
	for i, j := range p.goneTxFrom {
		p.goneTx[i] = r.txQueue(j)
	}
	known := len(r.rx)
	r.rx, r.goneRx, r.tx, r.goneTx = p.rx, p.goneRx, p.tx, p.goneTx
	r.nowhere = rxQueue{}
	r.usage.poll(r, p, known)
	r.setup.Polling = p.polling
	r.reader.numQueues.Store(uint32(max(len(p.rx), len(p.tx))))
	r.publish(p)
	r.queues = p.queues
	r.reader.queues.Store(r.queues)
}

// rxQueue returns the rx queue of an index in a queueSet.
func (r *Recorder) rxQueue(i int) *rxQueue {
	if i < len(r.rx) {
		return &r.rx[i]
	}
	return r.goneRx[i-len(r.rx)]
}

func (r *Recorder) txQueue(i int) *txQueue {
	if i < len(r.tx) {
		return &r.tx[i]
	}
	return r.goneTx[i-len(r.tx)]
}

func (q *rxQueue) add(o *rxQueue) {
	for i, n := range o.cycles {
		q.cycles[i] += n
	}
	q.packets += o.packets
	sizes := o.sizes.sum()
	for i, n := range sizes.Classes {
		q.sizes.sums.Classes[i] += n
	}
	q.sizes.sums.Multicast += sizes.Multicast
	q.sizes.sums.Broadcast += sizes.Broadcast
}
