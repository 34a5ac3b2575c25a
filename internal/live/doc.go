// Package live looks at the PMD threads of a running program again and again, over its
// control socket, and says what they did in between.
//
// A [Source] asks a target, ours or a real ovs-vswitchd, and returns a [Sample]: counters,
// histograms and histories of every PMD, in one shape whatever the target speaks. Ours
// answers with JSON, in which everything is exact. Open vSwitch answers with text, of which
// the clock's frequency has to be worked out (see [PMD.Hz]) and percentiles have to be
// interpolated inside the histograms' bins. What one of the two doesn't tell is not
// known, and everything that follows from it is NaN.
//
// [Sample.Since] compares two looks: a [Span] is what a PMD did between them. Counters
// that go back, since somebody cleared them or the target was started again, never give a
// negative rate: the span then reaches from the clear to the later look, and says so.
package live
