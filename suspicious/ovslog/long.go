package ovslog

import (
	"bytes"
	"slices"
)

// text takes a line the long way. It is clean already, but may have something
// before or after it, or be a piece of a line. It reports whether it took all of
// r.raw, not only s.
func (r *Reader) text(s []byte) (all bool) {
	s = cutBars(s)
	if soft, ok := bytes.CutSuffix(s, []byte("=")); ok {
		s = soft // quoted-printable: the line goes on, just here
		r.soft = true
	} else if len(r.pieces) == 0 {
		// So it does where it was cut at the greatest width.
		r.soft = r.width > 0 && len(r.raw) >= r.width
	}
	if !wordy(s) && len(r.pieces) == 0 {
		return false // blank, "--" between grep's fragments, a lone bar
	}
	s, part, ok := r.container(s)
	if !ok {
		return false
	}
	part = (part || r.part) && r.order != newestFirst
	body := r.peel(s)
	if len(body) > 0 && bytes.Equal(body, r.body) && (r.doubled || len(r.pieces) == 0) {
		r.stats.Repeated++
		return false
	}
	r.body = append(r.body[:0], body[:min(len(body), maxJoined)]...)
	// A message whose prefix was wrapped off is whole by itself, but better with it.
	// Nor is a part whole that a container's log says is none.
	parted := part || r.parted || len(r.pieces) > 0 && hasStamp(r.pieces[0]) && !hasStamp(body) &&
		(bytes.Contains(body, []byte(neighborhood)) || bytes.Contains(body, []byte(announcement)))
	timeless := r.timeless(s)
	if !parted && !timeless && r.take(s, body, false) {
		return false
	}
	r.parted = part
	if len(r.pieces) > 0 && hasStamp(body) {
		r.settle()
	}
	begins := r.begins(body)
	if len(r.pieces) > 0 && !part {
		if r.join(body) || r.join(s) {
			return false
		}
		if r.joinRaw() {
			return true
		}
	}
	if timeless && r.take(s, body, false) {
		return false
	}
	if len(r.pieces) > 0 && (begins || !r.goesOn && r.enough(body)) {
		r.endPieces()
	}
	if !wordy(s) || !part && parted && r.take(s, body, false) {
		return false
	}
	n := len(body)
	for _, p := range r.rawPieces {
		n += len(p)
	}
	if len(r.pieces) >= maxPieces || n > maxJoined {
		r.endPieces()
	}
	if len(body) > maxJoined || len(r.raw) > maxJoined {
		r.lost(r.in.number, s)
		return false
	}
	if len(r.pieces) == 0 {
		if !begins && !part && r.order != newestFirst && !familiar(body) {
			r.lost(r.in.number, s)
			return false
		}
		r.piecesAt = r.in.number
	}
	// With what stands before it: that is needed to know what to peel off others.
	if begins && len(r.pieces) == 0 && !isNumbers(body) {
		body = s
	}
	r.pieces = append(r.pieces, bytes.Clone(body))
	r.rawPieces = append(r.rawPieces, bytes.Clone(r.raw))
	r.seemed = r.goesOn
	return false
}

// cutBars cuts off the bars and blanks that a table has at the ends of its lines.
func cutBars(s []byte) []byte {
	s = bytes.TrimRight(s, " ")
	for bytes.HasSuffix(s, []byte(" |")) {
		s = bytes.TrimRight(s[:len(s)-2], " ")
	}
	return s
}

// timeless reports whether a message has no time because it was wrapped off, and is what is
// under way: a line of the greatest width, or with a soft end, that has a time and no message.
func (r *Reader) timeless(s []byte) bool {
	if len(r.pieces) == 0 || !r.soft || !hasStamp(r.pieces[0]) {
		return false
	}
	v, ok := parseVlog(s)
	if !ok || len(v.stamp) > 0 {
		return false
	}
	_, ok = parseVlog(r.pieces[0])
	return !ok
}

// settle takes the pieces for a whole line if they make one and only seemed to go on,
// with a number at their end: what comes now can't be the rest of it.
func (r *Reader) settle() bool {
	if len(r.pieces) > maxTried || !r.seemed || r.order == newestFirst {
		return false
	}
	// What is under way by now has a line and a prefix of its own.
	prefix, rowPrefix := bytes.Clone(r.prefix), bytes.Clone(r.rowPrefix)
	r.settling = true
	whole := r.joinParts(r.pieces, false)
	r.settling = false
	r.prefix, r.rowPrefix = append(r.prefix[:0], prefix...), append(r.rowPrefix[:0], rowPrefix...)
	return whole
}

// joinRaw is join for lines that were wrapped after all else was done to them: what
// stands before the line is on its first piece only, and encodings go through.
func (r *Reader) joinRaw() bool {
	parts := append(slices.Clone(r.rawPieces), bytes.Clone(r.raw))
	if r.joinRawParts(parts) {
		return true
	}
	if r.order != newestFirst {
		return false
	}
	slices.Reverse(parts)
	return r.joinRawParts(parts)
}

func (r *Reader) joinRawParts(parts [][]byte) bool {
	n := len(parts)
	if n > maxTried {
		n = 1
	}
	for blanks := range 1 << (n - 1) {
		if r.loose = parted(parts, blanks); r.loose && r.soft {
			continue
		}
		text := clean(r.unsoft(parts, blanks), r.quoted)
		s, rest, _ := bytes.Cut(text, []byte("\n"))
		s, _, ok := r.container(bytes.TrimRight(s, " "))
		if !ok || !r.take(s, r.peel(s), true) {
			continue
		}
		r.dropPieces()
		for len(rest) > 0 {
			s, more, _ := bytes.Cut(rest, []byte("\n"))
			r.raw, r.inner = s, true
			r.text(s)
			rest = more
		}
		return true
	}
	return false
}

// parted reports whether a blank between parts may part a number.
func parted(parts [][]byte, blanks int) bool {
	for i, p := range parts[1:] {
		if before := parts[i]; blanks>>i&1 == 1 && len(p) > 0 && len(before) > 0 && isDigit(p[0]) && isDigit(before[len(before)-1]) {
			return true
		}
	}
	return false
}

// unsoft is glue without the "=" at the ends of quoted-printable lines.
func (r *Reader) unsoft(parts [][]byte, blanks int) []byte {
	if r.quoted {
		parts = slices.Clone(parts)
		for i, p := range parts[:len(parts)-1] {
			parts[i] = bytes.TrimSuffix(p, []byte("="))
		}
	}
	return glue(parts, blanks)
}

// glue puts parts together, with blanks between those whose bit is set.
func glue(parts [][]byte, blanks int) []byte {
	var s []byte
	for i, p := range parts {
		if i > 0 && blanks>>(i-1)&1 == 1 {
			s = append(s, ' ')
		}
		s = append(s, p...)
	}
	return s
}

// collapse makes one blank of several: what was peeled off may have left one too
// many. It works in place.
func collapse(b []byte) []byte {
	out := b[:0]
	for i, c := range b {
		if c != ' ' || i == 0 || b[i-1] != ' ' {
			out = append(out, c)
		}
	}
	return out
}

func (r *Reader) dropPieces() {
	r.pieces, r.rawPieces = r.pieces[:0], r.rawPieces[:0]
}

// hasStamp reports whether there is a time in b.
func hasStamp(b []byte) bool {
	_, stamp := splitStamp(b)
	return len(stamp) > 0
}

// enough reports whether the pieces have as many numbers as a row, and still make
// none: then the first is the rest of a row whose beginning is lost.
func (r *Reader) enough(piece []byte) bool {
	var v [8]uint64
	n := numbers(piece, &v)
	if n <= 0 {
		return false
	}
	for _, p := range r.pieces {
		n += max(numbers(p, &v), 0)
	}
	return n-len(r.pieces) >= len(v) // a number may have been parted at each joint
}

func isNumbers(b []byte) bool {
	var v [8]uint64
	return numbers(b, &v) > 0
}

// container undoes what container runtimes write: "time stderr F text", where P
// instead of F says that the text goes on in the next line. What goes on is a piece
// like any other unless it is too long for one; then it is kept and ok is false.
func (r *Reader) container(s []byte) (text []byte, part, ok bool) {
	for range maxLayers {
		rest, ok := cutContainer(s)
		if !ok {
			break
		}
		s = rest[min(len(rest), 2):]
		switch {
		case rest[0] == 'P' && len(s) > maxJoined/2:
			if len(r.partial)+len(s) <= maxLine {
				r.partial = append(r.partial, s...)
			}
			return nil, false, false
		case rest[0] == 'P':
			part = true
		}
		if len(r.partial) > 0 {
			s = append(r.partial, s...)
			r.partial = nil
		}
	}
	return s, part, true
}

// cutContainer returns what follows "time stderr ".
func cutContainer(s []byte) (rest []byte, ok bool) {
	for _, stream := range []string{" stderr ", " stdout "} {
		for at := 0; ; {
			i := bytes.Index(s[at:], []byte(stream))
			if i < 0 {
				break
			}
			before := s[:at+i]
			at += i + len(stream)
			rest := s[at:]
			if len(rest) == 0 || rest[0] != 'F' && rest[0] != 'P' || len(rest) > 1 && rest[1] != ' ' || bytes.IndexByte(before, '{') >= 0 {
				continue
			}
			if bytes.Contains(before, []byte(`\n`)) || bytes.Contains(before, []byte("#012")) {
				continue // before the second line of several that were made one
			}
			if _, stamp := splitStamp(before); len(stamp) > 0 && bytes.HasSuffix(before, stamp) {
				return rest, true
			}
		}
	}
	return nil, false
}

// endPieces gives up on a line that never became whole.
func (r *Reader) endPieces() {
	if len(r.pieces) == 0 || len(r.pieces) > 1 && r.settle() {
		return
	}
	pieces := r.pieces
	r.dropPieces()
	if v, ok := parseVlog(pieces[0]); ok && len(pieces) == 1 && string(v.module) != "pmd_perf" {
		r.say(&v, nil, false, false) // about something else, though it began like one of ours
		return
	}
	if row, ok := r.parse(pieces[0], pieces[0], false); ok && len(pieces) == 1 {
		r.row(&row, r.piecesAt) // it only seemed to go on
		return
	}
	// A message with a number at its end that only seemed to go on, too.
	if len(pieces) == 1 && bytes.Contains(pieces[0], []byte(logSet)) {
		goesOn := r.goesOn
		r.goesOn = false
		ok := r.take(pieces[0], r.peel(pieces[0]), false)
		r.goesOn = goesOn
		if ok {
			return
		}
	}
	for _, p := range pieces {
		r.lost(r.piecesAt, p)
	}
}

// join tries whether a piece makes the line under way whole. Blanks at the place
// where a line was parted may have been lost. Where the newest line comes first, its
// pieces may be in either order.
func (r *Reader) join(piece []byte) bool {
	parts := append(slices.Clone(r.pieces), piece)
	if len(parts) > maxTried {
		return false
	}
	if r.joinParts(parts, r.goesOn) {
		return true
	}
	if r.order != newestFirst {
		return false
	}
	slices.Reverse(parts)
	return r.joinParts(parts, r.atWidth(r.rawPieces[0])) // which has the end of the line
}

// atWidth reports whether a line is as wide as any and ends with a number, which may go on
// in the next then.
func (r *Reader) atWidth(raw []byte) bool {
	return r.width > 0 && len(raw) == r.width && isDigit(raw[len(raw)-1])
}

// halved reports whether a part of the prefix is missing in the middle.
func halved(v *vlog) bool { return bytes.IndexByte(v.module, '(') >= 0 }

// joinParts is join for parts in their order. goesOn says that a number at their end may go
// on in what comes next.
func (r *Reader) joinParts(parts [][]byte, goesOn bool) bool {
	defer func(before bool) { r.goesOn = before }(r.goesOn)
	r.goesOn = goesOn
	for blanks := range 1 << (len(parts) - 1) {
		if r.loose = parted(parts, blanks); r.loose && r.soft {
			continue
		}
		s := collapse(glue(parts, blanks))
		if r.take(s, r.peel(s), true) {
			r.dropPieces()
			return true
		}
	}
	return false
}

// take takes s if it is a whole line of a known kind; body is s without what stands
// before it. If it is put together of pieces, only what can be wrapped counts.
func (r *Reader) take(s, body []byte, joined bool) bool {
	if i := bytes.Index(s, []byte(announcement)); i >= 0 {
		h, ok := parseHeader(s[i:])
		if !ok {
			return false
		}
		v := r.before(s, i)
		if joined && halved(&v) {
			return false
		}
		r.done(joined)
		r.say(&v, &h, true, false)
		return true
	}
	if i := bytes.Index(s, []byte(neighborhood[:len(neighborhood)-1])); i >= 0 {
		v := r.before(s, i)
		if joined && halved(&v) {
			return false
		}
		r.done(joined)
		if a := r.above; r.order != newestFirst && len(v.thread) == 0 && len(v.module) == 0 && a != nil && a.name != "" {
			// The second line of our own form, or one whose prefix is lost.
			v.thread = []byte(a.name)
			r.say(&v, nil, false, true)
			if a.open != nil {
				a.open.guessed = true
			}
			return true
		}
		r.say(&v, nil, false, true)
		return true
	}
	if names := bytes.Index(s, []byte("iter ")); names >= 0 && isHeading(s[names:]) {
		r.rowPrefix = append(r.rowPrefix[:0], s[:min(names, maxPrefix)]...)
		r.done(joined)
		r.heading()
		return true
	}
	if !joined && len(r.pieces) == 0 && isHeading(body) { // its second half
		return true
	}
	if row, ok := r.parse(s, body, joined); ok && !r.goesOn && (!joined || !r.loose || r.fits(&row)) {
		r.done(joined)
		r.row(&row, r.lineOf(joined))
		return true
	}
	v, ok := parseVlog(s)
	if r.goesOn && bytes.Contains(s, []byte(logSet)) {
		return false // its last number may be half of one
	}
	if !ok {
		if rec := parseOther(Origin{Line: r.in.number}, nil, body); rec != nil {
			r.done(joined)
			r.emit(rec)
			return true
		}
		return false
	}
	rec := parseOther(Origin{}, nil, v.msg)
	if rec == nil && (string(v.module) == "pmd_perf" || mayBecome(v.msg)) {
		return false
	}
	r.keepPrefix(v.before)
	r.done(joined)
	r.say(&v, nil, false, false)
	return true
}

// done ends the pieces that precede a whole line, unless it is made of them.
func (r *Reader) done(joined bool) {
	if !joined {
		r.endPieces()
	}
}

func (r *Reader) lineOf(joined bool) int {
	if joined {
		return r.piecesAt
	}
	return r.in.number
}

// before splits what stands before a message at s[i:] and remembers what doesn't
// belong to the log itself.
func (r *Reader) before(s []byte, i int) vlog {
	v, ok := parseVlog(s)
	if !ok || len(s)-len(v.msg) > i {
		v = parsePattern(s[:i], s[i:])
	}
	if len(v.stamp) == 0 && bytes.HasSuffix(v.before, []byte("ovs")) {
		v.before, v.stamp = v.before[:len(v.before)-3], v.before[:0]
	}
	r.keepPrefix(v.before)
	// In syslog the time is in what stands before the message.
	if len(v.stamp) == 0 {
		_, v.stamp = splitStamp(v.before)
	}
	return v
}

// maxPrefix is how much may stand before a line.
const maxPrefix = 256

func (r *Reader) keepPrefix(b []byte) {
	r.prefix = append(r.prefix[:0], b[:min(len(b), maxPrefix)]...)
}

// begins reports whether b can be the beginning of a wrapped line.
func (r *Reader) begins(b []byte) bool {
	if hasStamp(b) {
		return true
	}
	if bytes.Contains(b, []byte("Suspicious iter")) {
		return len(r.pieces) == 0 || !hasStamp(r.pieces[0])
	}
	// A row: its first numbers.
	return isNumbers(b) && !slices.ContainsFunc(r.pieces, isNumbers)
}

// familiar reports whether b has a word that the first piece of a wrapped line may
// have, if it has no time.
func familiar(b []byte) bool {
	for _, word := range []string{"pmd", "Suspicious", "Neighborhood", "iter", "|WARN", "|INFO"} {
		if bytes.Contains(b, []byte(word)) {
			return true
		}
	}
	return mayBecome(b)
}

// mayBecome reports whether a message may be the first part of a known one.
func mayBecome(msg []byte) bool {
	for _, words := range []string{logSet, "Unreasonably long ", "faults: ", "context switches: ", "blocked ", "Core ", "There are ", "There is no available", "Dropped ", "Estimated TSC", "DPDK provided"} {
		if n := min(len(msg), len(words)); n > 0 && string(msg[:n]) == words[:n] {
			return true
		}
	}
	return false
}

// isHeading reports whether b is the columns' names or a part of them.
func isHeading(b []byte) bool {
	const names = "iter cycles packets cycles/pkt pkts/batch vhost qlen upcalls cycles/upcall"
	b = bytes.TrimRight(b, " |/*\\\",}")
	s := bytes.Join(bytes.Fields(b), []byte(" "))
	const least = 5 // letters of the second half of a wrapped heading, to be sure
	return len(s) >= least && bytes.Contains([]byte(names), s)
}

// parse reads a row with whatever stands before it.
func (r *Reader) parse(s, body []byte, joined bool) (row Row, ok bool) {
	var v [8]uint64
	for _, prefix := range [][]byte{r.rowPrefix, r.prefix} {
		if rest, ok := cutPrefix(s, prefix); ok && numbers(rest, &v) == len(v) {
			row = rowOf(&v)
			if row.consistent() {
				return row, true
			}
		}
	}
	for _, b := range [][]byte{body, s} {
		if numbers(b, &v) == len(v) {
			row = rowOf(&v)
			return row, row.consistent()
		}
	}
	if joined {
		return row, false
	}
	// "13-420424210  494 ...": the eight last numbers, after something that is no
	// number.
	start, ok := lastNumbers(s)
	if !ok || numbers(s[start:], &v) != len(v) {
		return row, false
	}
	row = rowOf(&v)
	return row, row.consistent()
}

// lastNumbers returns where the last eight numbers of s begin, if what precedes
// them is not a letter, a digit or a blank after one.
func lastNumbers(s []byte) (start int, ok bool) {
	i := len(s)
	for i > 0 && !isDigit(s[i-1]) {
		if isLetter(s[i-1]) {
			return 0, false
		}
		i--
	}
	for n := 8; ; {
		for i > 0 && isDigit(s[i-1]) {
			i--
		}
		if n--; n == 0 {
			break
		}
		if i == 0 || s[i-1] != ' ' {
			return 0, false
		}
		for i > 0 && s[i-1] == ' ' {
			i--
		}
		if i == 0 || !isDigit(s[i-1]) {
			return 0, false
		}
	}
	before := bytes.TrimRight(s[:i], " ")
	if len(before) == 0 {
		return i, true
	}
	last := before[len(before)-1]
	return i, !isDigit(last) && !isLetter(last) && last != '='
}

// cutPrefix cuts off a prefix like the one given: the same but for numbers and the
// width of blanks.
func cutPrefix(s, like []byte) (rest []byte, ok bool) {
	like = bytes.TrimLeft(like, " ")
	s = bytes.TrimLeft(s, " ")
	if len(like) == 0 {
		return s, true
	}
	i := 0
	for k := 0; k < len(like); {
		switch c := like[k]; {
		case c == ' ':
			for k < len(like) && like[k] == ' ' {
				k++
			}
			if k == len(like) {
				// What is left may begin with blanks of its own.
				if i >= len(s) || s[i] != ' ' {
					return nil, false
				}
				return s[i+1:], true
			}
			if i >= len(s) || s[i] != ' ' {
				return nil, false
			}
			for i < len(s) && s[i] == ' ' {
				i++
			}
		case isDigit(c):
			if i >= len(s) || !isDigit(s[i]) {
				return nil, false
			}
			for k < len(like) && isDigit(like[k]) {
				k++
			}
			for i < len(s) && isDigit(s[i]) {
				i++
			}
		default:
			if i >= len(s) || s[i] != c {
				return nil, false
			}
			i++
			k++
		}
	}
	return s[i:], true
}

// peel cuts off what people and programs put before a line: what was seen before
// other lines, then numbers, quotes, bars, names and times.
func (r *Reader) peel(s []byte) []byte {
	for _, prefix := range [][]byte{r.prefix, r.rowPrefix} {
		// A number before a line is before the first one that its escapes hide.
		if p := bytes.TrimSpace(prefix); len(p) > 0 && (!r.inner || countDigits(p) < len(p)) {
			if rest, ok := cutPrefix(s, prefix); ok && wordy(rest) {
				s = rest
				break
			}
		}
	}
	for range 8 {
		rest := peelOne(s)
		if len(rest) == len(s) || !wordy(rest) {
			break
		}
		s = rest
	}
	return s
}

func peelOne(s []byte) []byte {
	t := bytes.TrimLeft(s, " ")
	if len(t) == 0 {
		return s
	}
	switch c := t[0]; {
	case c == '>' || c == '|' && (len(t) == 1 || !isLetter(t[1])): // "|WARN|" is the log's
		return bytes.TrimPrefix(t[1:], []byte(" "))
	case (c == '-' || c == '*' || c == '+' || c == '#' || c == '%' || c == ';') && len(t) > 1 && t[1] == ' ':
		return t[2:]
	case bytes.HasPrefix(t, []byte("//")):
		return bytes.TrimPrefix(t[2:], []byte(" "))
	case c == '[':
		if n := countDigits(t[1:]); n > 0 && 1+n < len(t) && t[1+n] == ']' {
			return t[2+n:]
		}
	case isDigit(c):
		if _, n, ok := parseStamp(t); ok && n < len(t) && t[n] == ' ' {
			return peelHost(t[n+1:])
		}
		// A line's number, not a time or date: no digit after it.
		n := countDigits(t)
		if n+1 < len(t) && bytes.IndexByte([]byte(":.)]-"), t[n]) >= 0 && !isDigit(t[n+1]) {
			return bytes.TrimPrefix(t[n+1:], []byte(" "))
		}
	case isLetter(c):
		if _, n, ok := parseStamp(t); ok && n < len(t) && t[n] == ' ' {
			return peelHost(t[n+1:])
		}
		// "NAME stderr | ".
		const longest = 64
		if i := bytes.Index(t[:min(len(t), longest)], []byte(" | ")); i > 0 && wordy(t[i+3:]) {
			return t[i+3:]
		}
	}
	return s
}

// peelHost cuts the host and program of syslog off what follows the time.
func peelHost(s []byte) []byte {
	host := bytes.IndexByte(s, ' ')
	if host <= 0 || isDigit(s[0]) && countDigits(s) == host {
		return s
	}
	program := bytes.IndexByte(s[host+1:], ' ')
	if program > 1 && s[host+program] == ':' && bytes.IndexByte(s[:host+program], '|') < 0 {
		return s[host+1+program+1:]
	}
	return s
}

func countDigits(b []byte) int {
	n := 0
	for n < len(b) && isDigit(b[n]) {
		n++
	}
	return n
}
