//go:build !linux

package cause

import (
	"errors"
	"fmt"
	"runtime"
)

// Probes watch one thread; there are none for this system.
type Probes struct{}

// Open returns an error that is errors.ErrUnsupported.
func Open(tid, core int, o Options) (*Probes, error) {
	return nil, fmt.Errorf("telling causes on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Report returns nothing.
func (p *Probes) Report() []Status { return nil }

// Between returns no evidence.
func (p *Probes) Between(from, to int64) Evidence { return Evidence{From: from, To: to} }

// Sample returns nothing.
func (p *Probes) Sample() Sample { return Sample{} }

// Totals returns nothing.
func (p *Probes) Totals() ThreadCounts { return ThreadCounts{} }

// CoreInterrupts returns nothing.
func CoreInterrupts(core int) []Line { return nil }

// Mark returns nil.
func (p *Probes) Mark() *uint64 { return nil }

// Close does nothing.
func (p *Probes) Close() error { return nil }
