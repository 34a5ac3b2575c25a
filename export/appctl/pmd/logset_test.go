package pmd

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
)

const logSetCommand = "dpif-netdev/pmd-perf-log-set"

// lockedBuffer is a buffer that several goroutines write to.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// The settings are those of each PMD's recorder, one option at a time.
//
// 7: switched on, it silently did nothing while detailed metrics were off. Here it raises
// the level and says so.
func TestDefect7LogSet(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	l := start(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, perf.Basic)
	const untouched = "core 3: off, before=5, after=5, extend=false, us_thr=250, q_thr=128\n"
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "core 1: off, before=5, after=5, extend=false, us_thr=250, q_thr=128\n" + untouched},
		{[]string{"-us", "100", "-pmd", "1"}, "core 1: off, before=5, after=5, extend=false, us_thr=100, q_thr=128\n"},
		{[]string{"-pmd", "1", "on", "-e"}, "core 1: on, before=5, after=5, extend=true, us_thr=100, q_thr=128\n" +
			"core 1: level raised from basic to detailed\n"},
		{[]string{"on", "-pmd", "1", "-b", "998", "-a", "0"}, "core 1: on, before=998, after=0, extend=true, us_thr=100, q_thr=128\n"},
		{nil, "core 1: on, before=998, after=0, extend=true, us_thr=100, q_thr=128\n" + untouched},
		{[]string{"-pmd", "1"}, "core 1: on, before=998, after=0, extend=true, us_thr=100, q_thr=128\n"},
		{[]string{"-q", "2147483647", "off", "-ne", "-b", "0", "-a", "998", "-us", "3600000000"},
			"core 1: off, before=0, after=998, extend=false, us_thr=3600000000, q_thr=2147483647\n" +
				"core 3: off, before=0, after=998, extend=false, us_thr=3600000000, q_thr=2147483647\n"},
		{[]string{"-pmd", "3", "-us", "off", "-q", "off", "-poll-gap", "700", "-gap", "30", "-cycles-per-packet", "900", "-upcalls", "2",
			"-cycles-per-upcall", "5000", "-full-batches", "9", "-drops", "1", "-rx-drops", "3", "-adaptive", "20"},
			"core 3: off, before=0, after=998, extend=false, us_thr=off, q_thr=off, poll_gap_us_thr=700, gap_us_thr=30, " +
				"cycles_per_packet_thr=900, upcalls_thr=2, cycles_per_upcall_thr=5000, full_batches_thr=9, drops_thr=1, rx_drops_thr=3, adaptive_thr=20\n"},
		{[]string{"-pmd", "3", "-drops", "off", "-us", "250"},
			"core 3: off, before=0, after=998, extend=false, us_thr=250, q_thr=off, poll_gap_us_thr=700, gap_us_thr=30, " +
				"cycles_per_packet_thr=900, upcalls_thr=2, cycles_per_upcall_thr=5000, full_batches_thr=9, rx_drops_thr=3, adaptive_thr=20\n"},
	} {
		if got := l.call(t, logSetCommand, test.args...); got != test.want {
			t.Errorf("%q:\n got %q\nwant %q", test.args, got, test.want)
		}
	}
	var s perf.Snapshot
	if err := l.loops[0].Snapshot(soon(t), perf.Want{}, &s); err != nil {
		t.Fatal(err)
	}
	want := suspicious.Settings{After: 998, Limits: suspicious.Limits{Iteration: 250 * time.Microsecond, PollGap: 700 * time.Microsecond,
		Gap: 30 * time.Microsecond, CyclesPerPacket: 900, Upcalls: 2, CyclesPerUpcall: 5000, FullBatches: 9, RxDrops: 3, Adaptive: 20}}
	if diff := cmp.Diff(want, s.Suspicion); diff != "" {
		t.Errorf("the recorder's (-want +got):\n%s", diff)
	}
	log.mu.Lock()
	text := log.String()
	log.mu.Unlock()
	if n := strings.Count(text, "\n"); n != 7 || !strings.Contains(text,
		`level=INFO msg="pmd-perf-log-set: on, before=5, after=5, extend=true, us_thr=100, q_thr=128" pmd=pmd-c01/id:9`) {
		t.Errorf("%d lines:\n%s", n, text)
	}

	// A change that makes no sense for one PMD changes none.
	l.call(t, logSetCommand, "-b", "0", "-a", "0", "-pmd", "1")
	if _, err := l.dial(t, false).Call(soon(t), logSetCommand, "-b", "1", "on"); err == nil {
		t.Error("1 before and 998 after are taken")
	}
	l.call(t, "pmdperf/level", "-pmd", "3", "off")
	var got struct{ Threads []map[string]any }
	l.data(t, &got, logSetCommand, "-a", "7", "-poll-gap", "off", "on")
	thread := func(core, numa float64, name string, thresholds map[string]any) map[string]any {
		return map[string]any{"core": core, "numa": numa, "name": name, "on": true, "before": 0.0, "after": 7.0,
			"extend": false, "thresholds": thresholds}
	}
	all := []map[string]any{
		thread(1, 1, "pmd-c01/id:9", map[string]any{"us_thr": 3600000000.0, "q_thr": 2147483647.0}),
		thread(3, 0, "pmd-c03/id:11", map[string]any{"us_thr": 250.0, "gap_us_thr": 30.0, "cycles_per_packet_thr": 900.0, "upcalls_thr": 2.0,
			"cycles_per_upcall_thr": 5000.0, "full_batches_thr": 9.0, "rx_drops_thr": 3.0, "adaptive_thr": 20.0}),
	}
	all[1]["level_raised_from"] = "off"
	if diff := cmp.Diff(all, got.Threads); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What two clients change at once is changed by both.
func TestLogSetConcurrently(t *testing.T) {
	t.Parallel()
	l := start(t, Options{}, perf.Detailed)
	var all sync.WaitGroup
	for _, option := range []string{"-us", "-q", "-upcalls", "-drops"} {
		all.Go(func() {
			for n := range 20 {
				l.call(t, logSetCommand, option, fmt.Sprint(n+1))
			}
		})
	}
	all.Wait()
	if got := l.call(t, logSetCommand, "-pmd", "1"); got != "core 1: off, before=5, after=5, extend=false, us_thr=20, q_thr=20, upcalls_thr=20, drops_thr=20\n" {
		t.Error(got)
	}
}

// The highest thresholds are those that the recorder takes.
func TestLogSetRanges(t *testing.T) {
	for _, thr := range thresholds() {
		s := suspicious.Default()
		if thr.set(&s.Limits, thr.max); s.Check() != nil || thr.get(&s.Limits) != thr.max {
			t.Errorf("%s %d: %v, %d", thr.option, thr.max, s.Check(), thr.get(&s.Limits))
		}
		if thr.set(&s.Limits, thr.max+1); s.Check() == nil {
			t.Errorf("%s %d is right too", thr.option, thr.max+1)
		}
	}
}
