package main

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/internal/ovslab"
)

// table returns the cells of the table on a screen of top, by the first word of the
// row: the core.
func table(lines []string) map[string][]string {
	rows := make(map[string][]string)
	for _, line := range lines[min(3, len(lines)):] {
		cells := strings.Fields(strings.TrimPrefix(line, ">"))
		if len(cells) == 0 {
			break
		}
		rows[cells[0]] = cells
	}
	return rows
}

// order returns the cores in the order of the rows, and which is selected.
func order(lines []string) (cores []string, selected string) {
	for _, line := range lines[min(3, len(lines)):] {
		cells := strings.Fields(strings.TrimPrefix(line, ">"))
		if len(cells) == 0 {
			break
		}
		cores = append(cores, cells[0])
		if strings.HasPrefix(line, ">") {
			selected = cells[0]
		}
	}
	return cores, selected
}

// filled reports whether the screen shows those cores with full rows.
func filled(cores ...string) func([]string) bool {
	return func(lines []string) bool {
		rows := table(lines)
		for _, core := range cores {
			if len(rows[core]) < 12 {
				return false
			}
		}
		return len(rows) == len(cores)
	}
}

// framed reports whether the frame of the screen is where it should be.
func framed(lines []string) bool {
	return strings.HasPrefix(lines[0], "pmdperf top ") && strings.HasPrefix(strings.TrimSpace(lines[2]), "core ") &&
		strings.HasPrefix(lines[len(lines)-1], "q quit")
}

var negative = regexp.MustCompile(`(^|[ ~≤>])-\d`)

func TestTop(t *testing.T) {
	t.Parallel()
	dir := runDir(t)
	d := startDemo(t, dir, 3)
	term := inTerminal(t, 80, 24, dir, "top", "-t", "demo", "--interval", "250ms")
	lines := term.await("three PMDs", func(lines []string) bool { return framed(lines) && filled("1", "3", "5")(lines) })
	if got, want := strings.Fields(lines[2]), strings.Fields("core busy% Mpps cyc/pkt p/bat upc/s p50 p99 p99.9 max fill susp"); !cmp.Equal(got, want) {
		t.Errorf("columns are %q, want %q", got, want)
	}
	for _, key := range strings.Fields("quit PMD sort reverse pause window hist. detail") {
		if !strings.Contains(lines[23], key) {
			t.Errorf("the line of keys lacks %q: %q", key, lines[23])
		}
	}
	for _, want := range []string{"JSON form", "pmd-c01/id:9", "busy ", "packets/s", "since clear", "time of an iteration"} {
		term.awaitText(want)
	}

	// It lives: a row changes, in what is shown and not only in the clock.
	before := table(lines)["1"]
	term.await("other values", func(lines []string) bool { return !cmp.Equal(table(lines)["1"], before) })

	// Selecting.
	term.keys("Down")
	term.await("core 3 selected", func(lines []string) bool { _, s := order(lines); return s == "3" })
	term.awaitText("pmd-c03/id:11")
	term.keys("G")
	term.await("core 5 selected", func(lines []string) bool { _, s := order(lines); return s == "5" })

	// Sorting: PMD 1 has twice the packets of the others.
	term.keys("s", "s")
	term.awaitText("sort▼Mpps")
	term.await("core 1 first", func(lines []string) bool { o, s := order(lines); return len(o) == 3 && o[0] == "1" && s == "5" })
	term.keys("r")
	term.await("core 1 last", func(lines []string) bool { o, s := order(lines); return len(o) == 3 && o[2] == "1" && s == "5" })

	// The window: since the clear percentiles are exact.
	term.await("interpolated percentiles", func(lines []string) bool { return strings.Contains(strings.Join(table(lines)["1"], " "), "~") })
	term.keys("w")
	term.awaitText("since the last clear")
	term.await("exact percentiles", func(lines []string) bool {
		return len(table(lines)["1"]) == 12 && !strings.Contains(strings.Join(table(lines)["1"], " "), "~")
	})
	term.keys("w")
	term.awaitText("over the last 0.")

	// Pausing keeps everything where it is.
	term.keys("p")
	lines = term.awaitText("PAUSED")
	time.Sleep(time.Second)
	if diff := cmp.Diff(lines, term.screen()); diff != "" {
		t.Errorf("paused screen changed:\n%s", diff)
	}
	term.keys("p")
	term.await("going on", func(l []string) bool { return !cmp.Equal(table(l), table(lines)) && !strings.Contains(l[1], "PAUSED") })

	// Resizing while it runs.
	term.resize(200, 60)
	term.await("a wide screen", func(lines []string) bool { return framed(lines) && strings.Contains(lines[2], "tx Mpps") })
	for _, title := range []string{"queue fill: ", "upcalls of an iteration: ", "packets of a batch: "} {
		term.awaitText(title)
	}
	term.resize(40, 12)
	term.await("a small screen", func(lines []string) bool { return framed(lines) && len(lines[2]) <= 40 })
	term.resize(80, 24)
	term.await("the first size", func(lines []string) bool { return framed(lines) && strings.Contains(lines[2], "p99.9") })

	// The server stands still for a while.
	d.signal(t, syscall.SIGSTOP)
	term.awaitText("demo does not answer")
	d.signal(t, syscall.SIGCONT)
	term.await("it going on", func(lines []string) bool { return lines[1] == "" })

	// The server is killed, and comes back with counters that begin at 0.
	d.kill(t)
	lines = term.awaitText("TARGET GONE")
	if o, _ := order(lines); len(o) != 3 {
		t.Errorf("the last values are not on the screen any more:\n%s", strings.Join(lines, "\n"))
	}
	startDemo(t, dir, 3)
	for range 10 {
		lines = term.await("the restarted server", func(lines []string) bool {
			return !strings.Contains(lines[1], "GONE") && filled("1", "3", "5")(lines)
		})
		if text := strings.Join(lines, "\n"); negative.MatchString(text) {
			t.Errorf("negative figure after a restart:\n%s", text)
		}
		time.Sleep(50 * time.Millisecond)
	}

	term.keys("q")
	if status := term.status(); status != "0" {
		t.Errorf("ended with status %s, want 0", status)
	}
}

// TestTopOVS: everything works with the text of a real Open vSwitch, too.
func TestTopOVS(t *testing.T) {
	t.Parallel()
	lab := ovslab.Start(t, ovslab.Options{PMDs: 2, Ports: 2, Queues: 2})
	term := inTerminal(t, 80, 24, lab.RunDir, "top", "--interval", "500ms")
	term.await("two PMDs", func(lines []string) bool { return framed(lines) && filled("0", "1")(lines) })
	term.await("interpolated percentiles", func(lines []string) bool {
		return strings.Contains(strings.Join(table(lines)["0"], " "), "~") && strings.Contains(lines[0], "over the last 0.")
	})
	for _, want := range []string{"text form", "ovs-vswitchd", "packets/s", "time of an iteration"} {
		term.awaitText(want)
	}

	// Packets, which the switch's own commands put into the ports.
	for range 20 {
		lab.Appctl(t, "netdev-dummy/receive", "p0", "in_port(1),eth(src=50:54:00:00:00:01,dst=50:54:00:00:00:02),eth_type(0x0800),ipv4(src=10.0.0.1,dst=10.0.0.2,proto=17)")
	}
	term.keys("w")
	term.await("packets", func(lines []string) bool {
		for _, row := range table(lines) {
			if len(row) > 4 && row[3] != "-" && row[4] == "1.0" {
				return true // cycles for each packet, packets of a batch
			}
		}
		return false
	})
	term.keys("w")

	// A clear is seen, and gives nothing negative.
	for range 3 {
		lab.Appctl(t, "dpif-netdev/pmd-stats-clear")
		lines := term.awaitText("cleared")
		if text := strings.Join(lines, "\n"); negative.MatchString(text) {
			t.Errorf("negative figure after a clear:\n%s", text)
		}
		term.await("an interval", func(lines []string) bool { return strings.Contains(lines[0], "over the last") && lines[1] == "" })
	}

	lab.Stop()
	term.awaitText("TARGET GONE")
	term.keys("C-c")
	if status := term.status(); status != "0" {
		t.Errorf("ended with status %s, want 0", status)
	}
}

// TestTopNowhere: top doesn't wait for ever without a word, and wants a terminal.
func TestTopNowhere(t *testing.T) {
	t.Parallel()
	dir := runDir(t)
	term := inTerminal(t, 80, 24, dir, "top", "-t", "nobody")
	term.awaitText("no answer yet: ")
	term.keys("q")
	if status := term.status(); status != "0" {
		t.Errorf("ended with status %s, want 0", status)
	}
}
