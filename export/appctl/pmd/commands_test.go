package pmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/internal/ovslab"
	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
)

// usages are the commands as list-commands shows them. Those of Open vSwitch are the
// same there.
const usages = `  dpif-netdev/pmd-perf-log-set on|off [-b before] [-a after] [-e|-ne] [-us usec] [-q qlen]
  dpif-netdev/pmd-perf-show [-nh] [-it iter-history-len] [-ms ms-history-len] [-pmd core] [dp]
  dpif-netdev/pmd-rxq-show [-pmd core] [-secs secs] [dp]
  dpif-netdev/pmd-sleep-show [dp]
  dpif-netdev/pmd-stats-clear [-pmd core] [dp]
  dpif-netdev/pmd-stats-show [-pmd core] [dp]
  pmdperf/clock           
  pmdperf/events          [-pmd core] [-n count] [event]
  pmdperf/level           [-pmd core] [off|basic|detailed]
  pmdperf/overhead        [-pmd core]
  pmdperf/packet-sizes    [-pmd core]
  pmdperf/percentiles     [-pmd core] [-hdr] [-log] [histogram]
  pmdperf/reloads         [-pmd core]
`

func ovsAppctl(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := exec.CommandContext(soon(t), need.Tool(t, "ovs-appctl"), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestUsages(t *testing.T) {
	t.Parallel()
	l := start(t, Options{}, perf.Detailed)
	var got strings.Builder
	for line := range strings.Lines(l.call(t, "list-commands")) {
		if strings.Contains(line, "/pmd-") || strings.Contains(line, "pmdperf/") {
			got.WriteString(line)
		}
	}
	if got.String() != usages {
		t.Errorf("got\n%swant\n%s", got.String(), usages)
	}
}

// TestUsagesOfOpenVSwitch compares them with those of the Open vSwitch that is
// installed, as far as it has the command.
func TestUsagesOfOpenVSwitch(t *testing.T) {
	t.Parallel()
	o := ovslab.Start(t, ovslab.Options{})
	sockets := o.RunDir + "/" + o.Name + ".pid"
	pid, err := exec.Command("cat", sockets).Output()
	if err != nil {
		t.Fatal(err)
	}
	list, _, _ := ovsAppctl(t, "-t", o.RunDir+"/"+o.Name+"."+strings.TrimSpace(string(pid))+".ctl", "list-commands")
	same := 0
	for want := range strings.Lines(list) {
		name, _, _ := strings.Cut(strings.TrimSpace(want), " ")
		if strings.Contains(usages, "  "+name+" ") && strings.HasPrefix(name, "dpif-netdev/") {
			same++
			if !strings.Contains(usages, want) {
				t.Errorf("Open vSwitch has %q", want)
			}
		}
	}
	if same < 5 {
		t.Errorf("only %d commands are in both", same)
	}
}

// calls are commands with what they answer: a pattern of the text, or of the error if
// status is 2.
var calls = []struct {
	command string
	pattern string
	status  int
}{
	{"dpif-netdev/pmd-perf-show", `(?s)^\nTime: .*core_id 1:\n.*Histograms\n.*\nTime: .*core_id 3:\n.*pkts/batch`, 0},
	{"dpif-netdev/pmd-perf-show ovs-netdev -nh", `(?s)core_id 1:\n\n  Iterations: .*core_id 3:`, 0},
	{"dpif-netdev/pmd-perf-show -pmd 3 -it 2 netdev@ovs-netdev -ms 3 -nh", `(?s)^\nTime: [^\n]*\n[^\n]*\n\npmd thread numa_id 0 core_id 3:\n.*\n   iter [^\n]*\n   \d+ [^\n]*\n   \d+ [^\n]*\n\n   ms `, 0},
	{"dpif-netdev/pmd-perf-show -it 5000", `\nnote: the history is of the last 1000 iterations, which is all that -it 5000 can show\n$`, 0},
	{"dpif-netdev/pmd-perf-show -pmd 1 -pmd 3", `^-pmd is given twice; there are PMDs on cores 1, 3\nUsage: ovs-appctl dpif-netdev/pmd-perf-show \[-nh\]`, 2},
	{"dpif-netdev/pmd-perf-show -pmd 9", `^there is no PMD on core 9; there are PMDs on cores 1, 3\n$`, 2},
	{"dpif-netdev/pmd-perf-show -pmd abc", `^-pmd "abc" is not a number from 0 to 2147483647; there are PMDs on cores 1, 3\nUsage: `, 2},
	{"dpif-netdev/pmd-perf-show -it", `^-it needs a number\nUsage: `, 2},
	{"dpif-netdev/pmd-perf-show -it -5", `^-it "-5" is not a number from 0 to 4294967295\nUsage: `, 2},
	{"dpif-netdev/pmd-perf-show -ms 18446744073709551616", `^-ms "18446744073709551616" is not a number`, 2},
	{"dpif-netdev/pmd-perf-show -x", `^unknown option "-x"\nUsage: `, 2},
	{"dpif-netdev/pmd-perf-show other", `^there is no datapath "other": please specify an existing datapath, which is "ovs-netdev"\n$`, 2},
	{"dpif-netdev/pmd-perf-show ovs-netdev ovs-netdev", `^"ovs-netdev" and "ovs-netdev" are more than one dp\nUsage: `, 2},
	{"dpif-netdev/pmd-stats-show", `(?s)^pmd thread numa_id 1 core_id 1:\n  packets received: .*core_id 3:\n.*main thread:\n  packets received: 7\n`, 0},
	{"dpif-netdev/pmd-stats-show -pmd 1", `^pmd thread numa_id 1 core_id 1:\n(  .*\n)+$`, 0},
	{"dpif-netdev/pmd-stats-clear -pmd 9", `there is no PMD on core 9`, 2},
	{"dpif-netdev/pmd-stats-clear -pmd 3", `^$`, 0},
	{"dpif-netdev/pmd-rxq-show", `(?s)^Displaying last 60 seconds pmd usage %\npmd thread numa_id 1 core_id 1:\n  isolated : false\n  port: p0 .*core_id 3:\n  isolated : true\n`, 0},
	{"dpif-netdev/pmd-rxq-show -secs 1 -pmd 3", `(?s)^Displaying last 5 seconds pmd usage %\npmd thread numa_id 0 core_id 3:\n`, 0},
	{"dpif-netdev/pmd-rxq-show -secs 11", `^Displaying last 15 seconds `, 0},
	{"dpif-netdev/pmd-rxq-show -secs 61", `^Displaying last 60 seconds `, 0},
	{"dpif-netdev/pmd-rxq-show -secs x", `^-secs "x" is not a number`, 2},
	{"dpif-netdev/pmd-sleep-show", `^Default max sleep:   50 us\npmd thread numa_id 1 core_id 1:\n  max sleep:   10 us\npmd thread numa_id 0 core_id 3:\n  max sleep:   30 us\n$`, 0},
	{"dpif-netdev/pmd-sleep-show -pmd 1", `^unknown option "-pmd"\nUsage: ovs-appctl dpif-netdev/pmd-sleep-show \[dp\]\n$`, 2},
	{"dpif-netdev/pmd-perf-log-set", `^core 1: off, before=5, after=5, extend=false, us_thr=250, q_thr=128\ncore 3: off, `, 0},
	{"dpif-netdev/pmd-perf-log-set perhaps", `^"perhaps" is neither on nor off\nUsage: ovs-appctl dpif-netdev/pmd-perf-log-set on\|off .* \[-q qlen\] \[-poll-gap usec\] .* \[-pmd core\]; every threshold also takes "off"\n$`, 2},
	{"dpif-netdev/pmd-perf-log-set -us 0", `^-us "0" is not a number from 1 to 3600000000 or off\nUsage: `, 2},
	{"dpif-netdev/pmd-perf-log-set -q -1", `^-q "-1" is not a number from 1 to 2147483647 or off\nUsage: `, 2},
	{"dpif-netdev/pmd-perf-log-set -upcalls 9223372036854775808", `^-upcalls "9223372036854775808" is not a number from 1 to 2147483647 or off\nUsage: `, 2},
	{"dpif-netdev/pmd-perf-log-set -b 1000", `^-b "1000" is not a number from 0 to 998\nUsage: `, 2},
	{"dpif-netdev/pmd-perf-log-set -b 600 -a 400", `^600 iterations before and 400 after: together they must be within 0 .. 998\nUsage: `, 2},
	{"dpif-netdev/pmd-perf-log-set -e -ne", `^-e and -ne are opposites\nUsage: `, 2},
	{"pmdperf/percentiles", `(?s)core +histogram .*  1 +cycles_per_iteration +cycles .*  3 +cycles_per_upcall +us `, 0},
	{"pmdperf/percentiles -pmd 1 queue_fill_per_iteration", `^ *core +histogram.*\n +1  queue_fill_per_iteration  packets .* 100 +100\n$`, 0},
	{"pmdperf/percentiles cycles_per_iteration -hdr -pmd 1", `^ Value\tPercentile\tTotalCount\t1/\(1-Percentile\)\n\n(.*\n)+#\[Mean    = `, 0},
	{"pmdperf/percentiles cycles_per_iteration -hdr", `^-hdr wants one PMD, by -pmd core; there are PMDs on cores 1, 3\nUsage: `, 2},
	{"pmdperf/percentiles -pmd 1 -hdr", `^-hdr wants the name of one histogram, such as cycles_per_iteration\nUsage: `, 2},
	{"pmdperf/percentiles -log -pmd 1 cycles_per_iteration", `^(#.*\n)+"StartTimestamp".*\nTag=pmd-c01\.cycles_per_iteration,0\.\d+,\d+\.\d+,\d+\.\d+,\S+\n$`, 0},
	{"pmdperf/percentiles -pmd 1 -hdr reload_spans", `^core 1 has recorded no reload_spans\n$`, 2},
	{"pmdperf/percentiles reload_spans", `\nnote: core 1 has recorded no reload_spans \(level detailed\)\n`, 0},
	{"pmdperf/percentiles nonsense", `^there is no histogram "nonsense"; there are cycles_per_iteration, .*, reload_spans\nUsage: `, 2},
	{"pmdperf/reloads", `^core  reloads .*\n +1 +0 .*\n +3 +0 .*\n$`, 0},
	{"pmdperf/packet-sizes -pmd 3", `^ *core +port +queue +packets +undersize .*\n +3 +p0 +rx 3 .*\n +3 +vhu-a +rx 0 .*\n +3 +p0 +tx 3 .*\n$`, 0},
	{"pmdperf/level", `^ *core +level +loop\n +1  detailed  running\n +3  detailed  running\n$`, 0},
	{"pmdperf/level loud", `^unknown level "loud": use off, basic or detailed\nUsage: `, 2},
	{"pmdperf/overhead", `(?s)^core +gap .* 1 +accounting .* 1 +own .* 3 +answering `, 0},
	{"pmdperf/events", `^no events\n$`, 0},
	{"pmdperf/events -n 0", `^-n "0" is not a number from 1 to 4294967295\nUsage: `, 2},
	{"pmdperf/events nonsense", `^there is no event "nonsense" among the last 0: `, 2},
	{"pmdperf/clock", `^source: (tsc|cntvct|monotonic)\nfrequency: \d+ Hz, (stated|measured) .*\nmeasured since start: \d+ Hz \(.* ppm\)\nprobes: none\n$`, 0},
	{"pmdperf/clock x", `^unexpected argument "x"\nUsage: ovs-appctl pmdperf/clock\n$`, 2},
}

// TestCalls runs them by our own client, in both forms, and by Open vSwitch's.
func TestCalls(t *testing.T) {
	t.Parallel()
	l := start(t, Options{MaxSleep: 50e3, Events: suspicious.NewReports(1)}, perf.Detailed)
	l.registry.Shared().Batch(7)
	for _, r := range l.loops { // so that there is something to show
		await(t, "the loop has run", func() bool {
			var s perf.Snapshot
			return r.Snapshot(soon(t), perf.Want{Millis: 5}, &s) == nil && s.Totals.Iterations > 20 && len(s.Millis) > 4
		})
	}
	texts, data := l.dial(t, false), l.dial(t, true)
	for _, c := range calls {
		words := strings.Fields(c.command)
		check := func(client, got string, status int) {
			t.Helper()
			if status != c.status || !regexp.MustCompile(c.pattern).MatchString(got) {
				t.Errorf("%s %q: status %d, want %d; got\n%.3000s\nwant /%s/", client, c.command, status, c.status, got, c.pattern)
			}
		}
		got, err := texts.Call(soon(t), words[0], words[1:]...)
		if e, ok := errors.AsType[*appctl.ServerError](err); ok {
			got = e.Text
		}
		check("text", got, appctl.ExitCode(err))

		got, err = data.Call(soon(t), words[0], words[1:]...)
		if e, ok := errors.AsType[*appctl.ServerError](err); ok {
			check("JSON", e.Text, 2)
			continue
		}
		var v map[string]any
		if err != nil || json.Unmarshal([]byte(got), &v) != nil || len(v) == 0 || v["reply-format"] != nil || c.status != 0 {
			t.Errorf("JSON %q: %v, %.300s", c.command, err, got)
		}
	}

	t.Run("ovs-appctl", func(t *testing.T) {
		need.Tool(t, "ovs-appctl")
		for _, c := range calls {
			stdout, stderr, status := ovsAppctl(t, append([]string{"-t", l.target}, strings.Fields(c.command)...)...)
			if c.status == 2 {
				// Then it adds a line of its own.
				stdout, _, _ = strings.Cut(stderr, "ovs-appctl: "+l.target)
			}
			if status != c.status || !regexp.MustCompile(c.pattern).MatchString(stdout) {
				t.Errorf("%q: status %d, want %d; got\n%.3000s\nwant /%s/", c.command, status, c.status, stdout, c.pattern)
			}
		}
	})
}

// Every command that is there is among the calls and in the documentation.
func TestAllCalled(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Commands(new(perf.Registry), Options{}) {
		found := false
		for _, call := range calls {
			name, _, _ := strings.Cut(call.command, " ")
			found = found || name == c.Name
		}
		if !found {
			t.Errorf("%s is never called", c.Name)
		}
		if !strings.Contains(string(doc), "\n//\t"+c.Name+" ") {
			t.Errorf("%s is not in the package's documentation", c.Name)
		}
		if c.JSON == nil {
			t.Errorf("%s has no JSON form", c.Name)
		}
	}
}

// A program without PMDs is no reason to fail.
func TestEmpty(t *testing.T) {
	t.Parallel()
	for _, c := range Commands(new(perf.Registry), Options{}) {
		if err := c.Text(t.Context(), io.Discard, nil); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if v, err := c.JSON(t.Context(), nil); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		} else if _, err := json.Marshal(v); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if strings.Contains(c.Usage, "-pmd") {
			if err := c.Text(t.Context(), io.Discard, []string{"-pmd", "1"}); err == nil || !strings.Contains(err.Error(), "there are no PMDs") {
				t.Errorf("%s -pmd 1: %v", c.Name, err)
			}
		}
	}
}

// pmd-perf-show is read back whole; what is a remark is the one thing that isn't.
func TestParsePerf(t *testing.T) {
	t.Parallel()
	l := start(t, Options{MainThread: true}, perf.Detailed)
	l.registry.Shared().Batch(7)
	await(t, "there are some milliseconds", func() bool {
		var s perf.Snapshot
		return l.loops[0].Snapshot(soon(t), perf.Want{Millis: 5}, &s) == nil && len(s.Millis) > 4
	})
	for _, args := range [][]string{{}, {"-nh"}, {"-it", "1000", "-ms", "1000"}, {"-it", "5000", "-ms", "4"}, {"-pmd", "3"}} {
		r, err := ovs.ParsePerf(l.call(t, "dpif-netdev/pmd-perf-show", args...))
		if err != nil {
			t.Fatal(err)
		}
		threads, notes := 3, 0
		if args != nil && strings.Contains(strings.Join(args, " "), "-pmd") {
			threads = 1
		}
		if strings.Contains(strings.Join(args, " "), "5000") {
			notes = 1
		}
		if len(r.Blocks) != threads || len(r.Unread) != notes || threads == 3 && !r.Blocks[2].Thread.Main {
			t.Errorf("%q: %d blocks, unread %v", args, len(r.Blocks), r.Unread)
		}
		if v, ok := r.Blocks[0].Value("Rx packets"); !ok || v == 0 {
			t.Errorf("%q: %d packets, %v", args, v, ok)
		}
	}
	// By default the main thread is left out, as exporters would book it wrongly.
	l = start(t, Options{}, perf.Detailed)
	l.registry.Shared().Batch(7)
	if text := l.call(t, "dpif-netdev/pmd-perf-show"); strings.Contains(text, "main thread") {
		t.Error(text)
	}
	var d ovs.Document
	if l.data(t, &d, "dpif-netdev/pmd-perf-show"); len(d.Threads) != 2 {
		t.Errorf("%d threads", len(d.Threads))
	}
}

// The JSON of Open vSwitch's commands has what was asked for.
func TestData(t *testing.T) {
	t.Parallel()
	l := start(t, Options{MaxSleep: 70 * time.Microsecond}, perf.Detailed)
	await(t, "there are some iterations", func() bool {
		var s perf.Snapshot
		return l.loops[0].Snapshot(soon(t), perf.Want{Iterations: 2}, &s) == nil && len(s.Iterations) == 2
	})
	var d document
	l.data(t, &d, "dpif-netdev/pmd-perf-show", "-nh", "-it", "2", "-pmd", "3")
	if len(d.Threads) != 1 || *d.Threads[0].Core != 3 || d.Threads[0].Histograms != nil || len(d.Threads[0].IterationHistory) != 2 || d.Notes != nil {
		t.Errorf("pmd-perf-show: %+v", d)
	}
	d = document{}
	l.data(t, &d, "dpif-netdev/pmd-perf-show", "-it", "5000")
	if len(d.Threads) != 2 || len(d.Threads[1].Histograms) != 7 || len(d.Threads[0].IterationHistory) > 1000 || len(d.Notes) != 1 {
		t.Errorf("pmd-perf-show: %d threads, notes %q", len(d.Threads), d.Notes)
	}
	d = document{}
	l.data(t, &d, "dpif-netdev/pmd-stats-show")
	if len(d.Threads) != 2 || d.Threads[0].Histograms != nil || d.Threads[0].Iterations.Total == 0 {
		t.Errorf("pmd-stats-show: %+v", d)
	}
	var rxq rxqData
	l.data(t, &rxq, "dpif-netdev/pmd-rxq-show", "-secs", "6")
	want := rxqData{Seconds: 10, Threads: []rxqThread{
		{Core: 1, NUMA: 1, Queues: []rxqQueue{{"p0", 1, true, nil}, {"vhu-a", 0, true, nil}}},
		{Core: 3, Isolated: true, Queues: []rxqQueue{{"p0", 3, true, nil}, {"vhu-a", 0, true, nil}}},
	}}
	for i := range rxq.Threads { // there may be usage on a slow machine
		rxq.Threads[i].Overhead = nil
		for j := range rxq.Threads[i].Queues {
			rxq.Threads[i].Queues[j].Percent = nil
		}
	}
	if diff := cmp.Diff(want, rxq, cmp.AllowUnexported(rxqData{})); diff != "" {
		t.Errorf("pmd-rxq-show (-want +got):\n%s", diff)
	}
	var sleep sleepData
	l.data(t, &sleep, "dpif-netdev/pmd-sleep-show")
	if diff := cmp.Diff(sleepData{70, []sleepThread{{1, 1, 10}, {3, 0, 30}}, remarks{}}, sleep, cmp.AllowUnexported(sleepData{})); diff != "" {
		t.Errorf("pmd-sleep-show (-want +got):\n%s", diff)
	}
	var p distributionAnswer
	l.data(t, &p, "pmdperf/percentiles", "-hdr", "-pmd", "3", "packets_per_batch")
	if p.Core != 3 || p.Histogram != "packets_per_batch" || p.Unit != "packets" || !strings.HasPrefix(p.Text, " Value\tPercentile") {
		t.Errorf("pmdperf/percentiles: %+v", p)
	}
}

// TestScraped reads the texts as openstack-network-exporter does, with its
// expressions.
func TestScraped(t *testing.T) {
	t.Parallel()
	var (
		header   = regexp.MustCompile(`^pmd thread numa_id (\d+) core_id (\d+):$`)
		line     = regexp.MustCompile(`^\s*([^:]+):\s+(\d+)\s*(.*)$`)
		isolated = regexp.MustCompile(`^\s*isolated\s*:\s*(true|false)$`)
		queue    = regexp.MustCompile(`^\s*port:\s*(\S+)\s+queue-id:\s*(\d+)\s+\((enabled|disabled)\)\s+pmd usage:\s*([\d\.]+)\s*%$`)
		overhead = regexp.MustCompile(`^\s*overhead\s*:\s*([\d\.]+)\s*%$`)
	)
	l := start(t, Options{}, perf.Detailed)
	var rxq string
	await(t, "the usage of 5 s is there", func() bool {
		rxq = l.call(t, "dpif-netdev/pmd-rxq-show")
		return !strings.Contains(rxq, "NOT AVAIL")
	})
	var got []string
	for s := range strings.Lines(rxq) {
		s = strings.TrimSuffix(s, "\n")
		switch {
		case header.MatchString(s):
			got = append(got, strings.Join(header.FindStringSubmatch(s)[1:], "/"))
		case isolated.MatchString(s):
			got = append(got, isolated.FindStringSubmatch(s)[1])
		case queue.MatchString(s):
			got = append(got, strings.Join(queue.FindStringSubmatch(s)[1:4], "/"))
		case overhead.MatchString(s):
			got = append(got, "overhead")
		default:
			got = append(got, s)
		}
	}
	want := "Displaying last 60 seconds pmd usage % | 1/1 | false | p0/1/enabled | vhu-a/0/enabled | overhead | " +
		"0/3 | true | p0/3/enabled | vhu-a/0/enabled | overhead"
	if s := strings.Join(got, " | "); s != want {
		t.Errorf("pmd-rxq-show:\n got %s\nwant %s", s, want)
	}

	values := make(map[string]map[string]string)
	thread := ""
	for s := range strings.Lines(l.call(t, "dpif-netdev/pmd-perf-show", "-it", "5000")) {
		s = strings.TrimSuffix(s, "\n")
		if m := header.FindStringSubmatch(s); m != nil {
			thread = m[1] + "/" + m[2]
			values[thread] = make(map[string]string)
		} else if m := line.FindStringSubmatch(s); m != nil && thread != "" {
			values[thread][m[1]] = m[2]
		}
	}
	names := []string{"Iterations", "- idle iterations", "- busy iterations", "- sleep iterations", "Sleep time (us)",
		"Rx packets", "Tx packets", "Tx batches", "- Upcalls", "- Lost upcalls", "Datapath passes", "- PHWOL hits",
		"- MFEX Opt hits", "- Simple Match hits", "- EMC hits", "- SMC hits", "- Megaflow hits"}
	for _, thread := range []string{"1/1", "0/3"} {
		for _, name := range names {
			if values[thread][name] == "" {
				t.Errorf("%s lacks %q; it has %v", thread, name, values[thread])
			}
		}
	}
	if len(values) != 2 {
		t.Errorf("threads %v", values)
	}
}

// What a clear has answered for, no show sees any more.
func TestClearThenShow(t *testing.T) {
	t.Parallel()
	l := start(t, Options{}, perf.Detailed)
	show := func() (packets map[string]uint64, since time.Time) {
		var d ovs.Document
		l.data(t, &d, "dpif-netdev/pmd-stats-show")
		packets = make(map[string]uint64)
		for _, r := range d.Threads {
			packets[r.Name] = r.Packets.Rx
			if since.IsZero() || r.Since.Before(since) {
				since = r.Since
			}
		}
		return packets, since
	}
	const one, three = "pmd-c01/id:9", "pmd-c03/id:11"
	for range 20 {
		// Ticks are tied to the wall clock within microseconds.
		before := time.Now().Add(-time.Millisecond)
		if got := l.call(t, "dpif-netdev/pmd-stats-clear"); got != "" {
			t.Errorf("it says %q", got)
		}
		if _, since := show(); since.Before(before) {
			t.Fatalf("cleared at %v, but shown since %v", before, since)
		}
	}

	// When the loops have ended nothing is added any more.
	await(t, "packets came", func() bool { p, _ := show(); return p[one] > 0 && p[three] > 0 })
	for _, p := range l.loops {
		p.stop.Store(true)
		await(t, "the loop has ended", func() bool { return p.State() == perf.Closed })
	}
	l.registry.Shared().Batch(7)
	l.call(t, "dpif-netdev/pmd-stats-clear", "-pmd", "1")
	if p, _ := show(); p[one] != 0 || p[three] == 0 || p["main"] != 7 {
		t.Errorf("packets after a clear of the first: %v", p)
	}
	var v cleared
	l.data(t, &v, "dpif-netdev/pmd-stats-clear")
	if p, _ := show(); p[one] != 0 || p[three] != 0 || p["main"] != 0 || len(v.Cores) != 2 || !v.MainThread {
		t.Errorf("packets %v after %+v", p, v)
	}
}

// A loop that is stuck hides nothing of the others, and is not hidden itself.
func TestStalled(t *testing.T) {
	t.Parallel()
	l := start(t, Options{Timeout: 2 * time.Second}, perf.Detailed)
	l.call(t, "dpif-netdev/pmd-stats-show")
	l.loops[0].stall.Store(true) // core 3
	defer l.loops[0].stall.Store(false)
	note := regexp.MustCompile(`(?m)^note: PMD on core 3 is not shown: pmd-c03/id:11: no iteration completed for [\dhms.]+$`)
	await(t, "the loop stands still", func() bool { return note.MatchString(l.call(t, "dpif-netdev/pmd-stats-show")) })
	for _, c := range Commands(l.registry, Options{}) {
		if strings.HasSuffix(c.Name, "-clear") || strings.HasSuffix(c.Name, "-set") || c.Name == "pmdperf/clock" || c.Name == "pmdperf/events" {
			continue
		}
		text := l.call(t, c.Name)
		if !note.MatchString(text) {
			t.Errorf("%s doesn't say which is stuck:\n%s", c.Name, text)
		}
		if strings.Contains(text, "core_id 3") || !strings.Contains(text, "1") {
			t.Errorf("%s shows\n%s", c.Name, text)
		}
		var v struct {
			Threads []struct {
				Core int
			}
			Missing []missing
		}
		l.data(t, &v, c.Name)
		if len(v.Threads) != 1 || v.Threads[0].Core != 1 || len(v.Missing) != 1 || v.Missing[0].Core != 3 || *v.Missing[0].Seconds <= 0 {
			t.Errorf("%s: %+v", c.Name, v)
		}
	}
	for _, args := range [][]string{
		{"dpif-netdev/pmd-perf-show", "-pmd", "3"},
		{"dpif-netdev/pmd-stats-clear"},
		{"dpif-netdev/pmd-stats-clear", "-pmd", "3"},
		{"dpif-netdev/pmd-perf-log-set", "on"},
		{"pmdperf/level", "basic"},
		{"pmdperf/percentiles", "-hdr", "-pmd", "3", "cycles_per_iteration"},
	} {
		_, err := l.dial(t, false).Call(soon(t), args[0], args[1:]...)
		if appctl.ExitCode(err) != 2 || !strings.Contains(err.Error(), "pmd-c03/id:11: no iteration completed for ") || strings.Contains(err.Error(), "core 1") {
			t.Errorf("%q: %v", args, err)
		}
	}
	// What the errors didn't name was changed.
	if got := l.call(t, "pmdperf/level"); !strings.Contains(got, "1  basic  running\n") {
		t.Error(got)
	}
	const logSet = "dpif-netdev/pmd-perf-log-set"
	if got := l.call(t, logSet); !strings.Contains(got, "core 1: on,") || !note.MatchString(got) {
		t.Error(got)
	}
	l.loops[0].stall.Store(false)
	await(t, "the loop goes on", func() bool { return !note.MatchString(l.call(t, "dpif-netdev/pmd-stats-show")) })
	if got := l.call(t, logSet); !strings.Contains(got, "core 1: on,") || !strings.Contains(got, "core 3: off,") {
		t.Error(got)
	}
}

func TestLevel(t *testing.T) {
	t.Parallel()
	l := start(t, Options{}, perf.Basic)
	if got := l.call(t, "pmdperf/level", "off", "-pmd", "3"); !strings.HasSuffix(got, "\n   3  off    running\n") {
		t.Errorf("%q", got)
	}
	if got := l.call(t, "pmdperf/level"); !strings.Contains(got, " 1  basic ") || !strings.Contains(got, " 3  off ") {
		t.Errorf("%q", got)
	}
	if got := l.call(t, "pmdperf/percentiles", "cycles_per_packet", "-pmd", "1"); !strings.Contains(got, "note: core 1 has recorded no cycles_per_packet (level basic)\n") {
		t.Errorf("%q", got)
	}
	var v levelAnswer
	l.data(t, &v, "pmdperf/level", "detailed")
	if len(v.Threads) != 2 || v.Threads[0].Level != "detailed" || v.Threads[1].Level != "detailed" || v.Threads[1].Name != "pmd-c03/id:11" {
		t.Errorf("%+v", v)
	}
}

func TestReloads(t *testing.T) {
	t.Parallel()
	l := start(t, Options{}, perf.Detailed)
	var v reloadsAnswer
	l.loops[1].reload.Store(true)
	await(t, "there was a reload", func() bool {
		v = reloadsAnswer{}
		l.data(t, &v, "pmdperf/reloads")
		return v.Threads[0].Count == 1
	})
	r := v.Threads[0]
	if us := float64(*r.Max) / r.Hz * 1e6; us < 1000 || us > 60e6 || *r.Min != *r.Max || r.Ticks != *r.Max || r.MaxAt.IsZero() || v.Threads[1].Count != 0 {
		t.Errorf("%.0f us: %+v", us, r)
	}
	if got := l.call(t, "pmdperf/percentiles", "-hdr", "-pmd", "1", reloadSpans); !strings.Contains(got, "Total count    =            1]") {
		t.Error(got)
	}
}

// Readers of all kinds at once, with reloads, keep their answers apart.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	l := start(t, Options{}, perf.Detailed)
	var all sync.WaitGroup
	for _, command := range []string{"dpif-netdev/pmd-perf-show", "dpif-netdev/pmd-perf-show -it 100 -ms 100", "pmdperf/percentiles",
		"dpif-netdev/pmd-perf-log-set on", "pmdperf/level detailed", "dpif-netdev/pmd-rxq-show", "dpif-netdev/pmd-stats-clear"} {
		for _, core := range []string{"1", "3"} {
			words := append(strings.Fields(command), "-pmd", core)
			texts, data := l.dial(t, false), l.dial(t, true)
			all.Go(func() {
				for range 10 {
					l.loops[0].reload.Store(true)
					text, err := texts.Call(soon(t), words[0], words[1:]...)
					if err != nil || strings.Contains(text, map[string]string{"1": "core_id 3:", "3": "core_id 1:"}[core]) {
						t.Errorf("%q: %v, %s", words, err, text)
					}
					var v struct{ Threads []struct{ Core int } }
					text, err = data.Call(soon(t), words[0], words[1:]...)
					if err == nil {
						err = json.Unmarshal([]byte(text), &v)
					}
					if err != nil || strings.Contains(text, "threads") && len(v.Threads) != 1 {
						t.Errorf("%q: %v, %s", words, err, text)
					}
				}
			})
		}
	}
	all.Wait()
}
