package evidence

import (
	"bytes"
	"io"
)

const (
	maxSection  = 4 << 20 // bytes of what show commands printed in one go
	maxSections = 64
	maxShown    = 16 << 20 // bytes of all sections
	maxShowLine = 1 << 16
	lookBack    = 6 // lines above a heading that may belong to it
	chunk       = 1 << 19
)

// A section is what one show command printed, or several.
type section struct {
	line int // of its first line, from 1 on
	text []byte
}

// shows lets a text pass through without what show commands printed, which it keeps. It
// leaves empty lines in its place, so that all others keep their numbers.
type shows struct {
	r        io.Reader
	err      error  // why there is no more to be read
	buf      []byte // what was read
	done     int    // bytes of it that were passed on
	out      []byte // to be passed on
	number   int    // lines before buf
	sections []section
	open     bool // the last section goes on
	shown    int  // bytes of the sections
	cut      int  // lines that found no room in them
}

func newShows(r io.Reader) *shows { return &shows{r: r, buf: make([]byte, 0, chunk)} }

// Read reads what is passed on.
func (s *shows) Read(p []byte) (int, error) {
	for n := 1; len(s.out) == 0 && n > 0; {
		if s.err != nil {
			return 0, s.err
		}
		n = s.next()
	}
	n := copy(p, s.out)
	s.out = s.out[n:]
	return n, nil
}

// next reads some more and passes whole lines on; of a line without end, what there is. It
// returns how much it read.
func (s *shows) next() (n int) {
	s.buf = s.buf[:copy(s.buf, s.buf[s.done:])]
	n, s.err = s.r.Read(s.buf[len(s.buf):cap(s.buf)])
	s.buf = s.buf[:len(s.buf)+n]
	s.done = bytes.LastIndexByte(s.buf, '\n') + 1
	if s.err != nil || s.done == 0 && len(s.buf) == cap(s.buf) {
		s.done = len(s.buf)
	}
	if s.done > 0 {
		s.pass(s.buf[:s.done])
	}
	return n
}

// pass passes lines on, or keeps them.
func (s *shows) pass(b []byte) {
	if !s.open && !bytes.Contains(b, []byte("numa_id")) && !bytes.Contains(b, []byte("Event")) {
		s.number += bytes.Count(b, []byte("\n"))
		s.out = b
		return
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	if len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	var out []byte
	from := 0 // lines not passed on yet
	flush := func(to int) {
		for ; from < to; from++ {
			out = append(out, lines[from]...)
		}
	}
	for i, line := range lines {
		if s.open && !goesOn(line) {
			s.open = false
		}
		if !s.open && len(s.sections) < maxSections && s.shown < maxShown-maxShowLine && isHeading(line) {
			first := i
			for first > from && i-first < lookBack && isPreamble(lines[first-1], prefixLen(line)) {
				first--
			}
			flush(first)
			s.sections = append(s.sections, section{line: s.number + first + 1})
			s.open = true
			for ; from < i; from++ {
				s.keep(lines[from], &out)
			}
		}
		if s.open {
			s.keep(line, &out)
			from = i + 1
		}
	}
	flush(len(lines))
	s.number += len(lines)
	s.out = out
}

// keep keeps a line and leaves an empty one.
func (s *shows) keep(line []byte, out *[]byte) {
	last := &s.sections[len(s.sections)-1]
	if len(last.text)+len(line) > maxSection || s.shown+len(line) > maxShown {
		s.open = false
		s.cut++
	} else {
		last.text = append(last.text, line...)
		s.shown += len(line)
	}
	*out = append(*out, '\n')
}

const (
	threadMark = "pmd thread numa_id "
	mainMark   = "main thread:"
	eventMark  = "Event coverage, avg rate over last"
)

// isHeading reports whether a line is the heading of a thread, or of events.
func isHeading(line []byte) bool {
	if len(line) > maxShowLine || isMessage(line) {
		return false
	}
	line = spaces(line)
	if bytes.Contains(line, []byte(threadMark)) || bytes.Contains(line, []byte(eventMark)) {
		return true
	}
	before, ok := bytes.CutSuffix(bytes.TrimRight(line, " \t\r\n|"), []byte(mainMark))
	return ok && !bytes.ContainsFunc(before, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' })
}

// spaces turns non-breaking blanks into blanks.
func spaces(line []byte) []byte {
	if bytes.IndexByte(line, 0xc2) < 0 {
		return line
	}
	return bytes.ReplaceAll(line, []byte("\u00a0"), []byte(" "))
}

// isPreamble reports whether a line may stand above a heading, before which all lines
// have a prefix of so many bytes: the lines with times, and empty ones.
func isPreamble(line []byte, prefix int) bool {
	const colours = 12
	line = spaces(line)
	text := bytes.Trim(line, " \t\r\n|")
	if len(text) == 0 || prefix > 0 && len(text) <= prefix+colours && !bytes.ContainsAny(text[min(len(text), prefix):], ":=(") {
		return true
	}
	if isMessage(line) {
		return false
	}
	for _, mark := range [...]string{"Time: ", "Measurement duration: ", "Displaying last ", "max sleep"} {
		if bytes.Contains(line, []byte(mark)) {
			return true
		}
	}
	return false
}

// prefixLen returns how many bytes stand before a heading.
func prefixLen(line []byte) int {
	line = spaces(line)
	return max(0, bytes.Index(line, []byte(threadMark)), bytes.Index(line, []byte(eventMark)))
}

// isMessage reports whether a line is one of a log.
func isMessage(line []byte) bool {
	for _, mark := range [...]string{"|WARN|", "|INFO|", "|ERR|", "|DBG|", "|EMER|", "Suspicious iteration", "Neighborhood of"} {
		if bytes.Contains(line, []byte(mark)) {
			return true
		}
	}
	return false
}

func goesOn(line []byte) bool {
	return len(line) <= maxShowLine && !isMessage(line)
}
