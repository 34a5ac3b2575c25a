package observe

import "testing"

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"pmd-c*", "pmd-c01/id:8", true},
		{"pmd-c*", "pmd", false},
		{"pmd-c0?/id:*", "pmd-c01/id:8", true},
		{"pmd-c0?/id:*", "pmd-c011/id:8", false},
		{"*", "", true},
		{"?", "", false},
		{"*b*b", "abab", true},
		{"*b*b", "aba", false},
		{"a*", "ba", false},
		{"lcore-worker-3", "lcore-worker-3", true},
		{"[a]", "a", false},
		{"", "", true},
	} {
		if got := Match(tt.pattern, tt.name); got != tt.want {
			t.Errorf("Match(%q, %q) = %v", tt.pattern, tt.name, got)
		}
	}
}
