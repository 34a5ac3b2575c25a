// Package exporter reads the threads of any number of programs over their control
// sockets, for Prometheus: of programs that pmdperf's recorder is in, which answer with
// everything it knows, and of real ovs-vswitchd daemons, whose texts tell what they tell.
//
// # One that hangs
//
// Every target has one errand under way at a time, which all that want to know share. A
// reader waits for it for the timeout. One that finds an errand which is older than that
// doesn't wait at all: the target is down until it has answered, which also happens when
// nobody waits any more. After an errand that took too long the next one is waited for
// only shortly. So a target that hangs costs the readers of all others one timeout when
// it begins to hang, and hardly anything later.
//
// # Counters that fall
//
// A restart or a clear makes the counters of a thread begin at 0. Our recorders tell when
// that was, to the nanosecond; an Open vSwitch tells it to some milliseconds, by the
// duration of its measurement, which is the same time in all answers until the next
// clear. That time goes out as the counters' created timestamp. What falls without a
// clear has been subtracted from by mistake, which Open vSwitch does when an iteration
// takes a second or more. Such a counter stands still until it rises again.
package exporter
