package ovslog

import (
	"bytes"
	"io"
	"iter"
	"strings"
	"time"
)

const (
	maxUnread     = 20   // lines kept of those that can't be read
	maxUnreadText = 200  // bytes of each
	maxPieces     = 12   // of a wrapped line
	maxTried      = 5    // pieces between which lost blanks are looked for
	maxJoined     = 8192 // bytes of a wrapped line
	maxReasons    = 64   // different ones that are remembered
)

// Stats says how reading went.
type Stats struct {
	Lines    int // of the input
	Events   int
	Foreign  int // messages that are about something else
	Repeated int // lines that were there twice
	Empty    int // tables without any row
	Unfilled int // rows of zeros: unused places of a thread's history
	Unread   int // lines that are neither; the first are in Lost
	Lost     []Lost
}

// Lost is a line that could not be read.
type Lost struct {
	Line int
	Text string // its beginning
}

// A Reader reads a log from an [io.Reader]. It holds one line and the tables under
// way and so needs the same memory, some MB, for logs of any size. It belongs to
// one goroutine.
type Reader struct {
	src     io.Reader
	in      *lines
	yield   func(Record) bool
	stopped bool
	err     error
	stats   Stats
	event   Event // one being told that is not among a thread's pending

	threads map[string]*thread
	all     []*thread // the same in the order of their appearance
	open    []*table  // under way, oldest first
	current *table    // where the last row went
	above   *thread   // of the header that the last message was
	free    []*table
	order   order // of messages
	known   map[string][]string
	same    *thread // of the last message

	day      []byte // the beginning of the last stamp
	midnight time.Time

	quoted    bool     // the text is quoted-printable
	prefix    []byte   // what stood before the last message on its line
	rowPrefix []byte   // what stood before the last heading
	body      []byte   // of the last line that took the long way
	raw       []byte   // the line under way as it is in the input
	goesOn    bool     // its end is no end of a line
	inner     bool     // it is not the first of several that were one
	tail      []byte   // the end of the last line that took the long way
	pieces    [][]byte // of a line that isn't whole yet
	rawPieces [][]byte // the same as they are in the input
	piecesAt  int      // its line
	seemed    bool     // its last piece ends with a number that may go on
	settling  bool     // it is being taken after another one has begun
	folds     bool     // quoted-printable is what was done to the text last
	wraps     bool     // every line of the greatest width goes on in the next
	folding   bool     // the line under way is such a one
	folded    []byte   // its parts
	soft      bool     // no blank was lost where it was parted
	loose     bool     // what is put together has a blank where a number may go on
	doubled   bool     // most lines are there twice
	width     int      // of lines that seem to have been wrapped, or 0
	partial   []byte   // of a message that a container's log parted
	part      bool     // the line under way goes on in the next, says a container's log
	parted    bool     // the last line did
}

// NewReader returns a Reader of r, which may be compressed with gzip and be UTF-16. Of a
// long r all but the beginning is read in a goroutine of the Reader's: when a loop over
// Records ends early, a read may still be under way, so nobody else may use r then.
func NewReader(r io.Reader) *Reader {
	return &Reader{src: r, threads: make(map[string]*thread), known: make(map[string][]string)}
}

// Records yields what the log says, in its order: an event is told when the header
// and table are complete, so a thread's events may come after other records that
// stand below them; Origin.Line tells. A record and what it points to belong to the
// reader and are valid until the next; see [Event.Clone]. Records reads the input
// and so can be used once. See Err afterwards.
func (r *Reader) Records() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		if r.src == nil {
			return
		}
		r.yield = yield
		src, err := Decode(r.src)
		r.src = nil
		if err != nil {
			r.err = err
			return
		}
		r.in = newLines(src)
		defer r.in.close()
		r.sniff(r.in.peek())
		r.in.readAhead()
		short := !r.folds && !r.wraps
		for !r.stopped {
			if short {
				if row := r.in.row(); row != nil {
					r.endPieces()
					r.row(row, r.in.number)
					continue
				}
			}
			line, cut, ok := r.in.next()
			if !ok {
				break
			}
			if cut {
				r.lost(r.in.number, line)
				continue
			}
			r.line(line)
		}
		if r.folding { // the end is missing
			r.folds, r.wraps = false, false
			r.line(r.folded)
		}
		r.stats.Lines = r.in.number
		r.endPieces()
		r.flush()
		r.err = r.in.err
		r.in, r.yield = nil, nil
	}
}

// Err returns the error that ended the input early, if any: what was read before
// it has been told. It is to be called after Records.
func (r *Reader) Err() error { return r.err }

// Stats returns how reading has gone so far.
func (r *Reader) Stats() Stats { return r.stats }

func (r *Reader) emit(rec Record) {
	if !r.stopped && !r.yield(rec) {
		r.stopped = true
	}
}

func (r *Reader) lost(line int, text []byte) {
	if !wordy(text) {
		return
	}
	r.stats.Unread++
	if len(r.stats.Lost) < maxUnread {
		r.stats.Lost = append(r.stats.Lost, Lost{line, strings.ToValidUTF8(string(text[:min(len(text), maxUnreadText)]), "\ufffd")})
	}
}

// line takes a line: the short way if it is as Open vSwitch wrote it.
func (r *Reader) line(b []byte) {
	r.stats.Lines = r.in.number
	if r.folds || r.wraps {
		if b = r.fold(b); b == nil {
			return
		}
	}
	switch {
	case string(b) == heading:
		r.endPieces()
		r.rowPrefix = r.rowPrefix[:0]
		r.heading()
		return
	case len(b) > 0 && isDigit(b[0]):
		if v, ok := parsePlain(b); ok && r.plain(&v) {
			return
		}
	}
	b = bytes.TrimRight(b, "\r")
	if len(b) == 0 {
		return
	}
	// Here too, as the parts may end within a character.
	if text, part, ok := r.container(b); ok {
		r.part = part
		text = r.cutEscape(text)
		r.tail = append(r.tail[:0], text[max(0, len(text)-len("#012")):]...)
		r.split(text)
	}
}

// fold puts the parts of a line together of which it is known that they are parts. It
// returns nil if the line goes on.
func (r *Reader) fold(b []byte) []byte {
	if !r.folding {
		r.folded = r.folded[:0]
	}
	b = bytes.TrimRight(b, "\r")
	part, goesOn := b, r.wraps && len(b) == r.width
	if r.folds {
		part, goesOn = bytes.CutSuffix(b, []byte("="))
	}
	r.folding = goesOn && len(r.folded) < maxLine
	r.folded = append(r.folded, part...)
	if r.folding {
		return nil
	}
	return r.folded
}

// cutEscape cuts off the second half of a line end's escape that was wrapped.
func (r *Reader) cutEscape(raw []byte) []byte {
	for _, esc := range []string{"#012", `\012`, `\n`} {
		for i := 1; i < len(esc); i++ {
			if bytes.HasSuffix(r.tail, []byte(esc[:i])) && bytes.HasPrefix(raw, []byte(esc[i:])) {
				return raw[len(esc)-i:]
			}
		}
	}
	return raw
}

// split takes a line that may be several, written with escapes.
func (r *Reader) split(raw []byte) {
	// Half of an escape at the end: the other half is cut off the next line.
	for _, half := range []string{" #", " #0", " #01", ` \`, ` \0`, ` \01`} {
		if bytes.HasSuffix(raw, []byte(half)) {
			raw = raw[:len(raw)-len(half)]
			break
		}
	}
	goesOn := r.atWidth(raw)
	if r.quoted {
		raw = cutBars(raw) // or else a soft line end before them is none
	}
	text := clean(raw, r.quoted)
	r.raw, r.inner = raw, false
	for len(text) > 0 && !r.stopped {
		s, rest, more := bytes.Cut(text, []byte("\n"))
		if more || len(s) < len(text) {
			r.raw = s
		}
		r.goesOn = goesOn && len(rest) == 0
		if r.text(s) {
			return
		}
		text, r.inner = rest, true
		if !bytes.Contains(text, []byte("\n")) {
			r.raw = text
		}
	}
}

// plain takes a line that is as Open vSwitch wrote it, and reports whether it was.
func (r *Reader) plain(v *vlog) bool {
	var h header
	isHeader, isTable := false, false
	switch {
	case len(v.msg) > 0 && v.msg[0] == 'S' && bytes.HasPrefix(v.msg, []byte(announcement)):
		var ok bool
		if h, ok = parseHeader(v.msg); !ok || v.msg[len(v.msg)-1] != 's' && h.began.IsZero() {
			return false
		}
		isHeader = true
	case string(v.msg) == neighborhood:
		isTable = true
	case string(v.module) == "pmd_perf" || mayBecome(v.msg) || bytes.IndexByte(v.msg, '\\') >= 0 || bytes.IndexByte(v.msg, '#') >= 0 || bytes.IndexByte(v.msg, '\r') >= 0:
		return false
	}
	r.endPieces()
	r.prefix = r.prefix[:0]
	r.say(v, &h, isHeader, isTable)
	return true
}

// say takes a message, whose kind is known.
func (r *Reader) say(v *vlog, h *header, isHeader, isTable bool) {
	t := r.thread(v.thread)
	o := Origin{Thread: t.name, Seq: v.seq, Line: r.in.number}
	if r.settling {
		o.Line = r.piecesAt
	}
	o.Time = r.time(v.stamp)
	switch {
	case isHeader:
		r.header(t, o, h)
	case isTable:
		r.neighborhood(t, o)
	default:
		if o.Seq == 0 || o.Seq != t.lastSeq {
			r.message(t, o)
		}
		if rec := parseOther(o, v.module, v.msg); rec != nil {
			r.emit(rec)
		} else {
			r.stats.Foreign++
		}
	}
}

// time reads a message's stamp; nearly all are of the same day as the one before.
func (r *Reader) time(stamp []byte) time.Time {
	const day = len("2006-01-02T")
	if len(stamp) == len(stampLayout) && stamp[19] == '.' && stamp[23] == 'Z' {
		hour, minute, second, ok := parseClock(stamp[day:19])
		if ms := digits(stamp[20:23]); ok && ms >= 0 {
			clock := time.Duration(hour*3600+minute*60+second)*time.Second + time.Duration(ms)*time.Millisecond
			if string(stamp[:day]) == string(r.day) {
				return r.midnight.Add(clock)
			}
			t, _, ok := parseStamp(stamp)
			if ok {
				r.day, r.midnight = append(r.day[:0], stamp[:day]...), t.Add(-clock)
			}
			return t
		}
	}
	t, _, _ := parseStamp(stamp)
	return t
}

// reasons splits and remembers the text of a header's reasons.
func (r *Reader) reasons(b []byte) []string {
	if s, ok := r.known[string(b)]; ok {
		return s
	}
	text := strings.Join(strings.Fields(string(b)), " ")
	var reasons []string
	for _, reason := range strings.Split(text, ", ") {
		// Wrapping may have cost a blank.
		for _, known := range []string{ReasonCycles, ReasonQueue} {
			if strings.ReplaceAll(reason, " ", "") == strings.ReplaceAll(known, " ", "") {
				reason = known
			}
		}
		reasons = append(reasons, reason)
	}
	if len(r.known) < maxReasons && len(b) < 256 {
		r.known[string(b)] = reasons
	}
	return reasons
}
