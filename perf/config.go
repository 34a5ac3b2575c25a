package perf

import (
	"fmt"
	"math"
	"time"

	"github.com/pmdperf/pmdperf/history"
)

// Config describes a recorder. The zero value of every field is usable.
type Config struct {
	// Name identifies the recorder in its registry. Empty means the name that
	// Open vSwitch would give the thread, as "pmd-c01/id:8".
	Name string
	// Core and NUMA are the processor core and the NUMA node of the loop's thread.
	// Core must be unique in a registry, since commands name a PMD by it.
	Core, NUMA int
	// ID is the thread's number in its name.
	ID int
	// Level to begin with.
	Level Level
	// Polling is the polling configuration to begin with.
	Polling Polling
	// BatchSize is the largest batch that one rx burst can return, 0 for 32. A batch
	// of that size is full: the queue may have held more.
	BatchSize int
	// Captures is how many suspicious iterations can wait, each with its neighborhood
	// in 64 KiB, for somebody to take them; 0 for 8, negative for none.
	Captures int
	// Counters and Timers name counters and timers of the embedder's own. Their
	// order gives their numbers: see Recorder.Counter and Recorder.Timer.
	Counters, Timers []string
}

// Polling is what a loop polls. It may change at run time, with Park and Resume
// around the change.
type Polling struct {
	// RxQueues are the queues that the loop polls, TxQueues those that it sends on.
	RxQueues, TxQueues []Queue
	// Isolated says that the PMD polls only queues that were pinned to it.
	Isolated bool
	// MaxSleep is the longest that the loop sleeps in a pass when it has little to do.
	MaxSleep time.Duration
}

// A Queue is one rx or tx queue of a port.
type Queue struct {
	Port string
	ID   int
	// Size is the capacity of the queue's ring in packets, 0 if unknown.
	Size int
}

// same reports whether o is the same queue, whatever its size.
func (q Queue) same(o Queue) bool { return q.Port == o.Port && q.ID == o.ID }

// defaultBatchSize is that of Open vSwitch and most DPDK programs.
const defaultBatchSize = 32

// defaultCaptures is as many as a supervisor that looks every few milliseconds needs.
const defaultCaptures = 8

// check returns the configuration with its defaults filled in, or what is wrong.
func (c Config) check() (Config, error) {
	if c.Core < 0 || c.NUMA < 0 || c.ID < 0 {
		return c, fmt.Errorf("core %d, NUMA node %d and id %d must not be negative", c.Core, c.NUMA, c.ID)
	}
	if c.Name == "" {
		c.Name = ThreadName(c.Core, c.ID)
	}
	if c.Level > Off {
		return c, fmt.Errorf("unknown %v: use Off, Basic or Detailed", c.Level)
	}
	if c.BatchSize == 0 {
		c.BatchSize = defaultBatchSize
	}
	if c.BatchSize < 1 || c.BatchSize > math.MaxUint16 {
		return c, fmt.Errorf("batch size %d is not within 1 .. %d", c.BatchSize, math.MaxUint16)
	}
	if c.Captures == 0 {
		c.Captures = defaultCaptures
	}
	c.Captures = max(c.Captures, 0)
	if err := c.Polling.check(); err != nil {
		return c, err
	}
	if len(c.Counters) > MaxCounters {
		return c, fmt.Errorf("%d counters are more than %d", len(c.Counters), MaxCounters)
	}
	if err := distinct("counter", append(builtinNames[:len(builtinNames):len(builtinNames)], c.Counters...)); err != nil {
		return c, err
	}
	return c, distinct("timer", c.Timers)
}

func (p *Polling) check() error {
	if len(p.RxQueues) > history.MaxQueues {
		return fmt.Errorf("%d rx queues are more than %d", len(p.RxQueues), history.MaxQueues)
	}
	for _, dir := range []struct {
		name   string
		queues []Queue
	}{{"rx queue", p.RxQueues}, {"tx queue", p.TxQueues}} {
		seen := make(map[Queue]bool)
		for _, q := range dir.queues {
			key := Queue{Port: q.Port, ID: q.ID}
			if q.Port == "" || q.ID < 0 || q.Size < 0 {
				return fmt.Errorf("%s %q %d of size %d: it needs a port name, and no negative numbers", dir.name, q.Port, q.ID, q.Size)
			}
			if seen[key] {
				return fmt.Errorf("%s %d of port %q is there twice", dir.name, q.ID, q.Port)
			}
			seen[key] = true
		}
	}
	return nil
}

func distinct(what string, names []string) error {
	seen := make(map[string]bool, len(names))
	for _, n := range names {
		if n == "" {
			return fmt.Errorf("a %s needs a name", what)
		}
		if seen[n] {
			return fmt.Errorf("%s %q is there twice", what, n)
		}
		seen[n] = true
	}
	return nil
}

// ThreadName returns the name that Open vSwitch gives the thread of a PMD, as
// "pmd-c01/id:8", cut to the 15 bytes that Linux keeps.
func ThreadName(core, id int) string {
	name := fmt.Sprintf("pmd-c%02d/id:%d", core, id)
	return name[:min(len(name), 15)]
}
