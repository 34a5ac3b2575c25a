package top

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/internal/live"
)

// replies is a target that answers with real output of Open vSwitch, over a
// control socket, so that samples are made as they always are.
type replies struct {
	source *live.Source
	perf   string // the answer to pmd-perf-show
	stats  string
}

func newReplies(t testing.TB) *replies {
	t.Helper()
	dir, err := os.MkdirTemp("", "top")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r := &replies{}
	command := func(name string, text *string) appctl.Command {
		return appctl.Command{Name: name, MaxArgs: appctl.NoMax, Text: func(_ context.Context, w io.Writer, _ []string) error {
			if *text == "" {
				return errors.New("out of order")
			}
			_, err := io.WriteString(w, *text)
			return err
		}}
	}
	s, err := appctl.Listen(appctl.Config{RunDir: dir, Name: "top"},
		command("dpif-netdev/pmd-perf-show", &r.perf), command("dpif-netdev/pmd-stats-show", &r.stats))
	if err != nil {
		t.Fatal(err)
	}
	r.source = &live.Source{Target: s.SocketPath()}
	t.Cleanup(func() { r.source.Close(); s.Close() })
	return r
}

// use has the target answer with a capture from now on.
func (r *replies) use(t testing.TB, name string) {
	t.Helper()
	for file, to := range map[string]*string{name + ".txt": &r.perf, name + ".stats.txt": &r.stats} {
		text, err := os.ReadFile("../../export/ovs/testdata/ovs-3.1/" + file)
		if err != nil {
			t.Fatal(err)
		}
		*to = string(text)
	}
}

// newModel returns a model of a screen that has looked once.
func newModel(t testing.TB, capture string) (*Model, *replies) {
	t.Helper()
	r := newReplies(t)
	r.use(t, capture)
	m := New(t.Context(), r.source, "demo", time.Second)
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	m.Update(m.look())
	return m, r
}

// text returns what is on the screen, without colours.
func text(m *Model) string { return ansi.Strip(strings.Join(m.lines(), "\n")) }

func press(m *Model, keys ...string) {
	for _, k := range keys {
		m.key(k)
	}
}

func wantText(t *testing.T, m *Model, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text(m), part) {
			t.Errorf("there is no %q on the screen\n%s", part, text(m))
		}
	}
}

func TestScreen(t *testing.T) {
	m, _ := newModel(t, "two-pmds")
	wantText(t, m,
		">   0  33.6 0.020   36040  14.9     0  ~109ns  ~216ns ~3.59us >10.4ms     0    -",
		"core 0, NUMA node 0, ~2.30 GHz", "since the last clear, text form")
	press(m, "down")
	wantText(t, m, ">   1   0.0 0.000       -     -     0", "core 1, NUMA node 0")
	press(m, "down", "down") // no further than the last
	wantText(t, m, ">   1")
	press(m, "h", "h")
	wantText(t, m, "time of a packet: ")
	press(m, "H", "H")
	wantText(t, m, "time of an iteration: ")
	press(m, "d")
	wantText(t, m, "2 PMDs, since")
	if strings.Contains(text(m), "NUMA node") {
		t.Errorf("there are still details:\n%s", text(m))
	}
}

func TestSort(t *testing.T) {
	m, _ := newModel(t, "two-pmds")
	first := func() int { return m.shown.rows[0].core }
	press(m, "r")
	if first() != 1 {
		t.Error("cores reversed do not begin with the last")
	}
	press(m, "s")
	wantText(t, m, "sort▼busy%")
	if first() != 0 {
		t.Error("the busiest PMD is not the first")
	}
	press(m, "r")
	if first() != 1 || m.shown.rows[m.cursor()].core != 0 {
		t.Error("the busiest PMD is not the last, or not selected any more")
	}
	press(m, "S")
	wantText(t, m, "sort▲core")

	// What has no value is last in both orders.
	press(m, "s", "s", "s")
	wantText(t, m, "sort▼cyc/pkt")
	if first() != 0 {
		t.Error("a PMD without a value is the first")
	}
	press(m, "r")
	if first() != 0 {
		t.Error("a PMD without a value is the first in reverse")
	}
	// Columns that can't be sorted by or are not on the screen are left out.
	seen := map[string]bool{}
	for range 2 * len(columns) {
		press(m, "s")
		seen[columns[m.sortBy].title] = true
	}
	if len(seen) != 12 || !seen["susp"] || seen["numa"] {
		t.Errorf("sorted by %v", seen)
	}
}

// TestTrouble: everything that can be wrong with a target is said.
func TestTrouble(t *testing.T) {
	m, r := newModel(t, "two-pmds")
	r.perf = ""
	m.Update(m.look())
	wantText(t, m, "TARGET GONE for 0 s, trying again: out of order", ">   0  33.6")
	r.use(t, "two-pmds")
	m.Update(m.look())
	// The very same counters, in no time: not one iteration.
	wantText(t, m, "no iteration was completed in the last")
	if strings.Contains(text(m), "GONE") {
		t.Errorf("still gone:\n%s", text(m))
	}
	r.use(t, "metrics-off") // counters that are behind
	m.Update(m.look())
	wantText(t, m, "the counters were cleared, or the target was started again", "no histograms: the target does not record in detail")
	r.perf, r.stats = "\n", "\n"
	m.Update(m.look())
	wantText(t, m, "the target has no PMD threads")

	m.take(looked{sample: &live.Sample{Form: live.JSON, Missing: []live.Missing{{Core: 4, Reason: "no iteration completed for 1.2 s"}}, Notes: []string{"a note"}}})
	wantText(t, m, ">   4  no iteration completed for 1.2 s", "core 4: no iteration completed", "a note")
	press(m, "w", "s", "s", "r")
	wantText(t, m, "core 4: ")
}

func TestNoAnswerYet(t *testing.T) {
	m := New(t.Context(), &live.Source{Target: "/nonexistent/x.ctl"}, "demo", time.Second)
	m.Update(tea.WindowSizeMsg{Width: 120, Height: 24})
	wantText(t, m, "asking demo ...")
	m.Update(m.look())
	wantText(t, m, `no answer yet: cannot connect to "/nonexistent/x.ctl"`, "q quit")
}

func TestPause(t *testing.T) {
	m, r := newModel(t, "two-pmds")
	press(m, "p")
	r.use(t, "manyflows-normal")
	m.Update(m.look())
	wantText(t, m, "PAUSED", "14.9")
	press(m, "p")
	m.Update(m.look())
	wantText(t, m, "core 1, NUMA node 0")
	if strings.Contains(text(m), "PAUSED") || strings.Contains(text(m), "14.9") {
		t.Errorf("still paused:\n%s", text(m))
	}
}

// TestSize: whatever the size and the keys, nothing is wider or higher than the screen,
// the keys are at the bottom, and the selected row is on the screen.
func TestSize(t *testing.T) {
	m, _ := newModel(t, "manyflows-normal")
	for i := range 20 {
		m.last.PMDs = append(m.last.PMDs, m.last.PMDs[0])
		m.last.PMDs[i+1].Core = 100 + i
	}
	rapid.Check(t, func(t *rapid.T) {
		m := New(m.ctx, m.source, "demo", time.Second)
		m.Update(looked{sample: &live.Sample{Form: live.Text, PMDs: m.last0(t)}})
		m.width, m.height = rapid.IntRange(1, 250).Draw(t, "width"), rapid.IntRange(1, 80).Draw(t, "height")
		for range rapid.IntRange(0, 30).Draw(t, "keys") {
			press(m, rapid.SampledFrom([]string{"j", "k", "G", "s", "r", "w", "h", "p", "d"}).Draw(t, "key"))
		}
		lines := m.lines()
		if len(lines) != m.height {
			t.Fatalf("%d lines on a screen of %d", len(lines), m.height)
		}
		for _, line := range lines {
			if w := ansi.StringWidth(line); w > m.width {
				t.Fatalf("line is %d wide on a screen of %d: %q", w, m.width, line)
			}
		}
		if m.width > 10 && !strings.HasPrefix(ansi.Strip(lines[m.height-1]), "q quit") {
			t.Fatalf("no keys at the bottom: %q", lines[m.height-1])
		}
		if m.height > 8 && m.width > 8 && !strings.Contains(text(m), "\n>") {
			t.Fatalf("the selected row is not on the screen:\n%s", text(m))
		}
	})
}

// last0 returns some PMDs.
func (m *Model) last0(t *rapid.T) []live.PMD {
	var pmds []live.PMD
	for core := range rapid.IntRange(1, 30).Draw(t, "PMDs") {
		p := live.PMD{Core: core, NUMA: ovs.Unspecified, Hz: 1e9, Seconds: 1}
		for i := range rapid.IntRange(0, 50).Draw(t, "ms") {
			p.Millis = append(p.Millis, live.Milli{Age: float64(i) / 1000, Seconds: 0.001, Iterations: 3, Cycles: 1e5, BusyCycles: 5e4, Rx: 7})
		}
		pmds = append(pmds, p)
	}
	return pmds
}

func TestTimeline(t *testing.T) {
	ms := []live.Milli{
		{Age: 0, Seconds: 0.001, Iterations: 10, Cycles: 1000, Rx: 5, Fill: 2},
		{Age: 0.001, Seconds: 0.003, Iterations: 3, Cycles: 900, BusyCycles: 90, Rx: 30, Fill: 7}, // a stall
	}
	slots, width := timeline(ms, 4)
	if math.Abs(width-0.001) > 1e-12 || len(slots) != 4 {
		t.Fatalf("%d columns of %v s", len(slots), width)
	}
	for i, want := range []slot{
		{0.001, 1, 30, 10, 300, 7}, {0.001, 1, 30, 10, 300, 7}, {0.001, 1, 30, 10, 300, 7}, {0.001, 10, 0, 5, 100, 2},
	} {
		got := slots[i]
		for _, d := range []float64{got.seconds - want.seconds, got.iterations - want.iterations, got.busy - want.busy, got.rx - want.rx, got.took - want.took, got.fill - want.fill} {
			if math.Abs(d) > 1e-9 {
				t.Errorf("column %d is %+v, want %+v", i, got, want)
			}
		}
	}
	if slots, _ := timeline(nil, 10); slots != nil {
		t.Error("a time line of nothing")
	}
	if slots, _ := timeline([]live.Milli{{Age: math.NaN(), Seconds: math.NaN()}}, 10); slots != nil {
		t.Error("a time line without times")
	}
}

// TestTimelineNonsense: what a broken target answers must not break the screen.
func TestTimelineNonsense(t *testing.T) {
	number := rapid.OneOf(rapid.Float64(), rapid.Float64Range(-1, 1), rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), math.Inf(-1), 1e300}))
	row := rapid.Custom(func(t *rapid.T) live.Milli {
		return live.Milli{Age: number.Draw(t, "age"), Seconds: number.Draw(t, "seconds"), Iterations: number.Draw(t, "iterations"), Cycles: number.Draw(t, "cycles"), Rx: number.Draw(t, "rx")}
	})
	rapid.Check(t, func(t *rapid.T) {
		p := &live.PMD{Core: 1, Hz: number.Draw(t, "hz"), Millis: rapid.SliceOf(row).Draw(t, "rows")}
		m := &Model{width: 80, height: 24}
		if n := len(m.history(&live.Span{PMD: p})); n != 0 && n != 4 {
			t.Fatalf("%d lines, want 3 time lines and what they are of, or nothing", n)
		}
	})
}

func TestSpark(t *testing.T) {
	if got, want := spark([]float64{0, 1, 3.5, 7, math.NaN(), 8}, 7), "▁▂▅█ █"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := spark([]float64{0, 0}, 0); got != "▁▁" {
		t.Errorf("nothing but zeros: %q", got)
	}
	if got := bar(0.5, 4) + bar(2, 1) + bar(math.NaN(), 1); got != "██░░█░" {
		t.Errorf("bars are %q", got)
	}
}

func TestChart(t *testing.T) {
	m, _ := newModel(t, "manyflows-normal")
	s := m.shown.rows[0].span
	lines := chart(s.PMD, live.CyclesPerIteration, &s.Histograms[live.CyclesPerIteration], 3)
	if len(lines) != 4 {
		t.Fatalf("%d lines, want 3 and the axis", len(lines))
	}
	for _, line := range lines {
		if w := ansi.StringWidth(line); w != histogramWidth {
			t.Errorf("line is %d wide: %q", w, line)
		}
	}
	if got, want := lines[3], "217ns   3.85us  68.2us  1.21ms  "; got != want {
		t.Errorf("axis is %q, want %q", got, want)
	}
	// The bins of 3 and of 15873 values are both to be seen.
	bottom := []rune(lines[2])
	for i, n := range s.Histograms[live.CyclesPerIteration].Counts {
		if (n > 0) != (bottom[i] != ' ') {
			t.Errorf("bin %d with %d values is drawn as %q", i, n, bottom[i])
		}
	}
}
