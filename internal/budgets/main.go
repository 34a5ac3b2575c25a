// Command budgets reads the output of go test -bench Budget and prints one
// table: what was measured, what it costs, its budget, and whether it was met.
//
//	go test -run '^$' -bench Budget -count 5 ./... | go run ./internal/budgets
//
// A benchmark takes part by its name and metrics. Its name is
//
//	BenchmarkBudget/WHAT/UNIT
//
// with underscores for blanks (b.Run turns blanks into them), and it reports the
// metrics cost and budget, both in UNIT, and goal if there is something better
// to strive for:
//
//	b.ReportMetric(pass/tsc, "cost")
//	b.ReportMetric(3.5, "budget")
//
// Less is better. Over several runs (-count) the medians count. A missed budget
// is shown as MISSED; it makes the exit status 1 only with -strict, because on a
// shared machine even ratios are off now and then.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "budgets:", err)
		os.Exit(1)
	}
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("budgets", flag.ContinueOnError)
	flags.SetOutput(stderr)
	strict := flags.Bool("strict", false, "a missed budget is an error")
	if err := flags.Parse(args); err != nil {
		return err
	}
	rows, err := read(stdin)
	if err != nil {
		return err
	}
	if err := write(stdout, rows); err != nil {
		return err
	}
	if *strict && slices.ContainsFunc(rows, func(r row) bool { return !r.met() }) {
		return errors.New("a budget is missed")
	}
	return nil
}
