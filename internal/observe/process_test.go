package observe

import (
	"os"
	"testing"
)

func TestParseStat(t *testing.T) {
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	if name, begun, ok := parseStat(own); !ok || name == "" || begun == 0 {
		t.Errorf("own: %q, %d, %v", name, begun, ok)
	}
	name, begun, ok := parseStat([]byte("7 (a) b (c) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20\n"))
	if name != "a) b (c" || begun != 4711 || !ok {
		t.Errorf("parentheses: %q, %d, %v", name, begun, ok)
	}
	for _, wrong := range []string{"", "7", "7 (a)", "7 )a( R", "7 (a) R 1 2 3", "7 (a) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x"} {
		if _, _, ok := parseStat([]byte(wrong)); ok {
			t.Errorf("%q was read", wrong)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("7 (pmd-c01/id:8) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		name, begun, ok := parseStat(b)
		if !ok && (name != "" && begun != 0) {
			t.Errorf("%q, %d of what can't be read", name, begun)
		}
	})
}
