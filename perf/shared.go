package perf

import (
	"sync"

	"github.com/pmdperf/pmdperf/perf/tsc"
)

// Shared records for threads that are not PMDs, which Open vSwitch shows as its
// "main thread": packets and counters, but no iterations and no cycles. Any
// goroutine may call its methods; a mutex guards it, so that it is not for a poll
// loop.
type Shared struct {
	mu     sync.Mutex
	since  uint64
	totals Totals
	counts [NumBuiltin]uint64
}

func (s *Shared) init() { s.since = tsc.Now() }

// Batch records packets received in one batch.
func (s *Shared) Batch(packets int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if packets > 0 {
		s.totals.RxPackets += uint64(packets)
		s.totals.RxBatches++
	}
}

// Tx records packets sent in the given number of batches.
func (s *Shared) Tx(packets, batches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.totals.TxPackets += uint64(max(packets, 0))
	s.counts[TxBatches] += uint64(max(batches, 0))
}

// Drop records packets dropped.
func (s *Shared) Drop(packets int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.totals.Drops += uint64(max(packets, 0))
}

// Count adds n to a builtin counter; another is ignored.
func (s *Shared) Count(c Counter, n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if int(c) < NumBuiltin {
		s.counts[c] += n
	}
}

// Upcall records an upcall; ok says whether its flow was installed.
func (s *Shared) Upcall(ok bool) {
	if ok {
		s.Count(UpcallsOK, 1)
	} else {
		s.Count(UpcallsLost, 1)
	}
}

// Clear sets everything to nothing.
func (s *Shared) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since, s.totals, s.counts = tsc.Now(), Totals{}, [NumBuiltin]uint64{}
}

// Snapshot copies what was recorded into into, of the Kind Main. What a PMD's
// snapshot has besides is empty.
func (s *Shared) Snapshot(into *Snapshot) {
	into.reset()
	into.Kind, into.Name, into.Hz, into.Anchor = Main, "main", tsc.System().Hz(), tsc.Take()
	s.mu.Lock()
	defer s.mu.Unlock()
	into.Since, into.Now = s.since, tsc.Now()
	into.Until = into.Now
	into.Totals, into.Counts = s.totals, s.counts
}
