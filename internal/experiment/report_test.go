package experiment

import (
	"bytes"
	"flag"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/perf/benchfmt"
)

var update = flag.Bool("update", false, "write the golden files")

// example is a report with all that there can be.
func example() *Report {
	return &Report{
		Version: Version, Experiment: "example", Began: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Seconds: 61.4, Interrupted: true,
		Machine:    Machine{CPU: "Some CPU", Virtual: true, Cores: 2, System: "linux/amd64", Kernel: "6.18", Go: "go1.26", Clock: "tsc", Hz: 2.445e9},
		Parameters: []Parameter{{"slice", "2ms"}, {"rounds", "12"}},
		Rows: []Row{
			{Labels: []Parameter{{"flows", "10000"}, {"level", "off"}}, Figures: []Figure{
				{Name: "Mpps", Unit: "Mpps", Estimate: Estimate{Value: 12.3456, N: 12}, Parts: []float64{12, 13}}, exact("change", "%", 0)}},
			{Labels: []Parameter{{"flows", "10000"}, {"level", "off again"}}, Figures: []Figure{
				{Name: "Mpps", Unit: "Mpps", Estimate: Estimate{Value: 12345.678, N: 12}, Parts: []float64{14, 15}},
				{Name: "change", Unit: "%", Estimate: Estimate{Value: 0.5, Interval: &[2]float64{-0.25, 1}, N: 12}}}},
			{Labels: []Parameter{{"scheme", "busy/waiting"}}, Figures: []Figure{exact("min", "cycles", 12800), exact("lost", "packets", 0.25)},
				Histogram: &Histogram{Unit: "cycles", Buckets: []Bucket{{12800, 12863, 3}, {20000, 20127, 1}}}},
		},
		Notes: []string{"Something was amiss."},
	}
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := "testdata/" + name
	want, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		if !*update {
			t.Errorf("%s (-want +got):\n%s", path, diff)
			return
		}
		t.Logf("%s (-old +new):\n%s", path, diff)
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFormats(t *testing.T) {
	var table, bench, doc bytes.Buffer
	r := example()
	for _, err := range []error{r.WriteTable(&table), r.WriteBenchmark(&bench), r.WriteJSON(&doc)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "table.golden", table.String())
	golden(t, "json.golden", doc.String())
	golden(t, "benchmark.golden", strings.ReplaceAll(strings.ReplaceAll(bench.String(), "goarch: arm64", "goarch: amd64"), "goos: darwin", "goos: linux"))

	back, err := ReadJSON(&doc)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back, cmpopts.IgnoreUnexported(Report{}), cmpopts.IgnoreTypes(making{})); diff != "" {
		t.Errorf("JSON and back (-want +got):\n%s", diff)
	}
}

// TestBenchmarkReads has the reader that benchstat uses read it.
func TestBenchmarkReads(t *testing.T) {
	var bench bytes.Buffer
	if err := example().WriteBenchmark(&bench); err != nil {
		t.Fatal(err)
	}
	n := 0
	for in := benchfmt.NewReader(&bench, "example"); in.Scan(); {
		switch res := in.Result().(type) {
		case *benchfmt.SyntaxError:
			t.Error(res)
		case *benchfmt.Result:
			n++
			if v, ok := res.Value("Mpps"); ok != (n <= 4) || ok && v < 12 {
				t.Errorf("%s: %v Mpps", res.Name, v)
			}
		}
	}
	if n != 5 {
		t.Errorf("%d results, want 5", n)
	}
}

func TestReadJSONErrors(t *testing.T) {
	for _, in := range []string{"", "{}", "[1]", `{"version":99,"experiment":"overhead"}`, `{"version":1}`} {
		if r, err := ReadJSON(strings.NewReader(in)); err == nil {
			t.Errorf("%q: %+v", in, r)
		}
	}
}

func TestFind(t *testing.T) {
	r := example()
	if row := r.Find("flows", "10000", "level", "off again"); row != &r.Rows[1] {
		t.Errorf("found %+v", row)
	}
	if row := r.Find("flows", "1"); row != nil {
		t.Errorf("found %+v", row)
	}
	if f, ok := r.Rows[2].Figure("lost"); !ok || f.Value != 0.25 {
		t.Errorf("figure %+v", f)
	}
	if _, ok := r.Rows[2].Figure("Mpps"); ok {
		t.Error("found a figure that is not there")
	}
}

func TestThisMachine(t *testing.T) {
	m := thisMachine()
	if m.Cores < 1 || m.Hz < 1e6 || m.Go == "" || !strings.Contains(m.String(), "MHz") {
		t.Errorf("%+v", m)
	}
}

// TestDocs wants every field of the JSON in the documentation.
func TestDocs(t *testing.T) {
	doc, err := os.ReadFile("../../docs/experiments.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range typ.NumField() {
			f := typ.Field(i)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				n++
				if !strings.Contains(string(doc), "`"+name+"`") {
					t.Errorf("docs/experiments.md does not tell of %s", name)
				}
			}
			if f.IsExported() {
				visit(f.Type)
			}
		}
	}
	visit(reflect.TypeFor[Report]())
	if n < 25 {
		t.Errorf("found %d fields", n)
	}
}

// FuzzReadJSON: whatever is read is written in every format.
func FuzzReadJSON(f *testing.F) {
	f.Fuzz(func(t *testing.T, in string) {
		r, err := ReadJSON(strings.NewReader(in))
		if err != nil {
			return
		}
		for _, err := range []error{r.WriteTable(io.Discard), r.WriteBenchmark(io.Discard), r.WriteJSON(io.Discard)} {
			if err != nil {
				t.Error(err)
			}
		}
	})
}
