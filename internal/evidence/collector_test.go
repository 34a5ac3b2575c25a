package evidence

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/mangle"
	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/investigate"
)

func write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestDirectory reads a directory of rotated logs with other things among them.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/ovs-vswitchd.log", log(t, "idle-sigstop"))
	write(t, dir+"/ovs-vswitchd.log.1", log(t, "g04"))
	write(t, dir+"/ovs-vswitchd.log.2.gz", mangle.Gzip(log(t, "g02")))
	write(t, dir+"/ovs-vswitchd.log.10.gz", mangle.Gzip(log(t, "g10")))
	write(t, dir+"/ovsdb-server.log", "2026-11-30T14:46:46.178Z|00001|ovsdb_server|INFO|ovsdb-server (Open vSwitch) 3.1.0\n")
	write(t, dir+"/conf.db", string([]byte{0, 1, 2, 3, 0, 0, 9}))
	write(t, dir+"/empty", "")
	for _, name := range []string{"a", "b", "c"} {
		if err := syscall.Mkfifo(filepath.Join(dir, "fifo-"+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "broken")); err != nil {
		t.Fatal(err)
	}
	c := &Collector{Case: investigate.NewCase()}
	if err := c.Add(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	r := c.Case.Result()
	var names []string
	var events uint64
	for _, s := range r.Sources {
		names = append(names, filepath.Base(s.Name))
		events += s.Events
	}
	want := []string{"ovs-vswitchd.log.10.gz", "ovs-vswitchd.log.2.gz", "ovs-vswitchd.log.1", "ovs-vswitchd.log"}
	if !slices.Equal(names, want) {
		t.Errorf("read %v, want %v", names, want)
	}
	if c.Read != 4 || c.Passed != 3 || len(c.Failed) > 0 {
		t.Errorf("%d read, %d passed, failed %v", c.Read, c.Passed, c.Failed)
	}
	if want := uint64(4 + 1 + 12 + strings.Count(log(t, "g10"), "Suspicious iteration")); events != want {
		t.Errorf("%d events, want %d", events, want)
	}
}

func TestFailed(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	write(t, good, log(t, "g04"))
	half := mangle.Gzip(log(t, "idle-hog"))
	write(t, dir+"/half.gz", half[:len(half)/2])
	write(t, dir+"/text", "nothing of interest\n")
	if err := syscall.Mkfifo(dir+"/fifo", 0o644); err != nil {
		t.Fatal(err)
	}
	c := &Collector{Case: investigate.NewCase(), Stdin: strings.NewReader("")}
	for _, name := range []string{good, dir + "/missing", dir + "/half.gz", dir + "/text", dir + "/fifo", "-"} {
		if err := c.Add(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, err := range c.Failed {
		got = append(got, strings.TrimPrefix(err.Error(), dir+"/"))
	}
	want := []string{
		"missing: no such file or directory", "half.gz: unexpected EOF", "text: nothing recognisable",
		"fifo: nothing recognisable: it is empty", "-: nothing recognisable: it is empty",
	}
	if !slices.Equal(got, want) {
		t.Errorf("failed %q, want %q", got, want)
	}
	if c.Read != 2 {
		t.Errorf("%d read, want 2: the good one and the first half", c.Read)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Add(ctx, good); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// endless reads a text over and over.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

// TestHostile wants what isn't evidence to end in a message, in little memory and time.
func TestHostile(t *testing.T) {
	size := int64(100 << 20)
	if !need.Long() {
		size = 8 << 20
	}
	bomb := func(text string, size int64) io.Reader {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		io.CopyN(w, &endless{text: text}, size)
		w.Close()
		return &b
	}
	zeros := string(make([]byte, 1<<16))
	words := strings.Repeat("words and words ", 1<<12)
	for name, test := range map[string]struct {
		r    io.Reader
		want string
	}{
		"zeros":         {io.LimitReader(&endless{text: zeros}, size), "it is binary"},
		"one line":      {io.LimitReader(&endless{text: words}, size), "nothing recognisable"},
		"many headings": {io.LimitReader(&endless{text: "pmd thread numa_id 0 core_id 1:\n"}, size), "nothing recognisable"},
		"many lines":    {io.LimitReader(&endless{text: "main thread: and numa_id and so on\n"}, size), "nothing recognisable"},
		"JSON":          {io.LimitReader(&endless{text: `{"iteration":1,"reasons":[` + strings.Repeat(" ", 1000) + "\n"}, 8<<20), "nothing recognisable"},
		"long JSON":     {io.LimitReader(&endless{text: `{"iteration":1,"reasons":[` + strings.Repeat(" ", 1000) + "\n"}, 70<<20), "a JSON document of more than 64 MB"},
		"JSON line":     {io.LimitReader(&endless{text: `{"iteration":1,"reasons":[` + strings.Repeat(" ", 1000)}, 8<<20), "nothing recognisable"},
		"bomb":          {bomb(strings.Repeat("many words\n", 1<<12), 50<<20), "MB that it unpacks to"},
		"binary bomb":   {bomb(zeros, 50<<20), "it is binary"},
		"bomb of bomb":  {bomb(mangle.Gzip(strings.Repeat(words, 1<<8)), 1<<20), "nothing recognisable"},
	} {
		t.Run(name, func(t *testing.T) {
			memory := peak()
			start := cpu(t)
			c := &Collector{Case: investigate.NewCase(), Stdin: test.r}
			if err := c.Add(t.Context(), "-"); err != nil {
				t.Fatal(err)
			}
			if len(c.Failed) != 1 || !strings.Contains(c.Failed[0].Error(), test.want) {
				t.Errorf("failed %.300v, want %q", c.Failed, test.want)
			}
			most := uint64(400 << 20) // what other tests left included, and a document twice while its buffer grows
			if need.Race {
				most *= 4
			}
			if m := memory(); m > most {
				t.Errorf("%d MB of memory", m>>20)
			}
			if s := cpu(t) - start; s > 30 {
				t.Errorf("it took %.0f s of processor time", s)
			}
		})
	}
}

// TestFlightRecord reads flight records, as lines and as the answer of a program.
func TestFlightRecord(t *testing.T) {
	var records []suspicious.FlightRecord
	var lines bytes.Buffer
	at := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	for i := range 5 {
		f := suspicious.FlightRecord{
			Version: suspicious.FlightVersion, Name: "pmd-c03/id:7", Core: 3, Hz: 1e9, Iteration: uint64(1000 * i), Time: at.Add(time.Duration(i) * time.Second),
			Micros: 8000.25, Reasons: []suspicious.FlightReason{{Reason: "cycles", Value: 8_000_250, Threshold: 250_000}},
			Polled: []suspicious.FlightPolled{{Queues: []suspicious.FlightQueue{{Port: "p0", Size: 512}, {Port: "p1", ID: 3, Size: 512}}}},
			Causes: []suspicious.Cause{{Kind: suspicious.CausePreempted, Name: "sh", Part: 7 * time.Millisecond, Share: 0.9, How: suspicious.Exact, Evidence: "seen"}},
		}
		queue := 1
		for k := range uint64(11) {
			row := suspicious.FlightRow{Iteration: f.Iteration - 5 + k, Cycles: 10_000, Rx: 10, Batches: 1}
			if k == 5 {
				row.Cycles, row.Queue, row.Suspicious = 8_000_250, &queue, true
			}
			f.Records = append(f.Records, row)
		}
		records = append(records, f)
		line, err := json.Marshal(&f)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	answer, err := json.MarshalIndent(map[string]any{"events": records}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(records)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"lines": lines.String(), "a line cut": lines.String() + lines.String()[:500], "an answer": string(answer), "a list": string(list), "gzip": mangle.Gzip(lines.String()),
	} {
		r := investigated(t, text)
		if len(r.Stalls) != 5 || len(r.Findings) == 0 {
			t.Errorf("%s: %d stalls, %d findings", name, len(r.Stalls), len(r.Findings))
			continue
		}
		s := r.Stalls[2]
		if s.Micros != 8000.25 || s.Core != 3 || s.Iteration != 2000 || !s.Time.Equal(records[2].Time) || s.Kind != investigate.LostCPU || s.Neighborhood[s.Culprit].Queue != "p1 3" {
			t.Errorf("%s: %+v", name, s)
		}
		// 10 packets in 10 us are 1M/s; in 8000.25 us arrive 8000.25, less 1024.
		if l := s.Loss; l == nil || l.Packets != 6976 || l.Capacity != 1024 || l.Assumed {
			t.Errorf("%s: loss %+v", name, l)
		}
		f := r.Findings[0]
		if f.Kind != investigate.LostCPU || !strings.Contains(strings.Join(f.Text, " "), "preempted by sh (35 ms)") || f.Loss.Packets != 5*6976 {
			t.Errorf("%s: %+v %+v", name, f, f.Loss)
		}
		if len(r.Thresholds) != 1 || r.Thresholds[0].Micros != 250 {
			t.Errorf("%s: thresholds %+v", name, r.Thresholds)
		}
		if unread := r.Sources[0].Unread; unread != strings.Count(name, "cut") {
			t.Errorf("%s: %d lines not read", name, unread)
		}
	}
}

// TestOwnSteps wants no commands for Open vSwitch where it isn't Open vSwitch.
func TestOwnSteps(t *testing.T) {
	f := suspicious.FlightRecord{
		Version: suspicious.FlightVersion, Name: "pmd-c03/id:7", Core: 3, Hz: 1e9, Iteration: 1000, Time: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC),
		Micros: 8000, Reasons: []suspicious.FlightReason{{Reason: "cycles", Value: 8_000_000, Threshold: 250_000}},
	}
	line, err := json.Marshal(&f)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range investigated(t, string(line)).Findings[0].Next {
		if strings.Contains(s.Command, "ovs") {
			t.Errorf("%q is for Open vSwitch", s.Command)
		}
	}
}
