package cause

import "iter"

// ring keeps the last size values.
type ring[T any] struct {
	size int
	list []T
	next int // where the next goes once the list is full
}

func (r *ring[T]) push(v T) {
	if len(r.list) < r.size {
		r.list = append(r.list, v)
		return
	}
	r.list[r.next] = v
	r.next = (r.next + 1) % r.size
}

// all yields the values, oldest first.
func (r *ring[T]) all() iter.Seq[T] {
	return func(yield func(T) bool) {
		for i := range r.list {
			if !yield(r.list[(r.next+i)%len(r.list)]) {
				return
			}
		}
	}
}

// oldest returns the oldest value if older ones were dropped.
func (r *ring[T]) oldest() (v T, full bool) {
	if len(r.list) < r.size {
		return v, false
	}
	return r.list[r.next], true
}

// last returns the newest value.
func (r *ring[T]) last() (v T, ok bool) {
	if len(r.list) == 0 {
		return v, false
	}
	return r.list[(r.next+len(r.list)-1)%len(r.list)], true
}

// stamped is a value with the times between which it was read, CLOCK_MONOTONIC in ns.
type stamped[T any] struct {
	begun, done int64
	v           T
}

// bracket returns the last reading done by from and the first begun after to. Where
// there are none, ok is false.
func bracket[T any](r *ring[stamped[T]], from, to int64) (before, after stamped[T], ok bool) {
	var below, above bool
	for s := range r.all() {
		if s.done <= from {
			before, below = s, true
		}
		if s.begun >= to {
			after, above = s, true
			break
		}
	}
	return before, after, below && above
}
