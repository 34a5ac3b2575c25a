//go:build !linux

package explain

// monotonic returns 0: there are no probes that have a clock.
func monotonic() int64 { return 0 }
