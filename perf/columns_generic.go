//go:build !amd64 || purego

package perf

import "github.com/pmdperf/pmdperf/history"

// add adds records to c, which is empty.
func (c *columns) add(recs []history.Record, l *lists) { c.addGeneric(recs, l, 0) }
