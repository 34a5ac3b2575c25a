package ovs

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const coverageText = `Event coverage, avg rate over last: 5 seconds, last minute, last hour,  hash=f3e5372c:
nln_changed                0.0/sec     0.000/sec        0.0000/sec   total: 123
datapath_drop_upcall_error   0.4/sec     0.083/sec        0.0014/sec   total: 5
vhost_tx_contention      12345.6/sec 12345.678/sec    12345.6789/sec   total: 18446744073709551615
121 events never hit
`

func TestCoverage(t *testing.T) {
	r, err := ParseCoverage(coverageText)
	if err != nil {
		t.Fatal(err)
	}
	want := &CoverageReport{Seconds: 5, Hash: "f3e5372c", NeverHit: 121, Events: []CoverageEvent{
		{"nln_changed", "0.0", "0.000", "0.0000", 123},
		{"datapath_drop_upcall_error", "0.4", "0.083", "0.0014", 5},
		{"vhost_tx_contention", "12345.6", "12345.678", "12345.6789", 1<<64 - 1},
	}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(coverageText, r.String()); diff != "" {
		t.Errorf("written again (-want +got):\n%s", diff)
	}
	if n, ok := r.Total("datapath_drop_upcall_error"); !ok || n != 5 {
		t.Errorf("total = %d, %v, want 5", n, ok)
	}
	if n, ok := r.Total("datapath_drop_meter"); ok || n != 0 {
		t.Errorf("total of an event that isn't there = %d, %v", n, ok)
	}
}

// A part of the text, as people paste it, is read as far as it is there.
func TestCoverageUnread(t *testing.T) {
	r, err := ParseCoverage("nln_changed 0.0/sec 0.000/sec 0.0000/sec total: 123\nnln_changed 0.0/sec 0.000/sec 0.0000/sec total: 124\n" +
		"x 1/min 0/sec 0/sec total: 3\nx 1/sec 0/sec 0/sec total: -3\n7 events never hit\n")
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := r.Total("nln_changed"); n != 123 || len(r.Events) != 1 || len(r.Unread) != 4 || r.Unread[0].Number != 2 {
		t.Errorf("%+v", r)
	}
	var syntax *SyntaxError
	if _, err := ParseCoverage("pmd thread numa_id 0 core_id 1:"); !errors.As(err, &syntax) {
		t.Errorf("error = %v", err)
	}
	if r, err := ParseCoverage(""); err != nil || len(r.Events) > 0 {
		t.Errorf("empty text: %+v, %v", r, err)
	}
}

func FuzzParseCoverage(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseCoverage(text)
		if err != nil {
			return
		}
		again, err := ParseCoverage(r.String())
		if err != nil {
			t.Fatal(err)
		}
		again.Unread = append(again.Unread, r.Unread...)
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("written and read again (-before +after):\n%s", diff)
		}
	})
}
