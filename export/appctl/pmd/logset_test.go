package pmd

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/perf"
)

// The settings are kept for each PMD, one option at a time.
func TestLogSet(t *testing.T) {
	t.Parallel()
	l := start(t, Options{}, perf.Basic)
	const set = "dpif-netdev/pmd-perf-log-set"
	const untouched = "core 3: off, before=5, after=5, extend=false, us_thr=250, q_thr=128\n"
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "core 1: off, before=5, after=5, extend=false, us_thr=250, q_thr=128\n" + untouched},
		{[]string{"-us", "100", "-pmd", "1"}, "core 1: off, before=5, after=5, extend=false, us_thr=100, q_thr=128\n"},
		{[]string{"-pmd", "1", "on", "-e"}, "core 1: on, before=5, after=5, extend=true, us_thr=100, q_thr=128\n" +
			"core 1: level raised from basic to detailed\n"},
		{[]string{"on", "-pmd", "1", "-b", "999", "-a", "0"}, "core 1: on, before=999, after=0, extend=true, us_thr=100, q_thr=128\n"},
		{nil, "core 1: on, before=999, after=0, extend=true, us_thr=100, q_thr=128\n" + untouched},
		{[]string{"-q", "4294967295", "off", "-ne", "-b", "0", "-a", "999", "-us", "4294967295"},
			"core 1: off, before=0, after=999, extend=false, us_thr=4294967295, q_thr=4294967295\n" +
				"core 3: off, before=0, after=999, extend=false, us_thr=4294967295, q_thr=4294967295\n"},
	} {
		if got := l.call(t, set, test.args...); got != test.want {
			t.Errorf("%q:\n got %q\nwant %q", test.args, got, test.want)
		}
	}
	// A change that makes no sense for one PMD changes none.
	l.call(t, set, "-b", "0", "-a", "0", "-pmd", "1")
	if _, err := l.dial(t, false).Call(soon(t), set, "-b", "1", "on"); err == nil {
		t.Error("1 before and 999 after are taken")
	}
	l.call(t, "pmdperf/level", "-pmd", "3", "off")
	var got struct{ Threads []map[string]any }
	l.data(t, &got, set, "-a", "7", "on")
	thread := func(core, numa float64, name string) map[string]any {
		return map[string]any{"core": core, "numa": numa, "name": name, "on": true, "before": 0.0, "after": 7.0,
			"extend": false, "us": 4294967295.0, "queue_fill": 4294967295.0}
	}
	want := []map[string]any{thread(1, 1, "pmd-c01/id:9"), thread(3, 0, "pmd-c03/id:11")}
	want[1]["level_raised_from"] = "off"
	if diff := cmp.Diff(want, got.Threads); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What was set for a PMD doesn't outlive it.
func TestLogSetForgets(t *testing.T) {
	var l logs
	r, err := perf.New(perf.Config{})
	if err != nil {
		t.Fatal(err)
	}
	a := &arguments{word: "on", hasWord: true}
	if s, err := l.change(r, a); err != nil || !s.On || !l.get(r).On {
		t.Errorf("%v, %v, %v", s, err, l.get(r))
	}
	l.keep([]*perf.Recorder{r})
	if !l.get(r).On {
		t.Error("forgot a PMD that is there")
	}
	l.keep(nil)
	if l.get(r) != defaultLogSettings() || len(l.of) != 0 {
		t.Error("kept what was set for a PMD that is gone")
	}
}
