package report

import (
	"strings"
	"time"
	"unicode"

	"github.com/pmdperf/pmdperf/internal/human"
)

// clean returns a text that shows what is in it: bytes that are no UTF-8, controls and
// signs that turn the direction of writing become the replacement character. Tabs
// and line ends become blanks, so that a command is one line wherever it is pasted.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

func cleanAll(list []string) []string {
	cleaned := make([]string, len(list))
	for i, s := range list {
		cleaned[i] = clean(s)
	}
	return cleaned
}

// duration writes a length given in microseconds, as "45.6 ms".
func duration(micros float64) string {
	text := human.Duration(known(micros) / 1e6)
	number := strings.TrimRight(text, "nmus")
	return number + "\u00a0" + strings.Replace(text[len(number):], "us", "µs", 1)
}

// moment writes a time. Logs of some kinds don't tell the year, which is 0 then.
func moment(t time.Time) string {
	switch t = t.UTC(); {
	case t.IsZero():
		return "unknown"
	case t.Year() <= 0:
		return t.Format("01-02 15:04:05.000000")
	}
	return t.Format("2006-01-02 15:04:05.000000")
}
