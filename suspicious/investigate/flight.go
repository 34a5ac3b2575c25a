package investigate

import (
	"strings"
	"time"

	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/ovslog"
)

// AddFlight adds a line of a flight record.
func (c *Case) AddFlight(source, line int, f *suspicious.FlightRecord) {
	c.Found(source, "flight record")
	c.sources[source].Events++
	t := c.thread(f.Name)
	t.core = f.Core
	t.ours = true
	c.span.see(f.Time)
	t.span.see(f.Time)
	if f.Hz > 0 {
		t.hzLow, t.hzHigh, t.hzFrom = f.Hz, f.Hz, 1<<63
	}
	if f.Iteration < t.last.iteration && f.Time.After(t.last.time) {
		t.epochs++
	}
	at := &sighting{source: int32(source), epoch: t.epochs - 1, line: line, time: f.Time}
	for _, r := range f.Reasons {
		if r.Reason == "cycles" && f.Hz > 0 {
			c.flightThreshold(source, line, uint64(float64(r.Threshold)/f.Hz*1e6+0.5), f.Time)
		}
	}
	if f.HeldBack+f.Lost > 0 {
		t.dropped += f.HeldBack + f.Lost
	}
	more := &flight{hz: f.Hz, rows: make([]Row, len(f.Records)), capacity: capacity(f), causes: f.Causes}
	rows := make([]ovslog.Row, len(f.Records))
	culprit := -1
	for i := range f.Records {
		r := &f.Records[i]
		row := ovslog.Row{
			Iteration: r.Iteration, Cycles: r.Cycles, Packets: uint64(r.Rx), QueueFill: uint64(r.Fill), Upcalls: uint64(r.Upcalls),
			CyclesPerPacket: over(r.Cycles, r.Rx), PacketsPerBatch: over(uint64(r.Rx), r.Batches), CyclesPerUpcall: over(r.UpcallCycles, r.Upcalls),
		}
		rows[len(rows)-1-i] = row
		if r.Iteration == f.Iteration {
			culprit = len(rows) - 1 - i
		}
		full := fromLog(&row, f.Hz)
		full.Offset, full.Drops, full.After, full.Queue = r.Offset, uint64(r.Drops), r.After, queueName(f, r)
		if f.Hz > 0 {
			full.Sleep = float64(r.Sleep) / f.Hz * 1e6
		}
		more.rows[i] = full
		if r.Offset > f.Records[max(0, i-1)].Offset {
			t.span.see(f.Time.Add(time.Duration(r.Offset * 1e3)))
		}
	}
	if len(rows) > 0 {
		t.table(at, rows, culprit)
		t.tables++
	}
	var reasons []string
	for _, r := range f.Reasons {
		reasons = append(reasons, strings.Clone(r.Reason))
	}
	s := t.header(at, f.Iteration, &head{us: f.Micros, reasons: reasons})
	if s.more == nil {
		s.more = more
	}
}

func (c *Case) flightThreshold(source, line int, us uint64, at time.Time) {
	for i := range c.set {
		if s := &c.set[i]; s.flight && s.Micros == us {
			return
		}
	}
	c.AddThreshold(source, Threshold{Place: Place{Line: line}, Time: at, On: true, Micros: us, flight: true})
}

func over(n uint64, by uint32) uint64 {
	if by == 0 {
		return 0
	}
	return n / uint64(by)
}

// polled returns the queues that an iteration polled.
func polled(f *suspicious.FlightRecord, iteration uint64) []suspicious.FlightQueue {
	var queues []suspicious.FlightQueue
	for _, p := range f.Polled {
		if p.From <= iteration {
			queues = p.Queues
		}
	}
	return queues
}

func queueName(f *suspicious.FlightRecord, r *suspicious.FlightRow) string {
	if r.Queue == nil {
		return ""
	}
	queues := polled(f, r.Iteration)
	if *r.Queue < 0 || *r.Queue >= len(queues) {
		return ""
	}
	q := queues[*r.Queue]
	return clip(q.Port) + " " + itoa(q.ID)
}

// capacity returns how many packets the queues of the iteration hold, 0 if unknown.
func capacity(f *suspicious.FlightRecord) (n uint64) {
	for _, q := range polled(f, f.Iteration) {
		if q.Size <= 0 {
			return 0
		}
		n += uint64(q.Size)
	}
	return n
}
