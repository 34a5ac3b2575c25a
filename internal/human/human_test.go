package human

import (
	"math"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestNumbers(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{Count(0), "0"}, {Count(999), "999"}, {Count(1000), "1,000"}, {Count(24899863), "24,899,863"},
		{Count(math.MaxUint64), "18,446,744,073,709,551,615"},
		{Short(0), "0"}, {Short(7), "7"}, {Short(0.5), "0.50"}, {Short(9.996), "10.0"}, {Short(999.4), "999"},
		{Short(999.6), "1.00k"}, {Short(12345), "12.3k"}, {Short(14.88e6), "14.9M"}, {Short(math.NaN()), "-"},
		{Short(math.Inf(1)), "-"},
		{Duration(0), "0ns"}, {Duration(217e-9), "217ns"}, {Duration(999.6e-9), "1.00us"}, {Duration(45.61e-6), "45.6us"},
		{Duration(0.002), "2.00ms"}, {Duration(1), "1.00s"}, {Duration(120), "120s"}, {Duration(math.NaN()), "-"},
		{Percent(33.25), "33.2"}, {Percent(math.NaN()), "-"}, {Decimals(1.005, 0), "1"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

// TestWidth: a table's columns rely on it.
func TestWidth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(0, 999e12).Draw(t, "v")
		if s := Short(v); utf8.RuneCountInString(s) > 5 {
			t.Errorf("Short(%v) = %q", v, s)
		}
		if v > 999 {
			v = math.Mod(v, 999)
		}
		if s := Duration(v); utf8.RuneCountInString(s) > 6 {
			t.Errorf("Duration(%v) = %q", v, s)
		}
	})
}
