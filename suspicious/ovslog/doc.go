// Package ovslog writes and reads Open vSwitch's log of suspicious iterations.
//
// Open vSwitch says of a suspicious iteration with two warnings of its module
// pmd_perf, a header and a table:
//
//	2026-11-30T14:49:54.194Z|00425|pmd_perf(pmd-c01/id:8)|WARN|Suspicious iteration (Excessive total cycles): iter=420424205 duration=6833 us
//	2026-11-30T14:49:54.194Z|00426|pmd_perf(pmd-c01/id:8)|WARN|Neighborhood of suspicious iteration:
//	   iter                cycles       packets      cycles/pkt   ...
//	   420424206           2218         0            0            ...
//	   420424205           15716010     0            0            ...
//	   420424204           270          0            0            ...
//
// The newest row comes first, the time is that of logging. Its rate limit may drop
// either message, and with -e several headers precede one table. [Event.Append]
// writes both as one message that no limit can part, marks the row of the culprit
// and ends the header with the iteration's own time and its causes; Open vSwitch's own form is an
// option.
//
// [Reader] reads both forms from logs of any size and also what people make of
// them: numbered, quoted, prefixed, wrapped, collapsed, escaped, encoded or turned
// upside down. It has a short way for lines as Open vSwitch writes them; every
// other line is cleaned of encodings, split, freed of what stands before it, and
// put together again with its neighbors until it is one of the lines known. What
// doesn't become one is counted, never guessed at.
//
// # Joining
//
// A header and a table belong together if they are of the same thread and the
// table has a row of the header's iteration. Every header is an Event. A table
// that holds the iterations of several headers is in each of their events, with
// the same TableLine. A header without a table and a table without a header are
// events too; a table's first rows tell nothing of its thread, so one that lost its
// first line has no thread unless its header stands directly before it.
//
// Lines without a prefix belong to the thread without a name.
//
// # Several files
//
// Rotation may split a table. One Reader over the files in order, put together by
// an [io.MultiReader], joins the halves; each file may be compressed only if
// all are.
package ovslog
