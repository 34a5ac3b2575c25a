package confusion

import "testing"

func TestField(t *testing.T) {
	for _, tt := range []struct {
		text string
		i    int
		want int64
	}{
		{"12 345 6\n", 0, 12}, {"12 345 6\n", 1, 345}, {"12 345 6", 2, -1}, {"", 0, -1}, {"x 1 2\n", 1, -1}, {"1  2\n", 1, -1},
		{"9999999999999999999 1 2\n", 0, -1},
	} {
		if got := field([]byte(tt.text), tt.i); got != tt.want {
			t.Errorf("%q, %d: got %d", tt.text, tt.i, got)
		}
	}
}

func FuzzField(f *testing.F) {
	f.Add([]byte("12 345 6\n"), 1)
	f.Fuzz(func(t *testing.T, text []byte, i int) {
		if n := field(text, i); n < -1 {
			t.Errorf("%d", n)
		}
	})
}
