//go:build !linux

package confusion

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/pmdperf/pmdperf/suspicious/cause"
)

// Options says what to try; see the file for Linux.
type Options struct {
	Rounds   int
	Core     int
	Only     []string
	Probes   cause.Options
	User     bool
	Progress func(Progress)
}

// Run returns an error that is errors.ErrUnsupported.
func Run(context.Context, Options) (*Table, error) {
	return nil, fmt.Errorf("provoking stalls on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Provocations returns nothing.
func Provocations() []string { return nil }

func clean(int) {}
