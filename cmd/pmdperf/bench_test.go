package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestBenchTooManyCores: how many cores there are is up to the machine, but that there
// are not so many is a mistake in the command line all the same.
func TestBenchTooManyCores(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"overhead", "--cores", "1000"}, `^pmdperf: core 1000 is not there for this process: choose among [0-9,-]+\n$`},
		{[]string{"reload", "--pmds", "1000"}, `^pmdperf: 1000 PMDs need a core each and there are \d+: choose fewer\n$`},
	} {
		var out, errs bytes.Buffer
		status := run(append([]string{"bench"}, tt.args...), nil, &out, &errs)
		if status != statusUsage || out.Len() > 0 || !regexp.MustCompile(tt.want).MatchString(errs.String()) {
			t.Errorf("%v: status %d, %q, want 2 and %q", tt.args, status, errs.String(), tt.want)
		}
	}
}

func TestStatusLine(t *testing.T) {
	at := time.Unix(1000, 0)
	var out bytes.Buffer
	l := &statusLine{w: &out, now: func() time.Time { return at }}
	for range 60 {
		l.show("something")
		at = at.Add(100 * time.Millisecond)
	}
	l.end()
	if got, want := out.String(), "pmdperf: something\npmdperf: something\n"; got != want {
		t.Errorf("elsewhere: %q, want %q", got, want)
	}
	out.Reset()
	l = &statusLine{w: &out, inPlace: true, now: l.now}
	for _, text := range []string{"a longer line", "short", "left out"} {
		l.show(text)
		at = at.Add(150 * time.Millisecond)
	}
	l.end()
	if got, want := out.String(), "\ra longer line\rleft out     \r             \r"; got != want {
		t.Errorf("on a terminal: %q, want %q", got, want)
	}
}

func TestParseShare(t *testing.T) {
	for _, c := range []struct {
		text string
		want float64 // negative for an error
	}{{"0", 0}, {"0.005", 0.005}, {"0.5%", 0.005}, {"100%", 1}, {"1", 1}, {"1.01", -1}, {"101%", -1}, {"-1", -1}, {"", -1}, {"%", -1}, {"nan", -1}, {"5%%", -1}} {
		got, err := parseShare(c.text)
		if c.want < 0 && err == nil || c.want >= 0 && (err != nil || got != c.want) {
			t.Errorf("parseShare(%q) = %v, %v; want %v", c.text, got, err, c.want)
		}
	}
}

func FuzzParseShare(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		share, err := parseShare(s)
		if !(share >= 0 && share <= 1) || err != nil && (share != 0 || strings.Contains(err.Error(), "\n")) {
			t.Fatalf("parseShare(%q) = %v, %v: want 0 to 1, or 0 and one line", s, share, err)
		}
	})
}

func TestParseCounts(t *testing.T) {
	if got, err := parseCounts("1,20,3"); err != nil || !slices.Equal(got, []int{1, 20, 3}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, s := range []string{"", ",", "1,", "0", "1,-1", "a", "1 2"} {
		if got, err := parseCounts(s); err == nil {
			t.Errorf("parseCounts(%q) = %v", s, got)
		}
	}
}

func FuzzParseCounts(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		counts, err := parseCounts(s)
		if err == nil && (len(counts) != strings.Count(s, ",")+1 || slices.Min(counts) < 1) || err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("parseCounts(%q) = %v, %v", s, counts, err)
		}
	})
}

func FuzzParsePoints(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		points, err := parsePoints(s)
		if !(points >= 0) || err != nil && (points != 0 || strings.Contains(err.Error(), "\n")) {
			t.Fatalf("parsePoints(%q) = %v, %v", s, points, err)
		}
	})
}
