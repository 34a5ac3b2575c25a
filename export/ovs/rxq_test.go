package ovs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseRxqValues(t *testing.T) {
	r, err := ParseRxq(readCaptures(t, "pmd-rxq-show")["two-pmds.rxq"])
	if err != nil {
		t.Fatal(err)
	}
	no := false
	want := &RxqReport{Seconds: 60, Blocks: []RxqBlock{
		{
			Thread: Thread{NUMA: 0, Core: 0}, Isolated: &no, Overhead: &Usage{},
			Queues: []RxqQueue{{Port: "a0", Enabled: true}},
		},
		{
			Thread: Thread{NUMA: 0, Core: 1}, Isolated: &no, Overhead: &Usage{},
			Queues: []RxqQueue{{Port: "a1", Enabled: true}, {Port: "n1", Enabled: true}},
		},
	}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRxqLayout(t *testing.T) {
	yes := true
	r := &RxqReport{Seconds: 5, Blocks: []RxqBlock{
		{
			Thread: Thread{NUMA: 1, Core: 12}, Isolated: &yes, Overhead: &Usage{true, 100},
			Queues: []RxqQueue{
				{Port: "a-port-with-a-long-name", Queue: 11, Usage: Usage{true, 7}},
				{Port: "queue-id: 3", Enabled: true},
			},
		},
		{Thread: Thread{NUMA: 1, Core: 13}, Isolated: new(bool)},
	}}
	want := `Displaying last 5 seconds pmd usage %
pmd thread numa_id 1 core_id 12:
  isolated : true
  port: a-port-with-a-long-name  queue-id: 11 (disabled)  pmd usage:  7 %
  port: queue-id: 3       queue-id:  0 (enabled)   pmd usage: NOT AVAIL
  overhead: 100 %
pmd thread numa_id 1 core_id 13:
  isolated : false
`
	if diff := cmp.Diff(want, r.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, err := ParseRxq(want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, again); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}

func TestParseRxqUnread(t *testing.T) {
	r, err := ParseRxq("pmd thread numa_id 0 core_id 1:\n  port: p  queue-id: 0 (enabled)  pmd usage: 3\n  overhead: 200\n  isolated : maybe\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Unread) != 3 || r.Unread[0].Number != 2 || r.Unread[2].Number != 4 {
		t.Errorf("unread: %v", r.Unread)
	}
}

func FuzzParseRxq(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRxq(text)
		if err != nil {
			return
		}
		again, err := ParseRxq(r.String())
		if err != nil {
			t.Fatal(err)
		}
		again.Unread = append(again.Unread, r.Unread...)
		if diff := cmp.Diff(r, again); diff != "" {
			t.Errorf("written and read again (-before +after):\n%s", diff)
		}
	})
}
