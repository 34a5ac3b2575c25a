// Package suspicious tells which iterations of a poll loop are worth a look, and
// keeps their neighborhood for somebody who has the time.
//
// A [Detector] belongs to the loop's thread, like the records that it looks at. It
// compares, counts, and copies the records around a suspicious iteration into a
// capture that was allocated beforehand. It formats nothing, logs nothing and wakes
// nobody: a supervisor looks for captures that are complete.
//
// A [Supervisor] makes reports of them for sinks: the flight record ([ToFlightRecord]),
// the program's log ([ToLog]), the last ones for a control socket ([Reports.Add]), the log
// in Open vSwitch's form (package ovslog), Go's execution trace (package gotrace), or any
// function. Why an iteration took long, it has somebody else say, who may have looked by
// probes (package explain). A [Watchdog] tells of loops that are stuck meanwhile.
package suspicious
