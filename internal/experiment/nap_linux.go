package experiment

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap sleeps for about d. time.Sleep would take a millisecond more, since the
// runtime's poller counts in those.
func nap(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil) // a signal ends it early; how long it took is measured
}
