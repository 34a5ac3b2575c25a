//go:build !linux

package perf

import (
	"errors"
	"runtime"
)

// Pin ties the calling goroutine to its operating system thread and returns
// errors.ErrUnsupported, since only Linux lets it choose the core.
func Pin(core, id int) error {
	runtime.LockOSThread()
	return errors.ErrUnsupported
}

// threadID returns 0: there is no number that others could use.
func threadID() int { return 0 }
