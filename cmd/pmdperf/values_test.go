package main

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestParseCores(t *testing.T) {
	for _, c := range []struct {
		text string
		want []int // nil for an error
	}{
		{"0", []int{0}},
		{"3,1", []int{3, 1}},
		{"0,2-4,1023", []int{0, 2, 3, 4, 1023}},
		{"7-7", []int{7}},
		{"", nil},
		{",", nil},
		{"1,", nil},
		{"-1", nil},
		{"1-", nil},
		{"3-1", nil},
		{"1024", nil},
		{"0-99999999999999999999", nil},
		{"1,1", nil},
		{"0-3,2", nil},
		{" 1", nil},
		{"+1", nil},
		{"0x1", nil},
	} {
		got, err := parseCores(c.text)
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("parseCores(%q) = %v, %v; want %v", c.text, got, err, c.want)
		}
	}
}

func FuzzParseCores(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		cores, err := parseCores(s)
		if (err == nil) != (len(cores) > 0) {
			t.Fatalf("parseCores(%q) = %v, %v: want cores or an error", s, cores, err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("error has several lines: %v", err)
		}
		sorted := slices.Sorted(slices.Values(cores))
		if len(slices.Compact(sorted)) != len(cores) {
			t.Fatalf("parseCores(%q) = %v: a core is there twice", s, cores)
		}
		for _, c := range cores {
			if c < 0 || c > maxCore {
				t.Fatalf("parseCores(%q) = %v: want 0 to %d", s, cores, maxCore)
			}
		}
	})
}

func TestParseRate(t *testing.T) {
	for _, c := range []struct {
		text string
		want float64 // negative for an error
	}{
		{"0", 0},
		{"1000", 1000},
		{"1.5M", 1.5e6},
		{"500k", 5e5},
		{"1e6", 1e6},
		{"", -1},
		{"k", -1},
		{"-1", -1},
		{"nan", -1},
		{"inf", -1},
		{"1e308M", -1},
		{"1Mk", -1},
		{"1G", -1},
	} {
		got, err := parseRate(c.text)
		if c.want < 0 && err == nil || c.want >= 0 && (err != nil || got != c.want) {
			t.Errorf("parseRate(%q) = %v, %v; want %v", c.text, got, err, c.want)
		}
	}
}

func FuzzParseRate(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		rate, err := parseRate(s)
		if !(rate >= 0) || math.IsInf(rate, 0) {
			t.Fatalf("parseRate(%q) = %v, %v: want a finite number from 0 up", s, rate, err)
		}
		if err != nil && (rate != 0 || strings.Contains(err.Error(), "\n")) {
			t.Fatalf("parseRate(%q) = %v, %v: want 0 and one line", s, rate, err)
		}
	})
}

// TestList: the first time a flag is given replaces the default, the next ones add.
func TestList(t *testing.T) {
	var to []string
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	addList(flags, &to, "port", "port", "mem", "", anyText)
	if want := []string{"mem"}; !slices.Equal(to, want) {
		t.Errorf("the default is %q, want %q", to, want)
	}
	if err := flags.Parse([]string{"--port", "a", "--port=b"}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b"}; !slices.Equal(to, want) {
		t.Errorf("after two flags it is %q, want %q", to, want)
	}
}

func TestOrList(t *testing.T) {
	for want, list := range map[string][]string{"": nil, "a": {"a"}, "a or b": {"a", "b"}, "a, b or c": {"a", "b", "c"}} {
		if got := orList(list); got != want {
			t.Errorf("orList(%q) = %q, want %q", list, got, want)
		}
	}
}
