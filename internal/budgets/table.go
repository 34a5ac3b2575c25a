package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"golang.org/x/perf/benchfmt"
)

// row is one thing that has a budget, over all runs of its benchmark.
type row struct {
	what, unit            string
	costs, budgets, goals []float64
}

func (r row) cost() float64   { return median(r.costs) }
func (r row) budget() float64 { return median(r.budgets) }
func (r row) met() bool       { return r.cost() <= r.budget() }

// read collects the rows of a benchmark's output, in order of appearance. Other
// benchmarks are passed over. A line that looks like a benchmark's result but
// isn't one is an error: a budget must not drop out of the table unseen.
func read(in io.Reader) ([]row, error) {
	var rows []row
	index := make(map[string]int) // package and name to row
	r := benchfmt.NewReader(in, "benchmarks")
	for r.Scan() {
		switch result := r.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, result
		case *benchfmt.Result:
			base, parts := result.Name.Parts()
			if string(base) != "Budget" {
				continue
			}
			what, unit := split(parts)
			if what == "" {
				continue
			}
			key := result.GetConfig("pkg") + "\x00" + what + "\x00" + unit
			i, ok := index[key]
			if !ok {
				i = len(rows)
				index[key] = i
				rows = append(rows, row{what: what, unit: unit})
			}
			if err := rows[i].add(result); err != nil {
				return nil, fmt.Errorf("benchmark %s: %w", result.Name, err)
			}
		}
	}
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("reading benchmarks: %w", err)
	}
	if len(rows) == 0 {
		return nil, errors.New("no result of a benchmark named BenchmarkBudget/WHAT/UNIT")
	}
	return rows, nil
}

// split takes a benchmark's name apart: "/busy_pass/x_TSC-2" is the busy pass in
// units of "x TSC".
func split(parts [][]byte) (what, unit string) {
	var words []string
	for _, p := range parts {
		if p[0] == '/' { // and not the -2 of GOMAXPROCS
			words = append(words, strings.ReplaceAll(string(p[1:]), "_", " "))
		}
	}
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", "), words[n-1]
	}
	return strings.Join(words, ""), ""
}

func (r *row) add(result *benchfmt.Result) error {
	cost, ok := result.Value("cost")
	if !ok {
		return errors.New("reports no metric named cost")
	}
	budget, ok := result.Value("budget")
	if !ok {
		return errors.New("reports no metric named budget")
	}
	r.costs = append(r.costs, cost)
	r.budgets = append(r.budgets, budget)
	if goal, ok := result.Value("goal"); ok {
		r.goals = append(r.goals, goal)
	}
	return nil
}

// write prints the table.
func write(out io.Writer, rows []row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tcost\tbudget\tunit\tgoal\tmet")
	least, most := math.MaxInt, 0
	for _, r := range rows {
		goal, met := "", "yes"
		if len(r.goals) > 0 {
			goal = number(median(r.goals))
		}
		if !r.met() {
			met = "MISSED"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.what, number(r.cost()), number(r.budget()), r.unit, goal, met)
		least, most = min(least, len(r.costs)), max(most, len(r.costs))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	runs := strconv.Itoa(most)
	if least != most {
		runs = fmt.Sprintf("%d to %d", least, most)
	}
	_, err := fmt.Fprintf(out, "\nA cost is the median of its runs (%s).\n", runs)
	return err
}

// median returns the middle value, of an even number of values the mean of the
// two in the middle. There is always at least one value.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// number prints four digits, and thousands without an exponent.
func number(x float64) string {
	if math.Abs(x) >= 1000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}
