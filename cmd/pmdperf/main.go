// Command pmdperf runs a poll-mode packet forwarder under the flight recorder of
// this module and shows what was recorded. 'pmdperf help' lists its verbs.
//
// It ends with status 0, with 2 when the command line is wrong, and with 1 when
// anything else is: a missing interface, privilege or core, say. Every error is a
// line on standard error that says what is wrong and what to do.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// The exit statuses beside 0.
const (
	statusFailed = 1
	statusUsage  = 2
)

// run runs the command line args, without the program's name, and returns the exit
// status.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot(args)
	root.SetArgs(append([]string{}, args...)) // never nil, for which cobra takes os.Args
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return 0
	}
	for line := range strings.SplitSeq(err.Error(), "\n") { // joined errors
		fmt.Fprintf(stderr, "pmdperf: %s\n", line)
	}
	if e, ok := errors.AsType[*statusError](err); ok {
		return e.status
	}
	if errors.As(err, new(*usageError)) {
		return statusUsage
	}
	return statusFailed
}

// usageError says that the command line is wrong. Verbs return it, made by usagef or
// asUsage, for what would be wrong on any machine.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return asUsage(fmt.Errorf(format, args...)) }

func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return &usageError{err}
}
