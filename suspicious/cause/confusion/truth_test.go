package confusion

import (
	"strings"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/suspicious/cause"
)

// TestTruth lets causes pass that the thread's counters bear out, and no others.
func TestTruth(t *testing.T) {
	const ms = time.Millisecond
	// A nanosleep of 2 ms, after which another task had the core for 3 ms.
	slept := truth{Over: 5 * ms, Wait: 3 * ms, Sleep: 2 * ms}
	sleeping := provoked{kind: cause.Blocked, sleep: 2 * ms}
	// 2 ms of work.
	worked := truth{Over: 2 * ms, CPU: 2 * ms}
	working := provoked{kind: cause.Work, cpu: 2 * ms}
	for _, tt := range []struct {
		name string
		t    truth
		p    provoked
		kind cause.Kind
		part time.Duration
		want bool
	}{
		{"it was preempted too", slept, sleeping, cause.Preempted, 3 * ms, true},
		{"not for so long", slept, sleeping, cause.Preempted, 4 * ms, false},
		{"what was provoked", slept, sleeping, cause.Blocked, 2 * ms, true},
		{"too much of it", slept, sleeping, cause.Blocked, 4 * ms, false},
		{"the runtime didn't park it", slept, sleeping, cause.Runtime, 2 * ms, false},
		{"nobody stopped it", slept, sleeping, cause.Stopped, 2 * ms, false},
		{"it didn't work", slept, sleeping, cause.Work, 3 * ms, false},
		{"the machine ran", worked, working, cause.Hypervisor, 2 * ms, false},
		{"work", worked, working, cause.Work, 2 * ms, true},
		{"no upcalls", worked, working, cause.Upcalls, 2 * ms, false},
		{"no quota", worked, working, cause.Throttled, ms, false},
		{"nothing is not wrong", worked, working, cause.Unknown, 2 * ms, true},
		{"no reload", worked, working, cause.Reload, 2 * ms, false},
		{"quota", truth{Over: 10 * ms, Wait: 9 * ms}, provoked{kind: cause.Throttled}, cause.Throttled, 9 * ms, true},
		{"stop", truth{Over: 10 * ms, Sleep: 9 * ms}, provoked{kind: cause.Stopped, sleep: 8 * ms}, cause.Stopped, 9 * ms, true},
	} {
		if got := tt.t.allows(&cause.Cause{Kind: tt.kind, Part: tt.part}, tt.p); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

// TestTable prints what people look at.
func TestTable(t *testing.T) {
	table := &Table{User: true, Probes: []cause.Status{{Probe: "switches", Why: "not allowed"}}, Others: 0.25, Late: 12345 * time.Microsecond, Rows: []Row{
		{Provocation: "cgroup quota", Skipped: "no cgroup can be made"},
		{Provocation: "reload"},
		{Provocation: "nanosleep", Kind: cause.Blocked},
	}}
	row := &table.Rows[2]
	truth := truth{Over: 4 * time.Millisecond, Wait: 2 * time.Millisecond, Sleep: 2 * time.Millisecond}
	for _, causes := range [][]cause.Cause{
		{{Kind: cause.Blocked, Name: "nanosleep", Part: 2 * time.Millisecond, Share: 0.5, How: cause.Exact, Evidence: "seen"}},
		{{Kind: cause.Preempted, Name: "sh", Part: 2 * time.Millisecond, Share: 0.5, How: cause.Exact, Evidence: "seen"}},
		{{Kind: cause.Work, Part: 4 * time.Millisecond, Share: 1, How: cause.Exact, Evidence: "seen"}},
		{{Kind: cause.Work, Part: 4 * time.Millisecond, Share: 1, Evidence: "guessed"}},
	} {
		row.judge([]answer{{4 * time.Millisecond, causes, truth}}, provoked{kind: cause.Blocked, sleep: 2 * time.Millisecond})
	}
	row.done()
	if row.Made != 4 || row.Named != 1 || row.First != 1 || row.Wrong != 1 || row.Share != 0.125 || len(row.Misses) != 3 {
		t.Errorf("%+v", row)
	}
	var b strings.Builder
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	want := `probe switches: off, not allowed

others use the machine: while nothing was provoked they had 25 % of the loop's core, and sleeps took up to 12.35ms too long

provocation   made  named   first  wrong   share  spoilt  first causes
cgroup quota  -     -       -      -       -      -       skipped: no cgroup can be made
reload        0     -       -      -       -      0       
nanosleep     4     25.0 %  1      25.0 %  12 %   0       work (2), blocked nanosleep (1), preempted sh (1)
`
	if got := b.String(); !strings.HasPrefix(got, want) || !strings.Contains(got, "nanosleep: wrong: 4ms, of which it ran for 0s, waited for a core for 2ms and slept for 2ms: the loop's own work") {
		t.Errorf("got\n%s", got)
	}
}
