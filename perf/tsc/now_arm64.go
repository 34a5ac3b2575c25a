//go:build arm64 && !purego

package tsc

// Now returns the current tick. Any goroutine may call it. The counter is the
// same on all cores of one machine; a caller that needs it never to step back
// clamps.
func Now() uint64

// cntfrq reads CNTFRQ_EL0, which firmware sets to the counter's frequency in Hz.
func cntfrq() uint64

func source() Source { return CNTVCT }

func exposedHz() float64 { return float64(cntfrq()) }
