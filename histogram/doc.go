// Package histogram counts values the way a poll loop needs it: in constant
// time, without branches on the value, without allocation.
//
// Three shapes share the work:
//
//   - Fine counts durations and ratios in log-linear buckets, with the index
//     arithmetic of HdrHistogram at 2 significant digits (error below 1/128).
//   - Bins counts the same values in the 32 bins of Open vSwitch, exactly.
//   - Small counts small integers (packets, batches, upcalls, queue fill) one by
//     one; their Open vSwitch bins are derived when somebody reads.
//
// None of the types may be used by two goroutines at once; the recorder's owner
// writes them and readers get copies. Package histogram/hdr turns them into
// HdrHistograms.
package histogram
