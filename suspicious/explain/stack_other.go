//go:build !linux

package explain

import "errors"

// goStack returns an error.
func goStack(tid int) ([]string, error) { return nil, errors.ErrUnsupported }
