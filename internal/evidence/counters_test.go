package evidence

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/suspicious/investigate"
)

// counted returns the result for a log and a file of counters beside it.
func counted(t testing.TB, log, counters string) *investigate.Result {
	t.Helper()
	c := &Collector{Case: investigate.NewCase(), Stdin: strings.NewReader(log)}
	if err := c.Add(t.Context(), "-"); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "counters")
	if err := os.WriteFile(name, []byte(counters), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := c.AddCounters(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if len(c.Failed) > 0 {
		t.Fatal(c.Failed)
	}
	return c.Case.Result()
}

// TestCounters has the same counter in every form: it rises by 4,211 in the 2 s around
// the stall at 14:56:13.301, and before, where there is none, by 7.
func TestCounters(t *testing.T) {
	at := time.Date(2026, 11, 30, 14, 56, 0, 500_000_000, time.UTC)
	values := []int{100, 107, 107, 107, 107, 107, 107, 4318, 4318, 4318} // every 2 s
	var csv, prom, ethtool, vsctl, date strings.Builder
	csv.WriteString("time,rx_missed_errors,rx_packets\n")
	for i, v := range values {
		now := at.Add(time.Duration(i) * 2 * time.Second)
		fmt.Fprintf(&csv, "%s,%d,%d\n", now.Format(time.RFC3339Nano), v, 1000*i)
		if i > 0 {
			prom.WriteString(",")
		}
		fmt.Fprintf(&prom, `[%d.5,"%d"]`, now.Unix(), v)
		fmt.Fprintf(&ethtool, "%s\nNIC statistics:\n     rx_packets: %d\n     rx_missed_errors: %d\n", now.Format("2006-01-02 15:04:05.000"), 1000*i, v)
		fmt.Fprintf(&vsctl, "%s {rx_missed_errors=%d, rx_packets=%d}\n", now.Format(time.RFC3339Nano), v, 1000*i)
		fmt.Fprintf(&date, "%s\ndpdk0:\n{rx_missed_errors=%d, rx_packets=%d}\n", now.Format(time.UnixDate), v, 1000*i)
	}
	whole := `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"rx_missed_errors","job":"x"},"values":[` + prom.String() + `]}]}}`
	for name, test := range map[string]struct{ text, counter string }{
		"CSV":        {csv.String(), "rx_missed_errors"},
		"CRLF":       {strings.ReplaceAll(csv.String(), "\n", "\r\n"), "rx_missed_errors"},
		"Prometheus": {whole, "rx_missed_errors"},
		"ethtool":    {ethtool.String(), "rx_missed_errors"},
		"ovs-vsctl":  {vsctl.String(), "rx_missed_errors"},
		"date":       {date.String(), "rx_missed_errors of dpdk0"},
	} {
		r := counted(t, log(t, "g04"), test.text)
		if len(r.Rises) != 2 {
			t.Errorf("%s: %d rises: %+v", name, len(r.Rises), r.Rises)
			continue
		}
		if got, want := r.Rises[0].Text, test.counter+" rose by 4,211 in the 2 s around the 303 ms stall on core 0"; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if got, want := r.Rises[1].Text, test.counter+" rose by 7 in 2 s without any stall"; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		f := r.Findings[1]
		if want := "drop counters rose by 4,218, 100 % of it next to stalls"; f.Kind != investigate.Drops || f.Title != want {
			t.Errorf("%s: %s %q, want %q", name, f.Kind, f.Title, want)
		}
	}
	r := counted(t, log(t, "idle-sigstop"), "time,rx_dropped\n2026-11-30T14:46:40Z,5\n2026-11-30T14:46:50Z,5\nnonsense,1\n")
	if f := r.Findings[1]; f.Title != "no drop counter rose" {
		t.Errorf("%q", f.Title)
	}
	if s := r.Sources[1]; s.Unread != 1 || s.Lost[0].Line != 4 {
		t.Errorf("%+v", s)
	}
}

func TestParseTime(t *testing.T) {
	want := time.Date(2026, 11, 30, 14, 46, 46, 0, time.UTC)
	for _, s := range []string{
		"2026-11-30T14:46:46Z", "2026-11-30 14:46:46", "2026-11-30T15:46:46+01:00", "1796050006", "1796050006000", "1796050006000000", "Mon Nov 30 14:46:46 UTC 2026",
		"2026/11/30 14:46:46", "Mon Nov 30 02:46:46 PM UTC 2026",
	} {
		if got, ok := parseTime(s); !ok || !got.Equal(want) {
			t.Errorf("%q is %v, %v, want %v", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "12", "rx_packets", "1234567", "2026-13-30T14:46:46Z", "-1796050006"} {
		if got, ok := parseTime(s); ok {
			t.Errorf("%q is %v", s, got)
		}
	}
}

func TestCountersFail(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "it is empty",
		"hello\nworld\n":         "no counter with a time",
		"rx_missed: 3\n":         "no counter with a time",
		"{\"values\":[\n":        "not the answer to a range query",
		string(make([]byte, 99)): "it is binary",
	} {
		c := &Collector{Case: investigate.NewCase(), Stdin: strings.NewReader(text)}
		if err := c.AddCounters(t.Context(), "-"); err != nil {
			t.Fatal(err)
		}
		if len(c.Failed) != 1 || !strings.Contains(c.Failed[0].Error(), want) {
			t.Errorf("%q: %v, want %q", text, c.Failed, want)
		}
	}
}
