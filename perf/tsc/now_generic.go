//go:build purego || !(amd64 || arm64)

package tsc

// Now returns the current tick: nanoseconds of Go's monotonic clock. Any
// goroutine may call it.
func Now() uint64 { return monotonic() }

func source() Source { return Monotonic }

func exposedHz() float64 { return 1e9 }
