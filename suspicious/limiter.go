package suspicious

import "time"

// limiter is a token bucket: so many a minute, and as many at once.
type limiter struct {
	perMinute float64 // 0: none is held back
	tokens    float64
	last      time.Time
	held      uint64 // since the last that passed
}

func newLimiter(perMinute int) limiter {
	return limiter{perMinute: float64(perMinute), tokens: float64(perMinute)}
}

// pass reports whether one more may pass now, and if so how many were held back
// before it.
func (l *limiter) pass(now time.Time) (ok bool, held uint64) {
	if l.perMinute == 0 {
		return true, 0
	}
	if !l.last.IsZero() {
		l.tokens = min(l.perMinute, l.tokens+max(0, now.Sub(l.last).Minutes())*l.perMinute)
	}
	l.last = now
	if l.tokens < 1 {
		l.held++
		return false, 0
	}
	l.tokens--
	held, l.held = l.held, 0
	return true, held
}
