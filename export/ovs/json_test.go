package ovs

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
)

// encode returns a document's JSON and checks that it can be decoded to the same
// document, without a field that the type doesn't have.
func encode(t *testing.T, d *Document) []byte {
	t.Helper()
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	var again Document
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, &again); diff != "" {
		t.Errorf("decoded again (-before +after):\n%s", diff)
	}
	return text
}

func TestDocumentGolden(t *testing.T) {
	mainThread := &perf.Snapshot{Kind: perf.Main, Name: "main", Hz: hz, Totals: perf.Totals{RxPackets: 7}}
	got := encode(t, NewDocument([]*perf.Snapshot{mainThread, detailed()}, Options{Iterations: 10, Milliseconds: 10}))
	got = append(got, '\n')
	const golden = "testdata/document.json"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got), UPDATE_GOLDEN=1 writes it anew:\n%s", golden, diff)
	}
}

// When it was cleared stays the same, though the clocks are read anew for every snapshot.
func TestDocumentSince(t *testing.T) {
	s := detailed()
	s.Cleared = s.Time(s.Since)
	want := NewDocument([]*perf.Snapshot{s}, Options{}).Threads[0].Since
	s.Anchor.Wall = s.Anchor.Wall.Add(3)
	got := NewDocument([]*perf.Snapshot{s}, Options{}).Threads[0].Since
	if !got.Equal(want) || want.IsZero() {
		t.Errorf("since %v, then since %v", want, got)
	}
}

// What the parts must add up to can be checked in the document alone.
func TestDocumentSums(t *testing.T) {
	r := NewDocument([]*perf.Snapshot{detailed()}, Options{}).Threads[0]
	c := r.Cycles
	if c.Wall != c.Used+c.Sleep+c.Gaps || c.Used != c.Idle+c.Busy || c.Wall != r.UntilTick-r.SinceTick {
		t.Errorf("cycles don't add up: %+v", c)
	}
	u := r.Usage
	sum := u.Overhead + u.Idle + u.Sleep + u.Gaps
	for _, q := range u.Queues {
		sum += q.Percent
	}
	if math.Abs(sum-100) > 1e-9 {
		t.Errorf("shares add up to %v %%", sum)
	}
	if len(r.Histograms) != 7 {
		t.Fatalf("%d histograms, want 7", len(r.Histograms))
	}
	for name, h := range r.Histograms {
		var n uint64
		for _, b := range h.Bins {
			n += b
		}
		if n != h.Count || len(h.Bins) != len(h.Walls)+1 || len(h.Percentiles) != 7 {
			t.Errorf("%s: %+v", name, h)
		}
	}
	if r.IterationHistory != nil || r.MillisecondHistory != nil {
		t.Error("histories that nobody asked for")
	}
}

// The fine ranges have all values.
func TestDocumentFine(t *testing.T) {
	snap := detailed()
	asked := Options{Fine: true, Reports: func(name string) suspicious.ReportCounts {
		if name != snap.Name {
			t.Errorf("asked for the reports of %q, want %q", name, snap.Name)
		}
		c := suspicious.ReportCounts{Reported: 5, HeldBack: 2}
		c.Causes[suspicious.CausePreempted], c.Causes[suspicious.CauseUnknown] = 3, 2
		return c
	}}
	d := NewDocument([]*perf.Snapshot{snap}, asked)
	encode(t, d)
	r := d.Threads[0]
	for name, h := range r.Histograms {
		var last, n uint64
		for i, f := range h.Fine {
			if i > 0 && f[0] <= last {
				t.Errorf("%s: range %d after %d", name, f[0], last)
			}
			last = f[0]
			n += f[1]
		}
		if n != h.Count || last < *h.Max || last > *h.Max+*h.Max/128 {
			t.Errorf("%s: %d values up to %d in fine ranges, want %d up to %d", name, n, last, h.Count, *h.Max)
		}
	}
	if r.Reloads == nil || len(r.Reloads.Fine) == 0 {
		t.Error("no fine ranges of the reloads")
	}
	want := &ReportCounts{5, 2, map[string]uint64{"preempted": 3, "unknown": 2}}
	if diff := cmp.Diff(want, r.Suspicious.Reports); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

// What was not measured is absent, neither null nor 0.
func TestDocumentAbsent(t *testing.T) {
	s := &perf.Snapshot{Name: "pmd-c00/id:1", Hz: 1}
	text := encode(t, NewDocument([]*perf.Snapshot{s}, Options{Iterations: 5}))
	for _, wrong := range []string{"null", "NaN", "histograms", "derived\": {\n        \"", "tsc_hz", "time", "rx_batches", "usage", "history", "slowest", "upcall\"", "reload_spans"} {
		if bytes.Contains(text, []byte(wrong)) {
			t.Errorf("%q in the document of a recorder that recorded nothing:\n%s", wrong, text)
		}
	}
	s = detailed()
	s.Totals.DetailIterations = 0
	r := NewDocument([]*perf.Snapshot{s}, Options{}).Threads[0]
	if len(r.Histograms) != 2 || r.Packets.RxBatches != nil || r.Cycles.Upcall != nil || r.Derived.MicrosPerUpcall != nil {
		t.Errorf("details of a recorder at level basic: %+v", r)
	}
	text = encode(t, NewDocument(nil, Options{}))
	if !bytes.Contains(text, []byte(`"threads": []`)) {
		t.Errorf("no threads: %s", text)
	}
}
