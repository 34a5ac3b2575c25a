package appctl

import (
	"slices"
	"testing"
)

func TestParseFormat(t *testing.T) {
	for _, test := range []struct {
		args     []string
		json, ok bool
	}{
		{[]string{"--format", "json"}, true, true},
		{[]string{"--format", "text"}, false, true},
		{[]string{"--format=json"}, true, true},
		{[]string{"--format=text"}, false, true},
		{[]string{"--format"}, false, false},
		{[]string{"--format="}, false, false},
		{[]string{"--format", "JSON"}, false, false},
		{[]string{"--format=json", "json"}, false, false},
		{[]string{"--format=--format", "json"}, false, false},
		{[]string{"json"}, false, false},
		{[]string{"json", "--format"}, false, false},
	} {
		got, err := parseFormat(test.args)
		if got != test.json || (err == nil) != test.ok {
			t.Errorf("%q: got %v, %v", test.args, got, err)
		}
	}
}

func FuzzFormat(f *testing.F) {
	f.Add("--format", "json", true)
	f.Add("--format=text", "", false)
	f.Add("--format=", "text", true)
	f.Fuzz(func(t *testing.T, first, second string, two bool) {
		args := []string{first}
		if two {
			args = append(args, second)
		}
		json, err := parseFormat(args)
		if json && err != nil {
			t.Fatalf("%q: JSON and %v", args, err)
		}
		last := args[len(args)-1]
		if valid := slices.Contains([]string{"json", "text", "--format=json", "--format=text"}, last); err == nil && !valid {
			t.Fatalf("%q is taken for a format", args)
		}
	})
}
