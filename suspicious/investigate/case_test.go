package investigate

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/suspicious/ovslog"
)

// logs returns the captured logs by name.
func logs(t testing.TB) map[string]string {
	t.Helper()
	all := make(map[string]string)
	files, err := filepath.Glob("../ovslog/testdata/logs/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))] = string(b)
	}
	return all
}

// collect adds what a text says.
func collect(c *Case, name, text string) {
	src := c.AddSource(name)
	for rec := range ovslog.NewReader(strings.NewReader(text)).Records() {
		c.AddRecord(src, rec)
	}
}

// read returns the result for a text.
func read(text string) *Result {
	c := NewCase()
	collect(c, "x.log", text)
	return c.Result()
}

func kinds(r *Result) (all []Kind) {
	for _, f := range r.Findings {
		all = append(all, f.Kind)
	}
	return all
}

// TestExpected compares the findings with what a careful reader can fairly conclude from
// each log.
func TestExpected(t *testing.T) {
	anyLost := []Kind{LostCPU}
	for name, test := range map[string]struct {
		first []Kind // the first findings, in this order
		among []Kind // among as many first findings as there are here
		three []Kind // among the first three
		any   []Kind // somewhere
		never []Kind
		title string // of the first finding, in part
	}{
		"idle-hog":              {first: anyLost, title: "pmd-c01/id:8 lost its CPU 38 times"},
		"busy-hog":              {first: anyLost},
		"idle-two-ports":        {first: anyLost},
		"busy-null-fwd":         {first: anyLost},
		"afpacket-20kpps":       {first: anyLost},
		"afpacket-topspeed":     {first: anyLost},
		"manyflows-normal":      {first: []Kind{LostCPU, LowThreshold}},
		"two-pmds":              {first: anyLost, never: []Kind{CommonCause}, title: "lost their CPUs"},
		"idle-sigstop":          {first: []Kind{Stopped}, never: []Kind{LostCPU, Unexplained}, title: "4 times, 931 ms in all"},
		"g04":                   {first: []Kind{Stopped}, title: "once, 303 ms in all"},
		"upcalls-flowlimit":     {first: []Kind{Upcalls}},
		"upcalls-flowdel":       {first: []Kind{Upcalls}},
		"upcalls-dpctl-del":     {among: []Kind{Upcalls, LostCPU}},
		"upcalls-500flows":      {first: anyLost, three: []Kind{Upcalls}},
		"vhost-txonly":          {among: []Kind{QueueFull, LostCPU}},
		"vhost-txonly-q16":      {among: []Kind{QueueFull, LostCPU}},
		"sleep-idle-500us":      {first: []Kind{LowThreshold}, any: []Kind{Sleep}, never: anyLost},
		"sleep-afpacket-20kpps": {first: []Kind{Unexplained}, never: anyLost, title: "2 one-off stalls"},
		"g01":                   {first: []Kind{Clock}, any: []Kind{DataLost}, never: anyLost, title: "1 Hz"},
		"g02":                   {first: anyLost},
		"g03":                   {first: []Kind{LostCPU, LowThreshold}},
		"g10":                   {first: anyLost},
		"g07":                   {first: anyLost, any: []Kind{DataLost}},
		"g08":                   {first: []Kind{LowThreshold}, never: anyLost, title: "the queue fill is 0"},
	} {
		t.Run(name, func(t *testing.T) {
			text, ok := logs(t)[name]
			if !ok {
				t.Fatal("there is no such log")
			}
			r := read(text)
			got := kinds(r)
			for i, k := range test.first {
				if i >= len(got) || got[i] != k {
					t.Errorf("findings %v, want first %v", got, test.first)
					break
				}
			}
			within := func(wanted []Kind, n int) {
				for _, k := range wanted {
					if i := slices.Index(got, k); i < 0 || i >= n {
						t.Errorf("findings %v, want %s among the first %d", got, k, n)
					}
				}
			}
			within(test.among, len(test.among))
			within(test.three, 3)
			within(test.any, len(got))
			for _, k := range test.never {
				if slices.Contains(got, k) {
					t.Errorf("findings %v, want no %s", got, k)
				}
			}
			if !strings.Contains(r.Findings[0].Title, test.title) {
				t.Errorf("the first finding is %q, want %q in it", r.Findings[0].Title, test.title)
			}
			for i, f := range r.Findings {
				if i > 1 && f.Lost > r.Findings[i-1].Lost {
					t.Errorf("%s lost %g us, more than %s before it: %g us", f.Kind, f.Lost, r.Findings[i-1].Kind, r.Findings[i-1].Lost)
				}
				if f.Because == "" || f.Confidence == "" || f.Title == "" || len(f.Next) == 0 {
					t.Errorf("%s lacks something: %+v", f.Kind, f)
				}
			}
		})
	}
}

// TestWords looks for what the findings have to say besides.
func TestWords(t *testing.T) {
	for name, want := range map[string]string{
		"idle-hog":          "not packet work",
		"two-pmds":          "independently of each other",
		"g07":               "fell back to 5 before and 5 after",
		"g01":               "are missing from the text",
		"vhost-txonly":      "the rows over the threshold outnumber the messages",
		"vhost-txonly-q16":  "The switch loses none there",
		"upcalls-flowlimit": "That is no loss by itself",
		"sleep-idle-500us":  "pmd-maxsleep",
		"manyflows-normal":  "A packet usually takes",
	} {
		found := false
		for _, f := range read(logs(t)[name]).Findings {
			found = found || strings.Contains(strings.Join(f.Text, " "), want)
		}
		if !found {
			t.Errorf("%s: no finding says %q", name, want)
		}
	}
}

// TestExact counts the events of every log anew, with nothing of the reader, and wants
// the stalls to be the same.
func TestExact(t *testing.T) {
	for name, text := range logs(t) {
		want := make(map[string]bool)
		rows := make(map[string][]string) // by iteration
		for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
			line := s.Text()
			if _, after, ok := strings.Cut(line, "): iter="); ok && strings.Contains(line, "Suspicious iteration (") {
				f := strings.Fields(after)
				_, thread, _ := strings.Cut(line, "|pmd_perf(")
				thread, _, _ = strings.Cut(thread, ")|")
				want[thread+" "+f[0]+" "+strings.TrimPrefix(f[1], "duration=")] = true
			} else if f := strings.Fields(line); len(f) == 8 && !strings.Contains(line, "|") {
				rows[f[0]] = f[1:]
			}
		}
		r := read(text)
		got := make(map[string]bool)
		for _, s := range r.Stalls {
			if s.Reported {
				got[fmt.Sprintf("%s %d %.0f", s.Thread, s.Iteration, s.Micros)] = true
			}
			if row, ok := rows[strconv.FormatUint(s.Iteration, 10)]; ok && s.Known {
				was := fmt.Sprint(s.Cycles, s.Packets, s.Fill, s.Upcalls)
				if is := strings.Join([]string{row[0], row[1], row[4], row[5]}, " "); was != is {
					t.Errorf("%s: iteration %d has %s, want %s", name, s.Iteration, was, is)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		var sum uint64
		for _, p := range r.PMDs {
			sum += p.Reported
		}
		if sum != uint64(len(want)) {
			t.Errorf("%s: %d reported, want %d", name, sum, len(want))
		}
	}
}

// TestStopped wants exactly the four stalls.
func TestStopped(t *testing.T) {
	var got []float64
	for _, s := range read(logs(t)["idle-sigstop"]).Stalls {
		got = append(got, s.Micros)
	}
	if diff := cmp.Diff([]float64{58966, 107064, 255869, 509164}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
