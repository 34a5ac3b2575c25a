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
	trip  uint64 // a pass of more cycles is accounted at once
	rx    []rxQueue
	level Level
	full  uint32        // packets of a full batch
	flags history.Flags // that records begin with: those of the level
	passState

	counts [256]uint64

	ring         history.Ring
	batchPackets histogram.Small

	scratch   [2][pending]uint64 // accounting's
	accounted uint64             // number of the first record not accounted yet
	sums      sums
	tx        []txQueue
	gone      rxQueue   // sums of rx queues that are no longer polled,
	goneRx    []rxQueue // but for the last of them, which may come back
	goneTx    []txQueue
	usage     usageIntervals

	setup   setup
	started bool
	// The detector has the copies of suspicious neighborhoods, and a lock of nobody.
	detector *suspicious.Detector

	clock func() uint64 // tsc.Now but in tests

	// counts as they were when the level went off, to which they return.
	countsBefore [256]uint64

	answerAfter uint64 // no request is answered before this tick
	milliTicks  uint64

	reader reader
}

// passState is what begins anew with every pass.
type passState struct {
	cur   int    // index in rx of the queue being polled; see noneYet
	slowQ int    // index in rx of the queue that took most of the pass so far
	slowT uint64 // and the ticks that it took
	inner uint64 // ticks of timers that ended inside the timer under way
	polls uint32 // packets that the poll under way returned
}

// rxQueue is what the owner keeps of an rx queue.
type rxQueue struct {
	busy, idle uint64
	packets    uint64
	sizes      sizeTally
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

// The first two entries of rx stand for no queue. Their times are thrown away, which
// spares the hot path a test. Before any queue was polled in a pass, the next Poll
// begins where the pass did (noneYet); after PollEnd it begins at a clock reading of
// its own (between).
const (
	noneYet    = 0
	between    = 1
	firstQueue = 2
)

// queues returns the rx queues that are polled.
func (r *Recorder) queues() []rxQueue { return r.rx[min(firstQueue, len(r.rx)):] }

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
	r.trip = 1<<64 - 1
	r.milliTicks = max(1, uint64(hz/1000))
	r.sums.timers = make([]TimerStats, len(cfg.Timers))
	r.configure(&cfg.Polling)
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
	if r.level != Off {
		r.poll(q)
	}
}

func (r *Recorder) poll(q int) {
	if r.cur != noneYet {
		now := tsc.Now()
		if now < r.mark {
			now = r.hold()
		}
		r.charge(now)
	}
	r.to(q)
}

// PollEnd ends the polling of a queue before the pass ends: what follows, until
// the next Poll or End, is the loop's overhead.
func (r *Recorder) PollEnd() {
	if r.level == Off {
		return
	}
	r.stamp(tsc.Now())
	r.cur = between
}

// to makes q the queue being polled.
func (r *Recorder) to(q int) {
	r.cur = between
	if i := q + firstQueue; uint(q) < uint(history.MaxQueues) && i < len(r.rx) {
		r.cur = i
	}
}

// stamp charges the time since the last stamp to the queue being polled.
func (r *Recorder) stamp(now uint64) {
	if now < r.mark {
		now = r.hold()
	}
	r.charge(now)
}

// charge is stamp for a time that is not before the last stamp. It is apart, and
// callers on the hot path make stamp's test themselves, because it is small enough
// to be inlined there.
func (r *Recorder) charge(now uint64) {
	d := now - r.mark
	r.mark = now
	q := &r.rx[r.cur]
	if r.polls != 0 {
		q.busy += d
		q.packets += uint64(r.polls)
		r.polls = 0
	} else {
		q.idle += d
	}
	if d > r.slowT {
		r.slowT = d
		r.slowQ = r.cur
	}
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

func (r *Recorder) batch(packets, fill int) {
	rec := r.record()
	if r.level == Detailed && fill > 0 && uint64(fill) > uint64(rec.Fill) {
		rec.Fill = uint32(min(uint64(fill), math.MaxUint32))
	}
	if packets <= 0 {
		return
	}
	n := uint32(packets)
	rec.Rx += n
	r.polls += n
	if r.level == Detailed {
		rec.Batches++
		if n >= r.full {
			rec.Full++
		}
		r.batchPackets.Add(uint64(n))
	}
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
	// What is no queue falls on one of the first two entries, which are thrown away.
	if i := q + firstQueue; r.level != Off && uint(i) < uint(len(r.rx)) {
		r.rx[i].sizes.add(sizes)
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
	if i := q + firstQueue; r.level != Off && uint(i) < uint(len(r.rx)) {
		r.rx[i].sizes.casts(multicast, broadcast)
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
	r.charge(now)
	rec := r.record()
	rec.End = now
	cycles := now - r.start - rec.Sleep
	rec.Cycles = cycles
	// Flags count queues from 1 on, and 0 is none.
	rec.Flags |= history.Flags(max(r.slowQ, firstQueue-1) - (firstQueue - 1))
	r.begin(now)
	r.next++
	*r.record() = history.Record{Flags: r.flags}
	if cycles > r.trip || r.next%pending == 0 || r.request.Load() != nil {
		r.serve(now)
	}
}

// begin begins a pass at now, apart from its record.
func (r *Recorder) begin(now uint64) {
	r.start, r.mark = now, now
	r.passState = passState{}
}
