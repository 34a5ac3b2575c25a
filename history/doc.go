// Package history keeps what a poll loop did lately: a ring of its last passes
// and a ring of its last milliseconds.
//
// The rings belong to the loop's thread; readers get copies. Times are ticks of
// package perf/tsc.
package history
