package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func TestTable(t *testing.T) {
	bench, err := os.ReadFile("testdata/bench.txt")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := run(nil, bytes.NewReader(bench), &got, io.Discard); err != nil {
		t.Fatalf("a missed budget without -strict: %v", err)
	}
	const golden = "testdata/table.golden"
	want, err := os.ReadFile(golden)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		if !*update {
			t.Fatalf("%s (-want +got):\n%s", golden, diff)
		}
		t.Logf("%s (-old +new):\n%s", golden, diff)
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	got2 := new(bytes.Buffer)
	err = run([]string{"-strict"}, bytes.NewReader(bench), got2, io.Discard)
	if err == nil || err.Error() != "a budget is missed" {
		t.Errorf("-strict: got error %v", err)
	}
	if got2.String() != got.String() {
		t.Errorf("-strict prints another table:\n%s", got2)
	}
}

func TestStrictMet(t *testing.T) {
	in := "BenchmarkBudget/pass/x_TSC 10 3.5 budget 3.5 cost\n" // one core: no -1 at the end
	var out bytes.Buffer
	if err := run([]string{"-strict"}, strings.NewReader(in), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "pass") || !strings.Contains(out.String(), "yes") {
		t.Errorf("got\n%s", &out)
	}
}

func TestBadInput(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"nothing", "", "no result of a benchmark named"},
		{"no budgets", "BenchmarkTSC-2 10 14 ns/op\nPASS\n", "no result of a benchmark named"},
		{"no name", "BenchmarkBudget-2 10 3 cost 4 budget\n", "no result of a benchmark named"},
		{"no cost", "BenchmarkBudget/a/us-2 10 5 budget\n", "benchmark Budget/a/us-2: reports no metric named cost"},
		{"no budget", "BenchmarkBudget/a/us-2 10 5 cost\n", "benchmark Budget/a/us-2: reports no metric named budget"},
		{"torn line", "BenchmarkBudget/a/us-2 10 5 cost 4\n", "benchmarks:1"},
		{"not a number", "BenchmarkBudget/a/us-2 10 NaN cost 4 budget\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(nil, strings.NewReader(test.in), &out, io.Discard)
			if test.want == "" {
				if err != nil || !strings.Contains(out.String(), "MISSED") {
					t.Errorf("got error %v and\n%s\nwant MISSED", err, &out)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}

	broken := errors.New("broken pipe")
	if err := run(nil, iotest.ErrReader(broken), io.Discard, io.Discard); !errors.Is(err, broken) {
		t.Errorf("reader fails: got %v", err)
	}
}
