package experiment

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"unicode"
)

// WriteBenchmark writes the report as results of Go benchmarks, which benchstat
// reads: a line for every part of the time, so that there is something to take
// medians of. Figures without parts are in a row's first line only.
func (r *Report) WriteBenchmark(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\npkg: github.com/pmdperf/pmdperf/internal/experiment\n", runtime.GOOS, runtime.GOARCH)
	if r.Machine.CPU != "" {
		fmt.Fprintf(&b, "cpu: %s\n", r.Machine.CPU)
	}
	fmt.Fprintf(&b, "date: %s\n", r.Began.Format("2006-01-02"))
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "# %s\n", n)
	}
	for i := range r.Rows {
		r.Rows[i].benchmark(&b, r.Experiment)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Row) benchmark(b *strings.Builder, experiment string) {
	name := "Benchmark" + strings.ToUpper(experiment[:1]) + experiment[1:]
	for _, l := range r.Labels {
		name += "/" + word(l.Name) + "=" + strings.ReplaceAll(word(l.Value), "/", "-")
	}
	lines := 1
	for _, f := range r.Figures {
		lines = max(lines, len(f.Parts))
	}
	for i := range lines {
		var line strings.Builder
		n := 1
		for _, f := range r.Figures {
			v := f.Value
			switch {
			case i < len(f.Parts):
				v = f.Parts[i]
			case i > 0 || len(f.Parts) > 0:
				continue
			}
			n = max(n, f.N/lines)
			fmt.Fprintf(&line, "\t%.6g %s", v, word(f.column("-")))
		}
		if line.Len() > 0 {
			fmt.Fprintf(b, "%s\t%d%s\n", name, n, &line)
		}
	}
}

// column returns what the figure is called by its name and unit: by the unit alone
// where that says it all.
func (f *Figure) column(sep string) string {
	if strings.HasPrefix(f.Unit, f.Name) {
		return f.Unit
	}
	return f.Name + sep + f.Unit
}

// word makes a string a word of the format.
func word(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) {
			return '-'
		}
		return c
	}, s)
}
