package ovs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sleepText = `Default max sleep:    0 us
pmd thread numa_id 0 core_id 1:
  max sleep:  500 us
pmd thread numa_id 1 core_id 13:
  max sleep: 10000 us
`

func TestParseSleep(t *testing.T) {
	r, err := ParseSleep(sleepText)
	if err != nil {
		t.Fatal(err)
	}
	us := func(n uint64) *uint64 { return new(n) }
	want := &SleepReport{Default: us(0), Blocks: []SleepBlock{
		{Thread{NUMA: 0, Core: 1}, us(500)}, {Thread{NUMA: 1, Core: 13}, us(10000)},
	}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(sleepText, r.String()); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

func TestParseSleepUnread(t *testing.T) {
	r, err := ParseSleep("  max sleep: 5 us\npmd thread numa_id 0 core_id 1:\n  max sleep: 5 ms\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Unread) != 2 || r.Unread[1].Number != 3 || r.Blocks[0].MaxSleep != nil {
		t.Errorf("report: %+v", r)
	}
}

func FuzzParseSleep(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseSleep(text)
		if err != nil {
			return
		}
		again, err := ParseSleep(r.String())
		if err != nil {
			t.Fatal(err)
		}
		again.Unread = append(again.Unread, r.Unread...)
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("written and read again (-before +after):\n%s", diff)
		}
	})
}
