package evidence

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pmdperf/pmdperf/internal/mangle"
	"github.com/pmdperf/pmdperf/suspicious/investigate"
)

const shown = "../../export/ovs/testdata/ovs-3.1"

func showText(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(shown, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestShows compares the findings with how each text was made.
func TestShows(t *testing.T) {
	lost, full, sleep := investigate.LostCPU, investigate.QueueFull, investigate.Sleep
	load, up, quiet := investigate.Overload, investigate.Upcalls, investigate.Quiet
	type kinds []investigate.Kind
	for name, want := range map[string]struct {
		first, any, never kinds
		title             string
	}{
		"idle-hog.txt":                          {first: kinds{lost}, never: kinds{load, up}},
		"busy-hog.txt":                          {first: kinds{lost}, any: kinds{load}, never: kinds{up}},
		"idle-two-ports.txt":                    {first: kinds{lost}, never: kinds{load, up, full}},
		"busy-null-fwd.txt":                     {first: kinds{lost}, any: kinds{load}},
		"nohuge-busy-null.txt":                  {any: kinds{load, lost}},
		"manyflows-normal.txt":                  {first: kinds{lost}, any: kinds{load}, never: kinds{up}},
		"afpacket-20kpps.txt":                   {first: kinds{lost}, never: kinds{load, up}},
		"upcalls-flowlimit.txt":                 {first: kinds{up}, any: kinds{load, lost}, title: "100 %"},
		"upcalls-flowdel.txt":                   {first: kinds{up}},
		"upcalls-dpctl-del.txt":                 {first: kinds{up}, any: kinds{lost}},
		"upcalls-500flows.txt":                  {any: kinds{up, lost}},
		"upcalls-flowdel.stats.txt":             {first: kinds{up}},
		"vhost-txonly.txt":                      {any: kinds{lost, full}, never: kinds{load}},
		"vhost-txonly-q16.txt":                  {any: kinds{lost, full}, never: kinds{load}},
		"sleep-idle-500us.txt":                  {first: kinds{sleep}, never: kinds{lost}, title: "sleeps 581 us"},
		"sleep-afpacket-20kpps.txt":             {first: kinds{sleep}, never: kinds{lost}},
		"idle-sigstop.txt":                      {first: kinds{lost}},
		"two-pmds.txt":                          {first: kinds{lost, lost}},
		"metrics-off.txt":                       {first: kinds{quiet}},
		"just-cleared.txt":                      {first: kinds{investigate.DataLost}, title: "cleared just before"},
		"g11-perfshow-full-hist-it-ms-v310.txt": {},
		"two-pmds.rxq.txt":                      {first: kinds{quiet}},
	} {
		t.Run(name, func(t *testing.T) {
			r := investigated(t, showText(t, name))
			var got kinds
			for _, f := range r.Findings {
				got = append(got, f.Kind)
			}
			for i, k := range want.first {
				if i >= len(got) || got[i] != k {
					t.Errorf("findings %v, want first %v", got, want.first)
				}
			}
			for _, k := range want.any {
				if !slices.Contains(got, k) {
					t.Errorf("findings %v, want %s", got, k)
				}
			}
			for _, k := range want.never {
				if slices.Contains(got, k) {
					t.Errorf("findings %v, want no %s", got, k)
				}
			}
			if !strings.Contains(r.Findings[0].Title, want.title) {
				t.Errorf("the first finding is %q, want %q in it", r.Findings[0].Title, want.title)
			}
			if s := r.Sources[0]; s.Unread > 0 {
				t.Errorf("%d lines not read: %v", s.Unread, s.Lost)
			}
		})
	}
}

// TestShowMangled pastes what show commands printed.
func TestShowMangled(t *testing.T) {
	text := showText(t, "two-pmds.txt") + showText(t, "two-pmds.stats.txt") + showText(t, "two-pmds.rxq.txt")
	want := investigated(t, text)
	if len(want.Measured) != 2+3+2 {
		t.Fatalf("%d blocks, want 7", len(want.Measured))
	}
	for _, m := range mangle.All() {
		switch m.Name {
		case "numbered", "numbered-colon", "numbered-dot", "quoted", "quoted-twice", "dash", "bar", "name-stderr", "bars-after", "crlf",
			"colours", "nbsp", "bom", "utf16le", "utf16be", "gzip", "collapsed", "unindented":
		default:
			continue // what befalls logs
		}
		t.Run(m.Name, func(t *testing.T) {
			got := investigated(t, m.Do(text))
			if len(got.Measured) != len(want.Measured) {
				t.Fatalf("%d blocks, want %d", len(got.Measured), len(want.Measured))
			}
			if len(got.Findings) != len(want.Findings) {
				t.Fatalf("%d findings, want %d", len(got.Findings), len(want.Findings))
			}
			for i := range want.Findings {
				if g, w := got.Findings[i], want.Findings[i]; g.Title != w.Title || g.Lost != w.Lost {
					t.Errorf("finding %q (%g us), want %q (%g us)", g.Title, g.Lost, w.Title, w.Lost)
				}
			}
		})
	}
}

// TestMixed has a log and show texts in one, as in a bug report.
func TestMixed(t *testing.T) {
	text := "Hello, we see drops:\n\n" + log(t, "idle-sigstop") + "\n" + showText(t, "idle-sigstop.txt") + showText(t, "idle-sigstop.rxq.txt") + log(t, "g04")
	r := investigated(t, text)
	var stalls []float64
	for _, s := range r.Stalls {
		if s.Reported {
			stalls = append(stalls, s.Micros)
		}
	}
	if !slices.Equal(stalls, []float64{58966, 107064, 255869, 509164, 303098}) {
		t.Errorf("stalls %v", stalls)
	}
	if len(r.Measured) != 2 {
		t.Errorf("%d blocks, want 2", len(r.Measured))
	}
	// The places are those in the whole text.
	lines := strings.Split(text, "\n")
	for _, s := range r.Stalls {
		if s.Reported && !strings.Contains(lines[s.Line-1], "Suspicious iteration") {
			t.Errorf("line %d is %q", s.Line, lines[s.Line-1])
		}
	}
	for _, m := range r.Measured {
		if !strings.Contains(strings.Join(lines[m.Line-1:m.Line+6], "\n"), "core_id 1") {
			t.Errorf("%s at line %d: %q", m.Command, m.Line, lines[m.Line-1])
		}
	}
}

// TestCoverage reads coverage/show among other texts.
func TestCoverage(t *testing.T) {
	text := `Event coverage, avg rate over last: 5 seconds, last minute, last hour,  hash=f3e5372c:
datapath_drop_upcall_error  0.0/sec     0.083/sec        0.0014/sec   total: 5
vhost_tx_contention      120.0/sec    90.000/sec        2.0000/sec   total: 12345
datapath_drop_rx_invalid_packet  0.0/sec     0.000/sec        0.0000/sec   total: 4206
flow_extract              12.2/sec    12.250/sec       11.7647/sec   total: 43127
113 events never hit
`
	r := investigated(t, showText(t, "two-pmds.rxq.txt")+text+showText(t, "two-pmds.stats.txt"))
	if len(r.Measured) != 2+1+3 {
		t.Fatalf("%d blocks, want 6", len(r.Measured))
	}
	f := r.Findings[0]
	if want := "the datapath dropped 4,211 packets since its start"; f.Kind != investigate.Drops || f.Title != want {
		t.Errorf("%s %q, want %q", f.Kind, f.Title, want)
	}
	if want := "coverage/show: vhost_tx_contention 12,345, 90/s in the last minute"; f.Evidence[0].Text != want {
		t.Errorf("%q, want %q", f.Evidence[0].Text, want)
	}
	if s := r.Sources[0]; s.Unread > 0 {
		t.Errorf("unread: %+v", s.Lost)
	}
}

// TestVersions reads what the versions of Open vSwitch print.
func TestVersions(t *testing.T) {
	files, err := filepath.Glob("../../export/ovs/testdata/formats/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		r := investigated(t, string(b))
		s := r.Sources[0]
		if len(s.Kinds) != 1 || s.Unread > 0 || s.Error != "" || len(r.Measured) == 0 {
			t.Errorf("%s: %d blocks, %+v", filepath.Base(name), len(r.Measured), s)
		}
		for _, m := range r.Measured {
			if strings.Contains(name, ".perf.") && !m.Main && (m.Iterations == nil || m.UsedCycles == nil || m.IdleIterations == nil) {
				t.Errorf("%s: %+v", filepath.Base(name), m)
			}
		}
	}
}
