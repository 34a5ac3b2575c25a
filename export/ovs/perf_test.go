package ovs

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parsePerf(t testing.TB, text string) *PerfReport {
	t.Helper()
	r, err := ParsePerf(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestParsePerfValues(t *testing.T) {
	r := parsePerf(t, readCaptures(t, "pmd-perf-show")["upcalls-500flows"])
	if len(r.Blocks) != 1 {
		t.Fatalf("%d blocks, want 1", len(r.Blocks))
	}
	b := &r.Blocks[0]
	if b.Time != "14:46:09.304" || b.Duration != "6.402" || b.Thread != (Thread{NUMA: 0, Core: 1}) {
		t.Errorf("heading: %q %q %v", b.Time, b.Duration, b.Thread)
	}
	for label, want := range map[string]uint64{
		"Iterations": 129092, "Used TSC cycles": 11564883724, "Rx packets": 4130976,
		"Simple Match hits": 0, "Upcalls": 3000, "Tx batches": 387276, "Sleep time (us)": 0,
	} {
		if got, ok := b.Value(label); !ok || got != want {
			t.Errorf("%s = %d, %v, want %d", label, got, ok, want)
		}
	}
	if _, ok := b.Value("Offload cycles"); ok {
		t.Error("a row that isn't there has a value")
	}
	for _, f := range []struct {
		label, unit string
		want        float64
	}{
		{"Iterations", "us/it", 38.95},
		{"Used TSC cycles", "% of total cycles", 78.5},
		{"Rx packets", "cycles/pkt", 2800},
		{"Upcalls", "us/upcall", 24},
	} {
		got, ok := b.Figure(f.label, f.unit)
		if !ok || got.Float() != f.want {
			t.Errorf("%s of %s = %v, %v, want %v", f.unit, f.label, got, ok, f.want)
		}
	}
	if _, ok := b.Figure("Rx packets", "us/it"); ok {
		t.Error("a figure that isn't there was found")
	}
	if len(b.Histograms) != 7 {
		t.Fatalf("%d histograms, want 7", len(b.Histograms))
	}
	h := b.Histogram("cycles/upcall")
	if h == nil || len(h.Walls) != 31 || len(h.Counts) != 32 || h.Walls[30] != 1000000 || h.Counts[31] != 9 {
		t.Errorf("cycles/upcall: %+v", h)
	}
	if len(b.Averages) != 7 || b.Averages[4] != (Average{"vhost qlen", "0.00000"}) {
		t.Errorf("averages: %v", b.Averages)
	}
	if n := len(b.Iterations.Rows); n != 30 {
		t.Errorf("%d iterations, want 30", n)
	}
	if v, ok := b.Iterations.Uint(0, "cycles"); !ok || v != 72384 {
		t.Errorf("cycles of the newest iteration = %d, %v", v, ok)
	}
	if v, ok := b.Milliseconds.Uint(29, "Kpps"); !ok || v != 992 {
		t.Errorf("Kpps of the oldest millisecond = %d, %v", v, ok)
	}
	if _, ok := b.Milliseconds.Uint(0, "cycles"); ok {
		t.Error("a column that isn't there has a value")
	}
}

func TestParsePerfFigureNaN(t *testing.T) {
	text := "pmd thread numa_id 0 core_id 1:\n\n  Iterations:                    0  (-nan us/it)\n"
	r := parsePerf(t, text)
	f, ok := r.Blocks[0].Figure("Iterations", "us/it")
	if !ok || !math.IsNaN(f.Float()) {
		t.Errorf("figure = %v, %v, want NaN", f, ok)
	}
}

// The original leaves no blank between this label and a value of twelve digits.
func TestPerfFullColumn(t *testing.T) {
	const head = "\n\npmd thread numa_id 0 core_id 1:\n\n"
	r := parsePerf(t, head+"  - Simple Match hits:123456789012  (100.0 %)\n  - EMC hits:         123456789012  (  0.0 %)\n")
	if v, ok := r.Blocks[0].Value("Simple Match hits"); !ok || v != 123456789012 {
		t.Errorf("value = %d, %v, want 123456789012; unread: %v", v, ok, r.Unread)
	}
	want := head + "  - Simple Match hits: 123456789012  (100.0 %)\n  - EMC hits:         123456789012  (  0.0 %)\n"
	if diff := cmp.Diff(want, r.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again := parsePerf(t, r.String()); !cmp.Equal(again, r) {
		t.Errorf("read again: %s", cmp.Diff(r, again))
	}
}

// A label that is wider than its column is followed by its value.
func TestPerfWideLabel(t *testing.T) {
	r := &PerfReport{Blocks: []PerfBlock{{Rows: []Row{{Label: "Packets of a patched switch", Detail: true, Value: 7}}}}}
	if want := "  - Packets of a patched switch:           7\n"; !strings.HasSuffix(r.String(), want) {
		t.Errorf("%q, want %q at its end", r.String(), want)
	}
}

func TestParsePerfUnread(t *testing.T) {
	text := strings.Join([]string{
		"Time: 14:46:09.304",                      // 1
		"Measurement duration: 6.402 s",           // 2
		"pmd thread numa_id 0 core_id 1:",         // 3
		"  Iterations:      12  (1 us/it)",        // 4
		"  Iterations:      13  (1 us/it)",        // 5 twice
		"  Rx packets:      -1",                   // 6 no counter
		"  Tx packets:      99999999999999999999", // 7 beyond 64 bits
		"  Tx batches:      7 (7 pkts/batch",      // 8 not closed
		"ovs-appctl: what is this",                // 9
		"Histograms",                              // 10
		"   cycles/it   packets/it",               // 11
		"   499  1  0",                            // 12 cut
		"   499  1  0  2",                         // 13
		"   499  1  1  2",                         // 14 walls don't rise
		"   >    3  >  4",                         // 15
		"   >    3  >  4",                         // 16 twice
		"-----",                                   // 17
		"   cycles/it   packets/it",               // 18 announces averages that don't come
		"   iter   cycles   packets",              // 19
		"   7      100",                           // 20 cut
		"   6      100     3",                     // 21
		"Time: 14:46:10.304",                      // 22 without a block
	}, "\n")
	r := parsePerf(t, text)
	var got []int
	for _, l := range r.Unread {
		got = append(got, l.Number)
	}
	want := []int{5, 6, 7, 8, 9, 12, 14, 16, 18, 20, 22}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("numbers of unread lines (-want +got):\n%s", diff)
	}
	b := r.Blocks[0]
	if diff := cmp.Diff([]Histogram{
		{"cycles/it", []uint64{499}, []uint64{1, 3}},
		{"packets/it", []uint64{0}, []uint64{2, 4}},
	}, b.Histograms); diff != "" {
		t.Errorf("histograms (-want +got):\n%s", diff)
	}
	if b.Averages != nil || len(b.Rows) != 1 || len(b.Iterations.Rows) != 1 {
		t.Errorf("block: %+v", b)
	}
}

func TestParsePerfNothing(t *testing.T) {
	for _, text := range []string{"", "\n \n"} {
		r, err := ParsePerf(text)
		if err != nil || len(r.Blocks) != 0 || r.String() != "" {
			t.Errorf("ParsePerf(%q) = %+v, %v, want an empty report", text, r, err)
		}
	}
	_, err := ParsePerf("\n\"dpif-netdev/pmd-perf-show\" is not a valid command\n")
	var syntax *SyntaxError
	if !errors.As(err, &syntax) || syntax.Line != 2 || !strings.Contains(err.Error(), "line 2: ") {
		t.Errorf("error = %v, want one for line 2", err)
	}
}

// Whatever a text is cut to, what was read is written and read again alike.
func TestParsePerfCut(t *testing.T) {
	text := readCaptures(t, "pmd-perf-show")["two-pmds"]
	for n := 0; n < len(text); n += 97 {
		checkPerf(t, text[:n])
	}
}

// checkPerf checks what must hold of any text.
func checkPerf(t *testing.T, text string) {
	t.Helper()
	r, err := ParsePerf(text)
	if err != nil {
		if r != nil {
			t.Error("a report beside an error")
		}
		return
	}
	written := r.String()
	again, err := ParsePerf(written)
	if err != nil {
		t.Fatalf("%v\nin the written text:\n%s", err, written)
	}
	again.Unread = append(again.Unread, r.Unread...)
	if !reflect.DeepEqual(r, again) { // much quicker than Diff
		t.Fatalf("written and read again (-before +after):\n%s\ntext:\n%s", cmp.Diff(r, again), written)
	}
}

func FuzzParsePerf(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) { checkPerf(t, text) })
}
