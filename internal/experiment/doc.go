// Package experiment measures, on the forwarder of package dataplane, what the field
// otherwise argues about: what metrics cost, what a reload costs, what a transmit path
// or statistics of queues are worth.
//
// A machine is never quiet, and what it does changes from second to second more than
// most changes to a program do. So nothing is measured first one way and then the
// other. What is compared takes turns, in slices of some milliseconds and in random
// order; slices of the same round are compared with each other; and the median of
// those differences is reported with an interval that it lies in with 95 %
// confidence, which supposes nothing of how the differences are distributed. No
// outlier is thrown away. Where it can be had, one way is measured against itself,
// which shows what the method makes of no difference.
//
// What an experiment found is a Report, which prints as a table, as JSON and as
// results of Go benchmarks.
package experiment
