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
//
//lint:ignore U1000 on amd64 only Now's assembler gets here, which the linter can't read
var start = time.Now()

// monotonic returns nanoseconds since start, plus one so that no tick is zero.
//
//lint:ignore U1000 on amd64 only Now's assembler calls it, which the linter can't read
func monotonic() uint64 { return uint64(time.Since(start)) + 1 }
