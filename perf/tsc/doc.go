// Package tsc reads the processor's time stamp counter and turns its ticks into
// seconds and wall-clock time.
//
// On amd64 Now is the TSC, on arm64 the virtual counter CNTVCT_EL0. Elsewhere,
// with the build tag purego, and on an amd64 processor whose TSC does not run at
// a constant rate, it is Go's monotonic clock in nanoseconds. All of them are
// called ticks; Clock says how many make a second.
//
// Do not use it to time anything that takes longer than a poll loop's pass
// without need: time.Now costs about 50 ns where this costs 10 to 20, but it is
// steered by NTP and this is not.
package tsc

import "time"

// Source says where ticks come from.
type Source string

// The sources of ticks.
const (
	TSC       Source = "tsc"       // x86 time stamp counter, invariant
	CNTVCT    Source = "cntvct"    // ARM virtual counter
	Monotonic Source = "monotonic" // Go's monotonic clock, 1 tick = 1 ns
)

// start is the origin of the monotonic clock's ticks. It carries Go's monotonic
// reading, so that time.Since never sees steps of the wall clock.
var start = time.Now()

// monotonic returns nanoseconds since start, plus one so that no tick is zero.
func monotonic() uint64 { return uint64(time.Since(start)) + 1 }
