package perf

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/perf/tsc"
	"github.com/pmdperf/pmdperf/suspicious"
)

// pending is how many records at most wait to be accounted. Summing them up in
// one tight loop costs less than half of updating the sums in every pass.
const pending = 64

// The binners of the metrics that have a fine histogram.
var (
	cyclesBinner          = histogram.NewBinner(histogram.CyclesPerIteration.Walls())
	cyclesPerPacketBinner = histogram.NewBinner(histogram.CyclesPerPacket.Walls())
	cyclesPerUpcallBinner = histogram.NewBinner(histogram.CyclesPerUpcall.Walls())
)

// A Recorder records the passes ("iterations") of one poll loop.
//
// It has one owner: the loop's thread, the only one that may call the methods of
// the first group (Start to Close). Any goroutine may call Snapshot, Clear, SetLevel
// and the methods that return what does not change. The owner's methods allocate
// nothing, take no lock, make no system call, wake nobody and return no error:
// what makes no sense is held to the nearest that does.
//
// A pass begins where the one before ended, and End ends it with one reading of
// the clock.
type Recorder struct {
	// The words that readers write, away from the owner's. The owner only loads
	// request, once a pass; the line stays shared as long as nobody asks.
	request atomic.Pointer[request]
	state   atomic.Uint32
	_       [48]byte

	// What every pass uses.
	next  uint64 // number of the pass under way: its record is ring.At(next)
	start uint64 // tick at which it began
	mark  uint64 // last stamp taken in it; a clock behind it went backwards
	trip  uint64 // after a pass of so many cycles serve is called; see arm
	rx    []rxQueue
	level Level
	full  uint32        // packets of a full batch
	flags history.Flags // that records begin with: those of the level
	passState

	counts [256]uint64

	_            [24]byte // so that no record lies on two cache lines; a test looks
	ring         history.Ring
	batchPackets histogram.Small

	lists     lists  // accounting's
	accounted uint64 // number of the first record not accounted yet
	sums      sums
	tx        []txQueue
	nowhere   rxQueue    // what no queue is charged with
	gone      rxQueue    // sums of rx queues that are no longer polled,
	goneRx    []*rxQueue // but for the last of them, which may come back
	goneTx    []*txQueue
	queues    *queueSet // which all these are; nil after a clear forgot some
	usage     usageIntervals

	setup   setup
	started bool
	// The detector has the copies of suspicious neighborhoods, and a lock of nobody.
	detector *suspicious.Detector

	clock func() uint64 // tsc.Now but in tests

	// counts as they were when the level went off, to which they return.
	countsBefore [256]uint64

	limit       uint64 // a pass of more cycles is accounted at once
	answerAfter uint64 // no request is answered before this tick
	rest        rest
	milliTicks  uint64

	reader reader
}

// passState is what begins anew with every pass.
type passState struct {
	cur   int           // the queue being polled; see noneYet
	slowT uint64        // ticks that the queue took that took most of the pass so far
	slowQ history.Flags // and that queue, as flags have it
	polls uint32        // packets that the poll under way returned
	inner uint64        // ticks of timers that ended inside the timer under way
}

// rxQueue is what the owner keeps of an rx queue.
type rxQueue struct {
	cycles  [2]uint64 // ticks of polls that returned nothing, and of those that did
	packets uint64
	fullIn  uint64 // pass of the last full batch
	fullAt  uint64 // packets up to then
	inRow   uint32 // full batches in a row up to then
	sizes   sizeTally
	Queue
}

type txQueue struct {
	packets uint64
	sizes   sizeTally
	Queue
}

// setup is what does not change while a recorder lives.
type setup struct {
	Config
	hz float64
}

// What is being polled is kept as the queue's index in rx + firstCur. Before any queue
// was polled in a pass, the next Poll begins where the pass did (noneYet); after PollEnd
// it begins at a clock reading of its own (between). These, and whatever else is no
// queue's, stand for no queue.
const (
	noneYet  = 0
	between  = 1
	firstCur = history.MaxQueues
)

// newRecorder returns a parked recorder; now is the clock.
func newRecorder(cfg Config, hz float64, now func() uint64) (*Recorder, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, err
	}
	cfg.Counters, cfg.Timers = slices.Clone(cfg.Counters), slices.Clone(cfg.Timers)
	r := &Recorder{clock: now, setup: setup{cfg, hz}, detector: suspicious.New(cfg.Captures)}
	r.full = uint32(cfg.BatchSize)
	r.setLevel(cfg.Level)
	r.limit = math.MaxUint64
	r.arm()
	r.milliTicks = max(1, uint64(hz/1000))
	r.sums.timers = make([]TimerStats, len(cfg.Timers))
	r.queues = new(queueSet)
	r.configure(r.plan(&cfg.Polling))
	r.start = now()
	r.clear(r.start)
	r.usage.init(r)
	r.state.Store(uint32(Parked))
	r.reader.init(r)
	return r, nil
}

// record returns the record of the pass under way.
func (r *Recorder) record() *history.Record { return r.ring.At(r.next) }

// Poll begins the polling of rx queue q, an index in Polling.RxQueues, and ends
// that of the queue before: what follows is charged to q. The first Poll of a pass
// reads no clock, as q is charged from the beginning of the pass; the last queue of
// a pass is charged to its end, unless PollEnd comes first.
func (r *Recorder) Poll(q int) {
	if r.level == Off {
		return
	}
	if r.cur != noneYet {
		r.pollNext()
	}
	r.cur = q + firstCur
}

// pollNext ends the polling of a queue before that of the next begins.
func (r *Recorder) pollNext() { r.stamp(tsc.Now()) }

// PollEnd ends the polling of a queue before the pass ends: what follows, until
// the next Poll or End, is the loop's overhead.
func (r *Recorder) PollEnd() {
	if r.level == Off {
		return
	}
	r.stamp(tsc.Now())
	r.cur = between
}

// stamp charges the time since the last stamp to the queue being polled.
func (r *Recorder) stamp(now uint64) {
	if now < r.mark {
		now = r.hold()
	}
	d := now - r.mark
	r.mark = now
	if q := r.charge(d); d > r.slowT {
		r.slowQ, r.slowT = q, d
	}
	r.polls = 0
}

// charge charges d ticks to the queue being polled and returns it as flags have it.
func (r *Recorder) charge(d uint64) history.Flags {
	q, flag := r.polled()
	q.cycles[notZero(r.polls)%2] += d
	q.packets += uint64(r.polls)
	return flag
}

// polled returns the queue being polled, and itself as flags have it. For no queue there
// is one that is thrown away, which spares a test that would cost more.
func (r *Recorder) polled() (*rxQueue, history.Flags) {
	if i := r.cur - firstCur; uint(i) < uint(len(r.rx)) {
		return &r.rx[i], history.Flags(i + 1)
	}
	return &r.nowhere, 0
}

// hold returns the time to use where the clock went backwards.
//
//go:noinline
func (r *Recorder) hold() uint64 {
	r.sums.clockBack++
	r.record().Flags |= history.ClockBack
	// Readers need not wait until the clock has caught up.
	r.answerAfter = min(r.answerAfter, r.mark)
	return r.mark
}

// Batch records one rx batch of the queue being polled: the packets that the burst
// returned and the queue's fill, those packets and what remains included (0 if
// unknown). A call with no packets only notes the fill.
func (r *Recorder) Batch(packets, fill int) {
	if r.level != Off {
		r.batch(packets, fill)
	}
}

// batch has no branch on its arguments but such as are hardly ever taken: whether a
// queue had anything is what no processor can predict.
func (r *Recorder) batch(packets, fill int) {
	if uint64(packets)|uint64(fill) > math.MaxUint32 {
		packets, fill = clamp(packets), clamp(fill)
	}
	rec, n := r.record(), uint32(packets)
	rec.Rx += n
	r.polls += n
	if r.level == Detailed {
		one := notZero(n)
		rec.Batches += uint32(one)
		rec.Fill = max(rec.Fill, uint32(fill))
		if n >= r.full {
			r.fullBatch(rec, n)
		}
		r.batchPackets.AddN(uint64(n), one)
	}
}

// clamp holds n to what a field of a record can hold.
func clamp(n int) int { return int(min(uint64(max(n, 0)), math.MaxUint32)) }

// fullBatch notes that a batch of n packets of the queue being polled was full. Such
// batches are in a row if no pass is between them, and no packets, which would have been
// in a batch that was not full. That costs nothing in passes without full batches.
func (r *Recorder) fullBatch(rec *history.Record, n uint32) {
	rec.Full = uint16(min(uint32(rec.Full)+1, math.MaxUint16))
	q, _ := r.polled()
	packets := q.packets + uint64(r.polls)
	if q.fullIn+1 < r.next || q.fullAt != packets-uint64(n) {
		q.inRow = 0
	}
	q.fullIn, q.fullAt = r.next, packets
	q.inRow = min(q.inRow+1, math.MaxUint16)
	rec.InRow = max(rec.InRow, uint16(q.inRow))
}

// Tx records packets sent in the given number of batches.
func (r *Recorder) Tx(packets, batches int) {
	if r.level == Off {
		return
	}
	r.record().Tx += uint32(max(packets, 0))
	r.counts[TxBatches] += uint64(max(batches, 0))
}

// Drop records packets that the loop dropped or that a tx queue did not take.
func (r *Recorder) Drop(packets int) { r.record().Drops += uint32(max(packets, 0)) }

// RxDrop records packets that found an rx queue's ring full, and so never reached the
// loop, as far as the loop comes to know of them: from a driver's counter that it reads
// now and then, say.
func (r *Recorder) RxDrop(packets int) {
	if packets <= 0 || r.level == Off {
		return
	}
	r.record().Flags |= history.RxDropped
	r.sums.totals.RxDrops += uint64(packets)
	r.detector.RxDropped(r.next, uint64(packets))
}

// Count adds n to a counter.
func (r *Recorder) Count(c Counter, n uint64) { r.counts[c] += n }

// Upcall records one upcall that took the given number of ticks, sleep excluded,
// as StopTimer returns them; ok says whether its flow was installed.
func (r *Recorder) Upcall(cycles uint64, ok bool) {
	if r.level == Off {
		return
	}
	c := UpcallsOK
	if !ok {
		c = UpcallsLost
	}
	r.counts[c]++
	if r.level == Detailed {
		rec := r.record()
		rec.Upcalls++
		rec.UpcallCycles += cycles
		r.sums.cyclesPerUpcall.Add(cyclesPerUpcallBinner, cycles)
	}
}

// RxSizes records the sizes in bytes of packets received on rx queue q, an index in
// Polling.RxQueues. It costs more than all else and is the loop's to call or not.
func (r *Recorder) RxSizes(q int, sizes []uint16) {
	if r.level != Off && uint(q) < uint(len(r.rx)) {
		r.rx[q].sizes.add(sizes)
	}
}

// TxSizes records the sizes in bytes of packets sent on tx queue q, an index in
// Polling.TxQueues.
func (r *Recorder) TxSizes(q int, sizes []uint16) {
	if r.level != Off && uint(q) < uint(len(r.tx)) {
		r.tx[q].packets += uint64(len(sizes))
		r.tx[q].sizes.add(sizes)
	}
}

// RxCasts records how many of the packets received on rx queue q went to a
// multicast and to the broadcast address.
func (r *Recorder) RxCasts(q int, multicast, broadcast int) {
	if r.level != Off && uint(q) < uint(len(r.rx)) {
		r.rx[q].sizes.casts(multicast, broadcast)
	}
}

// TxCasts does the same for packets sent on tx queue q.
func (r *Recorder) TxCasts(q int, multicast, broadcast int) {
	if r.level != Off && uint(q) < uint(len(r.tx)) {
		r.tx[q].sizes.casts(multicast, broadcast)
	}
}

// End ends the pass under way, and the next one begins. It is also where readers'
// requests are answered.
//
// It must not be inlined: its stack check is where the Go runtime can stop a
// loop that runs with asynchronous preemption switched off.
//
//go:noinline
func (r *Recorder) End() {
	if r.level != Off {
		r.end(tsc.Now())
	} else if r.request.Load() != nil {
		r.serveOff()
	}
}

// end ends the pass at now.
func (r *Recorder) end(now uint64) {
	if now < r.mark {
		now = r.hold()
	}
	// As stamp does it, but that nothing has to be kept.
	d := now - r.mark
	slow := r.slowQ
	if q := r.charge(d); d > r.slowT {
		slow = q
	}
	rec := r.record()
	rec.End = now
	cycles := now - r.start - rec.Sleep
	rec.Cycles = cycles
	rec.Flags |= slow
	r.begin(now)
	r.next++
	*r.record() = history.Record{Flags: r.flags}
	if cycles >= r.trip || r.next%pending == 0 || r.request.Load() != nil {
		r.serve(now)
	}
}

// begin begins a pass at now, apart from its record.
func (r *Recorder) begin(now uint64) {
	r.start, r.mark = now, now
	r.passState = passState{}
}
