package ovs

import (
	"math"
	"strconv"
	"strings"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/perf"
)

// iterationTable returns the last n iterations that were recorded in detail, newest
// first. Like the original it leaves out the others, whose batches, upcalls and queue
// fill nobody counted.
func iterationTable(s *perf.Snapshot, n int, x *Extra) *Table {
	t := &Table{Columns: []string{"iter", "cycles", "packets", "cycles/pkt", "pkts/batch",
		"vhost qlen", "upcalls", "cycles/upcall"}}
	t.extra(x.WallClock, columnClock)
	t.extra(x.Tx, columnTx)
	t.extra(x.Slept, columnSlept)
	t.extra(x.Queue, columnQueue)
	t.extra(x.Mark, columnMark)
	reloaded := false
	for i := len(s.Iterations) - 1; i >= 0 && len(t.Rows) < n; i-- {
		r := &s.Iterations[i]
		if r.Flags&history.Detailed != 0 {
			row := cells(s.FirstIteration()+uint64(i), r.Cycles, uint64(r.Rx),
				quotient(r.Cycles, uint64(r.Rx)), quotient(uint64(r.Rx), uint64(r.Batches)),
				uint64(r.Fill), uint64(r.Upcalls), quotient(r.UpcallCycles, uint64(r.Upcalls)))
			if x.WallClock {
				row = append(row, clockCell(s, r.End))
			}
			if x.Tx {
				row = append(row, strconv.FormatUint(uint64(r.Tx), 10))
			}
			if x.Slept {
				row = append(row, microsCell(s, r.Sleep))
			}
			if x.Queue {
				row = append(row, queueCell(s, r, reloaded))
			}
			if x.Mark {
				row = append(row, markCell(r))
			}
			t.Rows = append(t.Rows, row)
		}
		reloaded = reloaded || r.Flags.After(history.Reload)
	}
	return t
}

// milliTable returns the last n complete milliseconds, newest first. Kpps is the
// number of packets per real millisecond, however long the row lasted.
func milliTable(s *perf.Snapshot, n int, x *Extra) *Table {
	t := &Table{Columns: []string{"ms", "iterations", "cycles/it", "Kpps", "cycles/pkt",
		"pkts/batch", "vhost qlen", "upcalls", "cycles/upcall"}}
	t.extra(x.WallClock, columnClock)
	t.extra(x.Tx, columnTx)
	t.extra(x.Slept, columnSlept)
	t.extra(x.Lasted, columnLasted)
	for i := len(s.Millis) - 1; i >= 0 && len(t.Rows) < n; i-- {
		m := &s.Millis[i]
		row := cells(millisOf(s, m.End), uint64(m.Iterations), quotient(m.Cycles, uint64(m.Iterations)),
			kpps(s, m), quotient(m.BusyCycles, uint64(m.Rx)), quotient(uint64(m.Rx), uint64(m.Batches)),
			quotient(m.SumFill, uint64(m.Iterations)), uint64(m.Upcalls),
			quotient(m.UpcallCycles, uint64(m.Upcalls)))
		if x.WallClock {
			row = append(row, clockCell(s, m.End))
		}
		if x.Tx {
			row = append(row, strconv.FormatUint(uint64(m.Tx), 10))
		}
		if x.Slept {
			row = append(row, microsCell(s, m.Sleep))
		}
		if x.Lasted {
			row = append(row, microsCell(s, m.Duration))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (t *Table) extra(wanted bool, column string) {
	if wanted {
		t.Columns = append(t.Columns, column)
	}
}

func cells(values ...uint64) []string {
	row := make([]string, len(values), len(values)+5)
	for i, v := range values {
		row[i] = strconv.FormatUint(v, 10)
	}
	return row
}

// quotient returns a/b in whole numbers as the original's tables have it, 0 if b is 0.
func quotient(a, b uint64) uint64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// millisOf returns a tick in milliseconds of the tick clock, which is what numbers the
// rows: the number itself means nothing, but its distance to another does.
func millisOf(s *perf.Snapshot, tick uint64) uint64 {
	hz, ok := frequency(s)
	if !ok {
		return 0
	}
	return uint64(float64(tick) / hz * 1000)
}

// kpps returns the packets received per millisecond of the row's real length. Without
// a frequency the row is taken for a millisecond, which is what it was cut for.
func kpps(s *perf.Snapshot, m *history.Milli) uint64 {
	hz, ok := frequency(s)
	if !ok || m.Duration == 0 {
		return uint64(m.Rx)
	}
	return uint64(math.Round(float64(m.Rx) / (float64(m.Duration) / hz * 1000)))
}

func clockCell(s *perf.Snapshot, tick uint64) string {
	if t, ok := wallClock(s, tick); ok {
		return t.Format("15:04:05.000000")
	}
	return "-"
}

func microsCell(s *perf.Snapshot, ticks uint64) string {
	hz, ok := frequency(s)
	if !ok {
		return "-"
	}
	return fixed(float64(ticks)/hz*1e6, 1)
}

// queueCell names the queue that took the most of a pass. The number in the record
// is one of the polling configuration at the time, so that it says nothing once there
// was a reload.
func queueCell(s *perf.Snapshot, r *history.Record, reloaded bool) string {
	i, ok := r.Flags.Queue()
	if !ok || reloaded || i >= len(s.RxQueues) {
		return "-"
	}
	q := &s.RxQueues[i]
	// A cell must not contain a blank.
	return strings.Join(words(q.Port), "_") + "/" + strconv.Itoa(q.ID)
}

// markCell says what lay between the pass and the one before.
func markCell(r *history.Record) string {
	var marks []string
	for g := range history.NumGaps {
		if r.Flags.After(g) {
			marks = append(marks, g.String())
		}
	}
	if r.Flags&history.ClockBack != 0 {
		marks = append(marks, "clock-back")
	}
	if marks == nil {
		return "-"
	}
	return strings.Join(marks, ",")
}
