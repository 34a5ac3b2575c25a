package exporter

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPidOf(t *testing.T) {
	for socket, want := range map[string]int{
		"/run/openvswitch/ovs-vswitchd.4711.ctl": 4711,
		"/run/a.b.12.ctl":                        12,
		"/run/demo.ctl":                          0,
		"/run/4711":                              4711,
		"/run/x.99999999999.ctl":                 0,
		"":                                       0,
	} {
		if got := pidOf(socket); got != want {
			t.Errorf("pidOf(%q) = %d, want %d", socket, got, want)
		}
	}
}

func TestSwitches(t *testing.T) {
	proc := t.TempDir()
	const pmd = "Name:\tpmd-c03/id:11\nState:\tR (running)\nvoluntary_ctxt_switches:\t17\nnonvoluntary_ctxt_switches:\t4\n"
	for thread, text := range map[string]string{
		"1": "Name:\tovs-vswitchd\nvoluntary_ctxt_switches:\t1\nnonvoluntary_ctxt_switches:\t1\n",
		"2": pmd,
		"3": "Name:\tpmd-c04/id:12\nvoluntary_ctxt_switches:\tmany\nnonvoluntary_ctxt_switches:\t4\n",
		"4": "Name:\tpmd8\nvoluntary_ctxt_switches:\t1\nnonvoluntary_ctxt_switches:\t4\n",
	} {
		dir := filepath.Join(proc, "42", "task", thread)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "status"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := map[int]switches{3: {17, 4}}
	if diff := cmp.Diff(want, switchesOf(proc, 42), cmp.AllowUnexported(switches{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := switchesOf(proc, 43); len(got) != 0 {
		t.Errorf("a process that isn't there has %v", got)
	}
}
