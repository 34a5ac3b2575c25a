// Package suspicious tells which iterations of a poll loop are worth a look, and
// keeps their neighborhood for somebody who has the time.
//
// A Detector belongs to the loop's thread, like the records that it looks at. It
// compares, counts, and copies the records around a suspicious iteration into a
// capture that was allocated beforehand. It formats nothing, logs nothing and wakes
// nobody: a supervisor looks for captures that are complete.
package suspicious
