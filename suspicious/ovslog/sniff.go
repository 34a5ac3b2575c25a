package ovslog

import (
	"bytes"
	"time"
)

// sniff finds out from the beginning of the text what can't be told from a line.
func (r *Reader) sniff(head []byte) {
	width := r.sniffLines(head)
	head = plain(head)
	for _, mark := range []string{"iter=3D", "duration=3D", "=1B[", "=C2=A0"} {
		r.quoted = r.quoted || bytes.Contains(head, []byte(mark))
	}
	if numbered(head) {
		r.prefix = append(r.prefix, "1 "...)
	}
	up, down := stampSteps(head)
	if up+down == 0 {
		up, down = iterationSteps(head)
	}
	if down > 2*up {
		r.order = newestFirst
	}
	// HTML is that narrow only if it was wrapped after it was made.
	r.wraps = r.width > 0 && bytes.Contains(head, []byte("&nbsp;"))
	const folded = 76 // RFC 2045
	r.folds = r.quoted && !r.doubled && width <= folded && r.order != newestFirst
}

// sniffLines looks at the lines as such and returns the greatest width.
func (r *Reader) sniffLines(head []byte) (width int) {
	const widest = 132 // anything wider is a header as it is
	var n, twice int
	var before []byte
	for line := range bytes.Lines(head) {
		line = bytes.TrimRight(line, "\r\n")
		width = max(width, len(line))
		if n++; n%2 == 0 && bytes.Equal(line, before) {
			twice++
		}
		before = line
	}
	r.doubled = twice > n*9/20
	if width <= widest {
		r.width = width
	}
	return width
}

// stampSteps counts how often the times of messages rise and fall.
func stampSteps(head []byte) (up, down int) {
	var last time.Time
	for {
		i := bytes.Index(head, []byte("pmd_perf"))
		if i < 0 {
			return up, down
		}
		// The stamp stands before the number before it.
		const reach = 120
		_, stamp := splitStamp(head[max(0, i-reach):i])
		if t, _, ok := parseStamp(stamp); ok {
			if !last.IsZero() {
				switch t.Compare(last) {
				case 1:
					up++
				case -1:
					down++
				}
			}
			last = t
		}
		head = head[i+len("pmd_perf"):]
	}
}

// iterationSteps counts how often the iterations of headers rise and fall.
func iterationSteps(head []byte) (up, down int) {
	var last uint64
	for {
		i := bytes.Index(head, []byte("iter="))
		if i < 0 {
			return up, down
		}
		head = head[i+len("iter="):]
		if v, n := parseUint(bytes.TrimPrefix(head, []byte("3D"))); n > 0 {
			if last > 0 && v > last {
				up++
			} else if v < last {
				down++
			}
			last = v
		}
	}
}

// numbered reports whether the first lines begin with successive numbers.
func numbered(head []byte) bool {
	const wanted = 3
	var last uint64
	for n := range wanted {
		line, rest, more := bytes.Cut(head, []byte("\n"))
		if !more {
			return false
		}
		head = rest
		line = bytes.TrimLeft(line, " ")
		v, digits := parseUint(line)
		if isNumbers(line) {
			return false // rows
		}
		if digits == 0 || digits == len(line) || line[digits] != ' ' || n > 0 && apart(v, last) != 1 {
			return false
		}
		last = v
	}
	return true
}
