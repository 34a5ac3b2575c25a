package explain

import "golang.org/x/sys/unix"

// monotonic returns CLOCK_MONOTONIC, in ns, the clock of the probes.
func monotonic() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // fails for no valid pointer
	return ts.Nano()
}
