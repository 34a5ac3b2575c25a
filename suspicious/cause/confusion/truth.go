package confusion

import (
	"time"

	"github.com/pmdperf/pmdperf/suspicious/cause"
)

// truth is what the kernel counted of the loop's thread in a slow pass, read by the loop
// itself: it is right whatever the probes say, and however busy the machine is.
type truth struct {
	Over  time.Duration // between the two readings, some us more than the pass
	CPU   time.Duration // it ran
	Wait  time.Duration // it was runnable and had no core
	Sleep time.Duration // neither: it slept, was stopped or throttled
	Other time.Duration // the hog ran, where there is one
	Torn  time.Duration // it was off its core amid a reading, so that Wait or Sleep are wrong by up to that
}

// provoked is what a provocation took at least.
type provoked struct {
	kind       cause.Kind
	cpu, sleep time.Duration
}

// allows reports whether a cause that was named with confidence can have been, beside
// what was provoked: another task may well have had the core for part of a nanosleep.
func (t *truth) allows(c *cause.Cause, p provoked) bool {
	slack := t.Over/20 + t.Torn + 200*time.Microsecond // readings take time, and parts are rounded
	if c.Kind == p.kind {
		p.cpu, p.sleep = 0, 0 // that's what it is
	}
	switch c.Kind {
	case cause.Unknown, cause.Reload:
		return c.Kind == cause.Unknown || c.Kind == p.kind
	case cause.Preempted:
		return c.Part <= t.Wait+slack
	case cause.Throttled, cause.Stopped:
		// The loop's group has no quota but while it is provoked, and nobody else stops it.
		return c.Kind == p.kind && c.Part <= t.Wait+t.Sleep+slack
	case cause.Runtime, cause.Blocked, cause.Slept:
		return c.Part <= t.Sleep-p.sleep+slack
	default:
		// It ran, or seemed to: a paused machine counts on, and so do most in interrupts.
		return c.Part <= t.CPU-p.cpu+slack
	}
}
