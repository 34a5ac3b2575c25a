package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/ovslab"
)

// reportPage is what a page has.
type reportPage struct {
	html    string
	Threads []struct{ Name string }
	Stalls  struct {
		Micros []float64 `json:"us"`
		Detail []struct {
			Culprit int
			Rows    [][]any
		}
	}
	Series []struct {
		Name   string
		Thread int
		Points [][3]float64
	}
}

// readPage reads a page and what its script gets.
func readPage(t *testing.T, html string) reportPage {
	t.Helper()
	p := reportPage{html: html}
	_, rest, ok := strings.Cut(html, `<script type="application/json" id="data">`)
	data, _, end := strings.Cut(rest, "</script>")
	if !ok || !end || !strings.HasSuffix(html, "</html>\n") {
		t.Fatalf("this is no page: %.300s", html)
	}
	if err := json.Unmarshal([]byte(data), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// series returns the names of the series of a thread.
func (p *reportPage) series(thread int) (names []string) {
	for _, s := range p.Series {
		if s.Thread == thread && len(s.Points) > 0 {
			names = append(names, s.Name)
		}
	}
	return names
}

func TestReport(t *testing.T) {
	t.Parallel()
	dir := runDir(t)
	startDemo(t, dir, 2)
	file := filepath.Join(dir, "r.html")
	out, stderr, status := command(t, dir, "pmdperf", "report", "-t", "demo", "-o", file)
	if status != 0 || out != "" || stderr != "" {
		t.Fatalf("status %d, output %q, %s", status, out, stderr)
	}
	html, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := readPage(t, string(html))
	if len(p.Threads) != 2 || p.Threads[0].Name != "pmd-c01/id:9" || p.Threads[1].Name != "pmd-c03/id:11" {
		t.Errorf("threads are %v", p.Threads)
	}
	for i := range p.Threads {
		if names := p.series(i); !slices.Contains(names, "packets received in a millisecond") || !slices.Contains(names, "queue fill") {
			t.Errorf("thread %d has series %q", i, names)
		}
	}
	wantMatches(t, p.html,
		`<h1>PMDs of demo</h1>`, `busy <b>\d+\.\d %</b>`, `asleep <b>\d+\.\d %</b>`, `<dt>Recorded</dt><dd>detailed, running, \d+\.\d s since the last clear</dd>`,
		`<b>time of an iteration</b> <span>[\d,]+ values</span>`, `<dt>p99.99</dt><dd>\d[\d.]*\x{a0}[nµm]s</dd>`, `<dt>max</dt><dd>\d`)

	out, stderr, status = command(t, dir, "pmdperf", "report", "-t", "demo")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, %s", status, stderr)
	}
	readPage(t, out)
	for _, test := range []struct {
		args, message string
		status        int
	}{
		{"extra", `unexpected argument "extra": see 'pmdperf report --help'`, 2},
		{"-t nobody", `find nobody: open ` + dir + `/nobody.pid: no such file or directory`, 1},
		{"-t demo -o " + dir + "/none/r.html", `open ` + dir + `/none/.*: no such file or directory`, 1},
	} {
		out, stderr, status := command(t, dir, "pmdperf", append([]string{"report"}, strings.Fields(test.args)...)...)
		if status != test.status || out != "" || !regexp.MustCompile("^pmdperf: "+test.message+"\n$").MatchString(stderr) {
			t.Errorf("%s: status %d, message %q; want %d, %q", test.args, status, stderr, test.status, test.message)
		}
	}
}

// TestReportStalls: the stalls that a program remembers are in the page, each with its
// neighborhood, and lead to findings.
func TestReportStalls(t *testing.T) {
	t.Parallel()
	dir := runDir(t)
	run := exec.Command("pmdperf", "run", "--duration", "2m", "--rate", "20k", "--rundir", dir, "--name", "demo", "--inject", "compute=5ms@100ms", "--probes", "off")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Signal(os.Interrupt)
		if err := run.Wait(); err != nil {
			t.Error(err)
		}
	})
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		events, _, status := command(t, dir, "pmdperf", "appctl", "-t", "demo", "pmdperf/events", "-n", "100")
		if status == 0 && strings.Count(events, "\n") > 5 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the program has no five events:\n%s", events)
		}
	}
	html, stderr, status := command(t, dir, "pmdperf", "report", "-t", "demo")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, %s", status, stderr)
	}
	p := readPage(t, html)
	if n := len(p.Stalls.Micros); n < 5 {
		t.Errorf("%d stalls", n)
	}
	if most := slices.Max(p.Stalls.Micros); most < 5000 {
		t.Errorf("the longest stall took %v us, want the injected 5 ms", most)
	}
	for i, d := range p.Stalls.Detail {
		if d.Culprit < 0 || d.Culprit >= len(d.Rows) {
			t.Errorf("stall %d has culprit %d of %d rows", i, d.Culprit, len(d.Rows))
		}
	}
	wantMatches(t, p.html, `<li id="finding-1" `, `<tr id="stall-\d+">`, `<tr class="culprit">`)
}

// TestReportOVS makes the page of a real Open vSwitch.
func TestReportOVS(t *testing.T) {
	t.Parallel()
	lab := ovslab.Start(t, ovslab.Options{PMDs: 2})
	html, stderr, status := command(t, lab.RunDir, "pmdperf", "report")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, %s", status, stderr)
	}
	p := readPage(t, html)
	if len(p.Threads) < 2 || p.Threads[0].Name != "PMD on core 0" || p.Threads[1].Name != "PMD on core 1" {
		t.Errorf("threads are %v", p.Threads)
	}
	wantMatches(t, p.html, `<h1>PMDs of ovs-vswitchd</h1>`, `<b>time of an iteration</b> <span>[\d,]+ values</span>`, `<td class="where">ovs-vswitchd dpif-netdev/pmd-stats-show</td><td>pmd-stats-show</td>`)
}
