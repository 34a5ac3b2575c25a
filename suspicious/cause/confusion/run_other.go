//go:build !linux

package confusion

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// Options says what to try; see the file for Linux.
type Options struct{}

// Run returns an error that is errors.ErrUnsupported.
func Run(context.Context, Options) (*Table, error) {
	return nil, fmt.Errorf("provoking stalls on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
