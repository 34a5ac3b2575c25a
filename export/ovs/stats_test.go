package ovs

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseStatsValues(t *testing.T) {
	r, err := ParseStats(readCaptures(t, "pmd-stats-show")["two-pmds.stats"])
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Blocks) != 3 || r.Blocks[2].Thread != MainThread() {
		t.Fatalf("blocks: %+v", r.Blocks)
	}
	b := &r.Blocks[0]
	if v, ok := b.Value("idle cycles"); !ok || v != 7155868236 {
		t.Errorf("idle cycles = %d, %v", v, ok)
	}
	if _, ok := b.Value("avg. packets per output batch"); ok {
		t.Error("an average was taken for a count")
	}
	if _, ok := r.Blocks[2].Value("idle cycles"); ok {
		t.Error("the main thread has cycles")
	}
	want := StatsRow{"avg processing cycles per packet", "36039.72", "3614567816/100294"}
	if got := b.Rows[len(b.Rows)-1]; got != want {
		t.Errorf("last row = %+v, want %+v", got, want)
	}
}

func TestParseStatsUnread(t *testing.T) {
	r, err := ParseStats("packets received: 1\nmain thread:\n  emc hits: x\n  emc hits: 4\n  emc hits: 5\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []Line{{1, "packets received: 1"}, {3, "emc hits: x"}, {5, "emc hits: 5"}}
	if diff := cmp.Diff(want, r.Unread); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var syntax *SyntaxError
	if _, err := ParseStats("hello"); !errors.As(err, &syntax) || syntax.Line != 1 {
		t.Errorf("error = %v", err)
	}
}

func FuzzParseStats(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseStats(text)
		if err != nil {
			return
		}
		again, err := ParseStats(r.String())
		if err != nil {
			t.Fatal(err)
		}
		again.Unread = append(again.Unread, r.Unread...)
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("written and read again (-before +after):\n%s", diff)
		}
	})
}
