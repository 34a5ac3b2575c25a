// Package prom turns what is known of PMD threads into Prometheus metrics.
//
// A [Collector] collects the recorders of the program that it runs in, and a [Handler]
// serves them.
//
// Below it is a neutral model: a [Target] with its [Thread]s is what one program's
// threads are known to have done, wherever that comes from, a recorder, its JSON or the
// text of an Open vSwitch of some version. A thread has what was set, and only that;
// [Metrics] makes metrics of it. Their names, types, labels and units are in
// docs/metrics.md.
//
// Values are those of the last clear on, whose time is the metrics' created timestamp.
// Histograms have classic buckets, which are the same for all targets, and where fine
// ranges of values are known native ones, too.
package prom
