package ovslog

import (
	"fmt"
	"time"

	"github.com/pmdperf/pmdperf/suspicious"
)

// To returns a sink that appends reports to f, each as one message. What the rate limit
// held back and what could not be written is said in messages of their own.
func To(f *suspicious.File) suspicious.Sink {
	seqs := make(map[string]uint64) // numbers of the messages, by thread
	return func(r *suspicious.Report) {
		f.Append(func(lost uint64) []byte {
			var b []byte
			now := time.Now()
			for _, missing := range []struct {
				n    uint64
				text string
			}{{r.HeldBack, "were held back by the rate limit"}, {lost, "could not be written"}} {
				if missing.n > 0 {
					seqs[r.Name]++
					b = fmt.Appendf(b, "%s|%05d|pmd_perf(%s)|WARN|%d suspicious iterations before this one %s\n",
						now.UTC().Format(stampLayout), seqs[r.Name], r.Name, missing.n, missing.text)
				}
			}
			// The numbers of messages that can't be written are missing in the log.
			seqs[r.Name]++
			return eventOf(r, now, seqs[r.Name]).Append(b, OneMessage)
		})
	}
}

// eventOf returns a report as an event of the log.
func eventOf(r *suspicious.Report, now time.Time, seq uint64) *Event {
	culprit := r.Culprit()
	e := &Event{
		Origin: Origin{Thread: r.Name, Time: now, Seq: seq}, Core: r.Core,
		Iteration: r.Iteration, Duration: uint64(r.Duration(culprit.Cycles).Microseconds()), Began: r.At(culprit.Start()),
		Causes: r.Explanation(), Culprit: -1, HasHeader: true,
	}
	for reason := range r.Reasons.All() {
		e.Reasons = append(e.Reasons, reason.Text())
	}
	average := func(total, n uint64) uint64 { return total / max(n, 1) }
	for i := len(r.Records) - 1; i >= 0; i-- {
		rec, n := &r.Records[i], r.First+uint64(i)
		if n == r.Iteration {
			e.Culprit = len(e.Table)
		}
		row := Row{
			Iteration: n, Cycles: rec.Cycles, Packets: uint64(rec.Rx), PacketsPerBatch: average(uint64(rec.Rx), uint64(rec.Batches)),
			QueueFill: uint64(rec.Fill), Upcalls: uint64(rec.Upcalls), CyclesPerUpcall: average(rec.UpcallCycles, uint64(rec.Upcalls)),
		}
		if rec.Rx > 0 {
			row.CyclesPerPacket = rec.Cycles / uint64(rec.Rx)
		}
		e.Table = append(e.Table, row)
	}
	return e
}
