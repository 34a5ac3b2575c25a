// Package investigate turns evidence into findings: what stalled, when, for how long,
// why, how many packets that can have cost, and what to do next.
//
// A [Case] takes evidence of all kinds, in any order and of any size: events of Open
// vSwitch's log, flight records, what a show command printed, series of counters. It
// keeps the longest stalls whole and sums up the others, so that its memory is bounded.
// [Case.Result] says what follows. The result depends on the evidence alone, not on
// the order in which it came.
//
// # Time
//
// A stall's time is that of its end, as good as the evidence has it: Open vSwitch logs
// an iteration when its neighborhood is complete, so many iterations later. Lengths are
// in microseconds.
//
// # What is a stall
//
// Every iteration that was reported, and every row of a neighborhood that is as long as
// the shortest one reported for its length: it is over the threshold as well, even if
// its own message was lost. An iteration that stands in several neighborhoods counts
// once.
package investigate
