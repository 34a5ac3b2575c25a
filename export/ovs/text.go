package ovs

import (
	"fmt"
	"slices"
	"strings"
)

// Line is a line of a text that a parser could not read.
type Line struct {
	Number int    // from 1
	Text   string // without the blanks around it
}

// SyntaxError says that a text is not the output of the wanted command.
type SyntaxError struct {
	Line    int    // number of the first line that is not blank, from 1
	Text    string // that line
	Command string // whose output was expected, for example "pmd-perf-show"
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d: %q: no %s output in this text", e.Line, clip(e.Text), e.Command)
}

// clip shortens a text that goes into an error message.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

// blanks are what may stand between two words of a line, and the carriage return
// that a text may have before its line ends.
const blanks = " \t\r"

// reader is what the parsers have in common: they go through a text line by line and
// note what they can't read.
type reader struct {
	unread []Line
}

// scan calls f for every line of text that is not blank, with the blanks around it
// removed, and notes the lines for which f returns false.
func (r *reader) scan(text string, f func(n int, line string) bool) {
	n := 0
	for line := range strings.SplitSeq(text, "\n") {
		n++
		line = strings.Trim(line, blanks)
		if line != "" && !f(n, line) {
			r.unread = append(r.unread, Line{n, line})
		}
	}
}

// result returns the lines that could not be read in their order, and an error if they
// are all that the text has.
func (r *reader) result(read bool, command string) ([]Line, error) {
	slices.SortFunc(r.unread, func(a, b Line) int { return a.Number - b.Number })
	if len(r.unread) > 0 && !read {
		return nil, &SyntaxError{r.unread[0].Number, r.unread[0].Text, command}
	}
	return r.unread, nil
}

// words splits a line at blanks.
func words(line string) []string {
	return strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(blanks, r) })
}

// columns splits a line at tabs and at two blanks or more: a column's title may
// contain single blanks.
func columns(line string) []string {
	var cols []string
	for part := range strings.SplitSeq(strings.ReplaceAll(line, "\t", "  "), "  ") {
		if part = strings.Trim(part, blanks); part != "" {
			cols = append(cols, part)
		}
	}
	return cols
}

// isNumber reports whether s is a number as printf prints it: digits, a decimal
// point, a sign, or one of the words for what a division by zero gives.
func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	if s == "nan" || s == "inf" {
		return true
	}
	whole, fraction, point := strings.Cut(s, ".")
	return isDigits(whole) && (!point || isDigits(fraction))
}

// isDigits reports whether s is one decimal digit or more and nothing else.
func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
