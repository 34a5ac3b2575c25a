package ovslog

import (
	"bytes"
	"strconv"
	"strings"
	"time"
)

// Form is a form of the log.
type Form int

const (
	// OneMessage is our own: the table under its header in one message, the row of
	// the culprit marked, the iteration's own time and its causes at the end of the header.
	OneMessage Form = iota
	// TwoMessages is that of Open vSwitch: the table is a message of its own.
	TwoMessages
)

// What the messages are made of.
const (
	announcement = "Suspicious iteration ("
	neighborhood = "Neighborhood of suspicious iteration:"
	causes       = "; " // before them, after the iteration's own time
	heading      = "   iter                cycles       packets      cycles/pkt   pkts/batch   vhost qlen   upcalls      cycles/upcall"
	mark         = " *" // after the last column, where it keeps no reader from the eight before it
)

// columns holds the width of each column, padding included, after the three blanks
// that begin a row.
func columns() [8]int { return [8]int{20, 13, 13, 13, 13, 13, 13, 11} }

// stampLayout is how Open vSwitch writes times.
const stampLayout = "2006-01-02T15:04:05.000Z"

// Append appends the event's text, in whole lines. It takes the header from
// HasHeader and the table from Table; an event with neither appends nothing. Line
// ends and parentheses in the thread's name and in reasons become blanks.
//
// In the form TwoMessages a table has TableTime and TableSeq; where they are zero,
// the header's Time and the number after the header's.
func (e *Event) Append(b []byte, form Form) []byte {
	if e.HasHeader {
		b = appendPrefix(b, e.Thread, e.Time, e.Seq)
		b = append(b, announcement...)
		for i, reason := range e.Reasons {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = appendWord(b, reason)
		}
		b = append(b, "): iter="...)
		b = strconv.AppendUint(b, e.Iteration, 10)
		b = append(b, " duration="...)
		b = strconv.AppendUint(b, e.Duration, 10)
		b = append(b, " us"...)
		if form == OneMessage && !e.Began.IsZero() {
			b = append(b, " at "...)
			b = e.Began.UTC().AppendFormat(b, "2006-01-02T15:04:05.000000Z")
			if e.Causes != "" {
				b = append(b, causes...)
				b = appendWord(b, e.Causes)
			}
		}
		b = append(b, '\n')
	}
	if len(e.Table) == 0 {
		return b
	}
	lost := !e.HasHeader && e.Thread == "" && e.TableTime.IsZero() && e.TableSeq == 0 // the first line, with its prefix
	if (!e.HasHeader || form == TwoMessages) && !lost {
		at, seq := e.TableTime, e.TableSeq
		if at.IsZero() {
			at = e.Time
		}
		if seq == 0 && e.HasHeader {
			seq = e.Seq + 1
		}
		b = appendPrefix(b, e.Thread, at, seq)
	}
	b = append(b, neighborhood+"\n"+heading+"\n"...)
	for i := range e.Table {
		b = e.Table[i].append(b)
		if form == OneMessage && i == e.Culprit {
			b = append(b, mark...)
		}
		b = append(b, '\n')
	}
	return b
}

func (r *Row) append(b []byte) []byte {
	b = append(b, heading[:3]...)
	widths := columns()
	for i, v := range [8]uint64{r.Iteration, r.Cycles, r.Packets, r.CyclesPerPacket, r.PacketsPerBatch, r.QueueFill, r.Upcalls, r.CyclesPerUpcall} {
		end := len(b) + widths[i]
		b = strconv.AppendUint(b, v, 10)
		// Three blanks part an overlong value from the next one, as in printf.
		pad := end - len(b)
		if i < len(widths)-1 {
			pad = max(pad, 3)
		}
		for range pad {
			b = append(b, ' ')
		}
	}
	return b
}

// appendPrefix appends what stands before a message: time, number, module and
// thread, level.
func appendPrefix(b []byte, thread string, at time.Time, seq uint64) []byte {
	b = at.UTC().AppendFormat(b, stampLayout)
	b = append(b, '|')
	start := len(b)
	b = strconv.AppendUint(b, seq, 10)
	if n := 5 - (len(b) - start); n > 0 {
		b = append(b[:start], strings.Repeat("0", n)...)
		b = strconv.AppendUint(b, seq, 10)
	}
	b = append(b, "|pmd_perf"...)
	if thread != "" {
		b = append(b, '(')
		b = appendWord(b, thread)
		b = append(b, ')')
	}
	return append(b, "|WARN|"...)
}

// appendWord appends text of others so that it can't end the place it stands in.
func appendWord(b []byte, s string) []byte {
	start := len(b)
	b = append(b, s...)
	for i, c := range b[start:] {
		if c < ' ' || bytes.IndexByte([]byte(`()|\#<>`), c) >= 0 {
			b[start+i] = ' '
		}
	}
	return b
}
