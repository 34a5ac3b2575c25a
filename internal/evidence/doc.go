// Package evidence reads what an investigator has: logs of Open vSwitch in whatever
// form, flight records, what show commands printed, series of counters. It finds out by
// the content what a file is; one file may be several of these. What it reads goes into
// an [investigate.Case].
//
// Everything streams: memory doesn't depend on the size of a file, nor on how much a
// compressed one unpacks to.
package evidence
