package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the goldens in testdata anew")

var inf = math.Inf(1)

// small is a page with one of everything.
func small() *Page {
	at := time.Date(2026, 2, 1, 12, 0, 0, 500_000, time.UTC)
	return &Page{
		Title:    "t",
		Findings: []Finding{{Title: "f", Stalls: []int{1}}},
		Threads:  []Thread{{Name: "a", Hz: 2e9}, {Name: "b"}},
		Stalls: []Stall{
			{Thread: 1, Iteration: 1<<53 + 1, Micros: 12.3456, Culprit: -1}, // of unknown time, which comes last
			{
				Thread: 0, End: at.Add(time.Second), Micros: 1500, Iteration: 7, Reasons: []string{"long", "full"}, Source: "log:4", Culprit: 1,
				Causes: []Cause{{"preempted", 1000, 66.7, "exact", "seen"}},
				Rows:   []Row{{Iteration: 6, Cycles: 400, Rx: 2, CyclesPerPacket: 200, PacketsPerBatch: 2}, {Iteration: 7, Cycles: 3e6, Tx: 1, Note: "queue 0"}},
			},
			{Thread: 1, End: at, Micros: 250, Iteration: 3, Reasons: []string{"long"}, Source: "log:1", Culprit: -1},
		},
		Series: []Series{{Name: "missed", Unit: "packets", Thread: -1, Alarm: true, Points: []Point{{at, at.Add(time.Second), 41}, {at, at, math.NaN()}}}},
	}
}

func TestData(t *testing.T) {
	var b bytes.Buffer
	if err := small().Write(&b); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := json.Indent(&got, []byte(dataOf(t, b.String())), "", " "); err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/data.json"
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWrong: a page whose parts don't fit together is an error, not a broken page.
func TestWrong(t *testing.T) {
	for _, test := range []struct {
		spoil func(*Page)
		want  string
	}{
		{func(p *Page) { p.Stalls[1].Thread = 2 }, "stall 1 is of thread 2 of 2"},
		{func(p *Page) { p.Stalls[1].Thread = -1 }, "stall 1 is of thread -1 of 2"},
		{func(p *Page) { p.Stalls[1].Culprit = 2 }, "stall 1 has culprit 2 of 2 rows"},
		{func(p *Page) { p.Findings[0].Stalls[0] = 3 }, "finding 0 names stall 3 of 3"},
		{func(p *Page) { p.Series[0].Thread = 2 }, "series 0 is of thread 2 of 2"},
		{func(p *Page) { p.Events = []Line{{Text: "x", Stall: 3}} }, `line "x" names stall 3 of 3`},
	} {
		p := small()
		test.spoil(p)
		var b bytes.Buffer
		if err := p.Write(&b); err == nil || err.Error() != "report: "+test.want || b.Len() > 0 {
			t.Errorf("error is %v after %d bytes, want %q", err, b.Len(), test.want)
		}
	}
	if err := new(Page).Write(new(bytes.Buffer)); err != nil {
		t.Errorf("an empty page: %v", err)
	}
}

func TestSpan(t *testing.T) {
	at := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		micros   []float64 // of stalls that end one second after the other
		from, to float64   // seconds from the first's end, margins apart
	}{
		{[]float64{1e3}, -1e-3, 0},
		{[]float64{1e3, 1e3, 1e3}, -1e-3, 2},
		{[]float64{30e6}, -30, 0},         // stopped for half a minute
		{[]float64{4e14, 1e3, 1e3}, 0, 2}, // by a clock of 1 Hz
		{[]float64{math.NaN(), inf}, 0, 1},
	} {
		p := &Page{Threads: make([]Thread, 1)}
		for i, us := range test.micros {
			p.Stalls = append(p.Stalls, Stall{End: at.Add(time.Duration(i) * time.Second), Micros: us})
		}
		s := newSpan(p)
		margin := max((test.to-test.from)/50, 5e-4)
		zero := at.Sub(s.epoch).Seconds()
		if from, to := s.from/1e6-zero, s.to/1e6-zero; math.Abs(from-test.from+margin) > 1e-6 || math.Abs(to-test.to-margin) > 1e-6 {
			t.Errorf("%v: from %v to %v, want %v to %v and margins of %v", test.micros, from, to, test.from, test.to, margin)
		}
	}
}

func TestTexts(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{duration(0), "0\u00a0ns"}, {duration(.25), "250\u00a0ns"}, {duration(12.34), "12.3\u00a0µs"}, {duration(58966), "59.0\u00a0ms"}, {duration(1.5e6), "1.50\u00a0s"},
		{duration(math.NaN()), "0\u00a0ns"}, {duration(-1), "0\u00a0ns"},
		{moment(time.Time{}), "unknown"}, {moment(time.Date(2026, 2, 1, 3, 4, 5, 678e6, time.UTC)), "2026-02-01 03:04:05.678000"},
		{moment(time.Date(0, 2, 1, 3, 4, 5, 0, time.UTC)), "02-01 03:04:05.000000"}, // of a log without years
		{clean("a\xffb\x00\u202ec\td\r\n"), "a\ufffdb\ufffd\ufffdc d  "},
		{headline("the threshold"), "The threshold"}, {headline("pmd-c01/id:8 lost"), "pmd-c01/id:8 lost"}, {headline(""), ""},
		{plural(1, "stall"), "1 stall"}, {plural(1234, "stall"), "1,234 stalls"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

func TestPlot(t *testing.T) {
	h := &Histogram{
		Title: "x", Micros: true,
		Bins:        []Bin{{0, 1, 0}, {1, 10, 0}, {10, 100, 1000}, {100, 1000, 1}, {1000, inf, 0}},
		Percentiles: []Percentile{{50, 31.6227766, "~"}, {100, 1000, ""}},
	}
	p := newPlot(h)
	// Four bins, of which two are empty, share the width; percentiles lie inside their
	// bins by the logarithm; a thousandth of the highest count is a quarter as high.
	if len(p.Bars) != 2 || p.Bars[0].X >= p.Bars[1].X || p.Bars[0].H < 3.9*p.Bars[1].H || p.Bars[0].H > 4.1*p.Bars[1].H {
		t.Errorf("bars are %+v", p.Bars)
	}
	if got, want := []float64{p.Marks[0].X, p.Marks[1].X}, []float64{1.5 * plotWidth / 4, 3 * plotWidth / 4}; math.Abs(got[0]-want[0]) > .1 || math.Abs(got[1]-want[1]) > .1 {
		t.Errorf("percentiles are at %v, want %v", got, want)
	}
	if want := "x, 1,001 values, p50 ~31.6\u00a0µs, max 1.00\u00a0ms"; p.Caption != want {
		t.Errorf("caption is %q, want %q", p.Caption, want)
	}
	if want := "above 10.0\u00a0µs up to 100\u00a0µs: 1,000"; p.Bars[0].Title != want {
		t.Errorf("the first bar is called %q, want %q", p.Bars[0].Title, want)
	}
	if newPlot(&Histogram{Bins: []Bin{{0, 1, 0}}}) != nil || newPlot(&Histogram{}) != nil {
		t.Error("a histogram of nothing is drawn")
	}
}

// TestPolicy: nothing may be loaded, and nothing run but what the page has.
func TestPolicy(t *testing.T) {
	var b bytes.Buffer
	if err := small().Write(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; script-src &#39;sha256-`) {
		t.Error("the page has no strict policy")
	}
	for _, word := range []string{"http:", "https:", "unsafe-", "@import", "url(", "eval(", "innerHTML", "fetch(", "XMLHttpRequest"} {
		page := strings.ReplaceAll(b.String(), "http://www.w3.org/2000/svg", "")
		if strings.Contains(page, word) {
			t.Errorf("the page has %q", word)
		}
	}
}
