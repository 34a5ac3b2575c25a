package exporter

import (
	"math"
	"time"
)

// epoch is the time since the counters of a thread were cleared, as far as the texts of
// Open vSwitch tell. The zero value has not begun.
type epoch struct {
	// created is when it began: the same in all answers, and later than that of the epoch
	// before. It is zero if nothing tells.
	created time.Time

	// The clear was not before from and not after to; both are zero if nothing tells.
	from, to time.Time

	counters map[string]*counter

	sleepUnit float64 // what the text calls a microsecond of sleep, in seconds; 0 before it is known
}

// counter is one number that should only ever rise.
type counter struct {
	raw    uint64 // as it was last read
	offset uint64 // what it lost without having been cleared
}

// rounding is how wrong a measurement's duration can be: it is printed in milliseconds,
// as the difference of two times cut to milliseconds.
const rounding = 2 * time.Millisecond

// see takes note of a duration (0 or more, NaN if the text has none) that was printed
// between sent and arrived, and of the counters in the same answer. It begins a new epoch
// if they say that the counters were cleared: the duration if there is one, else a counter
// that fell.
func (e *epoch) see(sent, arrived time.Time, seconds float64, counters map[string]uint64) {
	if math.IsNaN(seconds) {
		switch {
		case e.counters == nil:
			e.begin(time.Time{}, time.Time{})
		case e.fell(counters):
			e.begin(time.Time{}, time.Time{})
			e.created = sent
		}
	} else {
		lasted := time.Duration(seconds * float64(time.Second))
		from, to := sent.Add(-lasted-rounding), arrived.Add(-lasted+rounding)
		if e.counters == nil || from.After(e.to) || to.Before(e.from) {
			before := e.created
			e.begin(from, to)
			e.created = from
			if !from.After(before) {
				e.created = before.Add(time.Millisecond)
			}
		}
		e.from, e.to = later(from, e.from), earlier(to, e.to)
	}
	for name, raw := range counters {
		e.note(name, raw)
	}
}

func (e *epoch) begin(from, to time.Time) {
	*e = epoch{from: from, to: to, counters: make(map[string]*counter)}
}

// fell reports whether a counter is lower than before.
func (e *epoch) fell(counters map[string]uint64) bool {
	for name, raw := range counters {
		if c := e.counters[name]; c != nil && raw < c.raw {
			return true
		}
	}
	return false
}

// note takes note of a counter. One that falls without having been cleared has not
// counted: Open vSwitch adds to its counters of cycles what it takes for a signed number
// of 32 bits, so that a pass of a second or more subtracts from them. As a fall would be
// taken for a clear, and all that was counted before for new, the counter rises from
// there.
func (e *epoch) note(name string, raw uint64) {
	if raw > math.MaxInt64 { // below 0
		raw = 0
	}
	c := e.counters[name]
	if c == nil {
		e.counters[name] = &counter{raw: raw}
		return
	}
	if raw < c.raw {
		c.offset += c.raw - raw
	}
	c.raw = raw
}

// value returns a counter's value to be exported; ok is false if it was never seen.
func (e *epoch) value(name string) (v uint64, ok bool) {
	if c := e.counters[name]; c != nil {
		return c.raw + c.offset, true
	}
	return 0, false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
