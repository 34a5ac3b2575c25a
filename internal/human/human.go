// Package human writes numbers for people who look at a screen: three digits that
// matter, a unit, and a width that can be relied on. A number that has no meaning is
// NaN and is written as a dash. All its functions are pure.
package human

import (
	"math"
	"strconv"
	"strings"
)

// Absent is what stands for a number that is not known or has no meaning.
const Absent = "-"

// Count returns a whole number in full, with its digits in groups: "24,899,863".
func Count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	var b strings.Builder
	for i := range len(s) {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Short returns a number of at most five characters if it is from 0 to 999 T: "0", "3.14",
// "12.5k", "999M".
func Short(v float64) string {
	if v < 999.5 && v == math.Trunc(v) {
		return scaled(v, 0, "", "")
	}
	return scaled(v, 3, "", "k", "M", "G", "T")
}

// Duration returns a time given in seconds in at most six characters if it is from 0 to
// 999 s: "812ns", "1.23us", "45.6ms", "120s".
func Duration(seconds float64) string {
	if seconds == 0 {
		return "0ns"
	}
	if ns := seconds * 1e9; ns < 999.5 {
		return scaled(ns, 0, "ns")
	}
	return scaled(seconds*1e6, 3, "us", "ms", "s")
}

// Percent returns a share, given in percent, with one decimal: "33.2".
func Percent(v float64) string { return Decimals(v, 1) }

// Decimals returns a number with so many decimals.
func Decimals(v float64, n int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Absent
	}
	return strconv.FormatFloat(v, 'f', n, 64)
}

// scaled returns v with the first of the units, each a thousand of the one before, in
// which it is below 1000; digits is how many are to be shown, 0 for all before the point.
func scaled(v float64, digits int, units ...string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return Absent
	}
	i := 0
	for ; v >= 999.5 && i < len(units)-1; i++ {
		v /= 1000
	}
	decimals := 0
	switch {
	case digits == 0 || v >= 99.95:
	case v >= 9.995:
		decimals = 1
	default:
		decimals = 2
	}
	return strconv.FormatFloat(v, 'f', decimals, 64) + units[i]
}
