package ovslog

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"time"
)

// parseUint reads the digits that b begins with and returns how many they are; 0
// if there is none or the number has more than 64 bits.
func parseUint(b []byte) (v uint64, n int) {
	for n < len(b) && isDigit(b[n]) {
		d := uint64(b[n] - '0')
		if v > (math.MaxUint64-d)/10 {
			return 0, 0
		}
		v = 10*v + d
		n++
	}
	return v, n
}

const rowLen = 112 // of a row as Open vSwitch writes it, when no value is wider than its column

// parseRow reads a row just as Open vSwitch writes it. It is the inner loop of
// reading a log.
func parseRow(b []byte, row *Row) (ok bool) {
	if len(b) != rowLen || string(b[:3]) != "   " {
		return false
	}
	// The columns begin at 3 and, 13 apart, from 23 on; the last is 11 wide.
	if row.Iteration, ok = parseWide((*[20]byte)(b[3:])); !ok {
		return false
	}
	if row.Cycles, ok = parseColumn((*[13]byte)(b[23:])); !ok {
		return false
	}
	// Without packets all the rest is zero nearly always, and else the last columns.
	const zero = "0            "
	if string(b[75:]) == zero+zero+"0          " {
		row.QueueFill, row.Upcalls, row.CyclesPerUpcall = 0, 0, 0
		if string(b[36:75]) == zero+zero+zero {
			row.Packets, row.CyclesPerPacket, row.PacketsPerBatch = 0, 0, 0
			return true
		}
	} else {
		last := [13]byte{11: ' ', 12: ' '}
		copy(last[:], b[101:])
		var ok1, ok2, ok3 bool
		row.QueueFill, ok1 = parseColumn((*[13]byte)(b[75:]))
		row.Upcalls, ok2 = parseColumn((*[13]byte)(b[88:]))
		row.CyclesPerUpcall, ok3 = parseColumn(&last)
		if !ok1 || !ok2 || !ok3 {
			return false
		}
	}
	var ok1, ok2, ok3 bool
	row.Packets, ok1 = parseColumn((*[13]byte)(b[36:]))
	row.CyclesPerPacket, ok2 = parseColumn((*[13]byte)(b[49:]))
	row.PacketsPerBatch, ok3 = parseColumn((*[13]byte)(b[62:]))
	return ok1 && ok2 && ok3
}

// Eight characters at once, the first in the lowest byte.
const (
	blanks8 = 0x2020202020202020
	zeros8  = 0x3030303030303030
)

// leadingDigits returns how many of eight characters are digits before the first that is
// none. Adding 0x76 to a byte of 10 and more sets its highest bit; what is carried from
// there reaches only bytes behind it.
func leadingDigits(x uint64) int {
	x ^= zeros8
	return bits.TrailingZeros64((x+0x7676767676767676|x)&0x8080808080808080) / 8
}

// eightDigits returns the number that the first n of eight characters are, which must be
// digits: two, four and eight of them are summed up at a time.
func eightDigits(x uint64, n int) uint64 {
	x <<= uint(64 - 8*n) // so that the last comes last, after zeros
	x = (x & 0x0f0f0f0f0f0f0f0f) * (10<<8 + 1) >> 8
	x = (x & 0x00ff00ff00ff00ff) * (100<<16 + 1) >> 16
	return (x & 0x0000ffff0000ffff) * (10000<<32 + 1) >> 32
}

// blankFrom reports whether the characters from the nth on are blanks.
func blankFrom(x uint64, n int) bool { return (x^blanks8)>>uint(8*n) == 0 }

// parseColumn reads a number with one blank or more after it.
func parseColumn(b *[13]byte) (v uint64, ok bool) {
	head, tail := binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[5:])
	// A digit alone is most frequent.
	if d := head&0xff - '0'; d < 10 && head>>8 == blanks8>>8 && tail == blanks8 {
		return d, true
	}
	n := leadingDigits(head)
	if n < 8 {
		return eightDigits(head, n), n > 0 && blankFrom(head, n) && blankFrom(tail, max(0, n-5))
	}
	m := leadingDigits(tail >> 24) // zeros come in behind, which are no digits
	last := binary.LittleEndian.Uint64(b[m:])
	return eightDigits(head, m)*1e8 + eightDigits(last, 8), m < 5 && blankFrom(tail, 3+m)
}

// parseWide is parseColumn for numbers of up to 19 digits.
func parseWide(b *[20]byte) (v uint64, ok bool) {
	head, middle, tail := binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:16]), binary.LittleEndian.Uint64(b[12:])
	n := leadingDigits(head)
	if n < 8 {
		return eightDigits(head, n), n > 0 && blankFrom(head, n) && middle == blanks8 && tail == blanks8
	}
	m := leadingDigits(middle)
	if m < 8 {
		last := binary.LittleEndian.Uint64(b[m:])
		return eightDigits(head, m)*1e8 + eightDigits(last, 8), blankFrom(middle, m) && blankFrom(tail, max(0, m-4))
	}
	k := leadingDigits(tail >> 32)
	v = eightDigits(head, k)*1e8 + eightDigits(binary.LittleEndian.Uint64(b[k:]), 8)
	return v*1e8 + eightDigits(binary.LittleEndian.Uint64(b[k+8:]), 8), k < 4 && blankFrom(tail, 4+k)
}

// A vlog is a line of Open vSwitch's log, in its parts.
type vlog struct {
	before []byte // what stands before the line
	stamp  []byte
	seq    uint64
	module []byte
	thread []byte
	msg    []byte
}

// parsePlain splits a line that has nothing before it and Open vSwitch's own time
// stamp, with or without milliseconds.
func parsePlain(b []byte) (v vlog, ok bool) {
	if len(b) < 30 || b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' {
		return v, false
	}
	n := len("2006-01-02T15:04:05.000Z")
	if b[19] == 'Z' {
		n = len("2006-01-02T15:04:05Z")
	}
	if b[n-1] != 'Z' || b[n] != '|' {
		return v, false
	}
	v.stamp = b[:n]
	rest := b[n+1:]
	var digits int
	if v.seq, digits = parseUint(rest); digits == 0 || digits == len(rest) || rest[digits] != '|' {
		return v, false
	}
	rest = rest[digits+1:]
	end := bytes.IndexByte(rest, '|')
	if end < 0 {
		return v, false
	}
	v.module, v.thread = splitModule(rest[:end])
	rest = rest[end+1:]
	if end = bytes.IndexByte(rest, '|'); end < 0 || end > len("EMER") {
		return v, false
	}
	v.msg = rest[end+1:]
	return v, true
}

// splitModule splits "module(thread)".
func splitModule(b []byte) (module, thread []byte) {
	if i := bytes.IndexByte(b, '('); i >= 0 && b[len(b)-1] == ')' {
		return b[:i], b[i+1 : len(b)-1]
	}
	return b, nil
}

// parseVlog splits a line of any pattern that has a level between bars in it.
func parseVlog(b []byte) (v vlog, ok bool) {
	level, n := -1, 0
	for _, l := range []string{"|WARN|", "|INFO|", "|ERR|", "|DBG|", "|EMER|"} {
		if i := bytes.Index(b, []byte(l)); i >= 0 && (level < 0 || i < level) {
			level, n = i, len(l)
		}
	}
	if level < 0 {
		return v, false
	}
	v.msg = b[level+n:]
	head := b[:level]
	bar := bytes.LastIndexByte(head, '|')
	v.module, v.thread = splitModule(bytes.TrimSpace(head[bar+1:]))
	v.before = head[:max(bar, 0)]
	if bar >= 0 {
		bar = bytes.LastIndexByte(v.before, '|')
		seq := v.before[bar+1:]
		if s, digits := parseUint(seq); digits > 0 && digits == len(seq) {
			v.seq = s
			v.before = v.before[:max(bar, 0)]
		}
	}
	v.before, v.stamp = splitStamp(v.before)
	return v, true
}

// parsePattern finds thread and time in what stands before a message in a log of a
// custom pattern.
func parsePattern(before, msg []byte) vlog {
	v := vlog{msg: msg}
	v.before, v.stamp = splitStamp(before)
	for i := 0; ; {
		j := bytes.Index(before[i:], []byte("pmd"))
		if j < 0 {
			return v
		}
		i += j
		end := i + len("pmd")
		if bytes.HasPrefix(before[end:], []byte("-c")) {
			end += 2
		}
		digits := end
		for end < len(before) && isDigit(before[end]) {
			end++
		}
		if end > digits && bytes.HasPrefix(before[end:], []byte("/id:")) {
			id := end + len("/id:")
			for end = id; end < len(before) && isDigit(before[end]); {
				end++
			}
		}
		if end > digits {
			v.thread = before[i:end]
			return v
		}
		i = end
	}
}

// splitStamp splits off the last time stamp in b: what is before it and the time.
func splitStamp(b []byte) (before, stamp []byte) {
	for i := len(b) - len("Jan  2 15:04:05"); i >= 0; i-- {
		if i > 0 && (isDigit(b[i-1]) || isLetter(b[i-1])) {
			continue
		}
		if _, n, ok := parseStamp(b[i:]); ok {
			return b[:i], b[i : i+n]
		}
	}
	return b, nil
}

// parseStamp reads the time that b begins with, ISO 8601 or that of syslog, whose
// year is 0, and returns its length. A time without zone is taken for UTC.
func parseStamp(b []byte) (t time.Time, n int, ok bool) {
	if len(b) >= len("2006-01-02T15:04:05") && b[4] == '-' && b[7] == '-' && (b[10] == 'T' || b[10] == ' ') {
		year, month, day := digits(b[:4]), digits(b[5:7]), digits(b[8:10])
		hour, minute, second, ok := parseClock(b[11:])
		if !ok || year < 0 || month < 1 || month > 12 || day < 1 || day > 31 {
			return t, 0, false
		}
		n = 19
		nanos := 0
		if n+1 < len(b) && (b[n] == '.' || b[n] == ',') && isDigit(b[n+1]) {
			n++
			for scale := 100_000_000; n < len(b) && isDigit(b[n]); n++ {
				nanos += int(b[n]-'0') * scale
				scale /= 10
			}
		}
		offset := 0
		switch {
		case n < len(b) && b[n] == 'Z':
			n++
		case n+3 <= len(b) && (b[n] == '+' || b[n] == '-') && digits(b[n+1:n+3]) >= 0:
			sign := 1
			if b[n] == '-' {
				sign = -1
			}
			offset = digits(b[n+1:n+3]) * 3600
			n += 3
			if n < len(b) && b[n] == ':' {
				n++
			}
			if n+2 <= len(b) && digits(b[n:n+2]) >= 0 {
				offset += digits(b[n:n+2]) * 60
				n += 2
			}
			offset *= sign
		}
		return time.Date(year, time.Month(month), day, hour, minute, second-offset, nanos, time.UTC), n, true
	}
	if len(b) < len("Jan  2 15:04:05") || b[3] != ' ' || b[6] != ' ' {
		return t, 0, false
	}
	month := bytes.Index([]byte("JanFebMarAprMayJunJulAugSepOctNovDec"), b[:3])
	day := digits(bytes.TrimLeft(b[4:6], " "))
	hour, minute, second, ok := parseClock(b[7:])
	if !ok || month < 0 || month%3 != 0 || day < 1 || day > 31 {
		return t, 0, false
	}
	return time.Date(0, time.Month(month/3+1), day, hour, minute, second, 0, time.UTC), 15, true
}

func parseClock(b []byte) (hour, minute, second int, ok bool) {
	if len(b) < 8 || b[2] != ':' || b[5] != ':' {
		return 0, 0, 0, false
	}
	hour, minute, second = digits(b[:2]), digits(b[3:5]), digits(b[6:8])
	ok = hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second <= 60
	return hour, minute, second, ok
}

// digits returns the value of a few digits, or -1.
func digits(b []byte) int {
	if len(b) == 0 {
		return -1
	}
	v := 0
	for _, c := range b {
		if !isDigit(c) {
			return -1
		}
		v = 10*v + int(c-'0')
	}
	return v
}

// A header is the message before a table.
type header struct {
	reason              []byte
	iteration, duration uint64
	began               time.Time
	causes              []byte
}

// parseHeader reads a header's message. Only punctuation may follow it, or what
// follows a quoted string, and in our own form the iteration's time and its causes.
func parseHeader(msg []byte) (h header, ok bool) {
	rest, ok := bytes.CutPrefix(msg, []byte(announcement))
	if !ok {
		return h, false
	}
	end := bytes.IndexByte(rest, ')')
	if end < 0 {
		return h, false
	}
	h.reason = rest[:end]
	const pasted = `\#|<>` // what may be of the way it was pasted
	if bytes.ContainsAny(h.reason, pasted) {
		return h, false
	}
	rest = rest[end:]
	if rest, ok = bytes.CutPrefix(rest, []byte("): ")); !ok {
		return h, false
	}
	if rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " "), []byte("iter=")); !ok {
		return h, false
	}
	var n int
	if h.iteration, n = parseUint(rest); n == 0 || n == len(rest) || rest[n] != ' ' {
		return h, false
	}
	if rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest[n:], " "), []byte("duration=")); !ok {
		return h, false
	}
	if h.duration, n = parseUint(rest); n == 0 {
		return h, false
	}
	if rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest[n:], " "), []byte("us")); !ok {
		return h, false
	}
	if after, ok := bytes.CutPrefix(rest, []byte(" at ")); ok {
		if t, n, ok := parseStamp(after); ok {
			h.began = t
			rest = after[n:]
			if named, ok := bytes.CutPrefix(rest, []byte(causes)); ok {
				h.causes = bytes.TrimRight(named, " ")
				return h, !bytes.ContainsAny(named, pasted)
			}
		}
	}
	return h, !wordy(rest) || rest[0] == '"'
}

// wordy reports whether b has a letter or digit.
func wordy(b []byte) bool {
	for _, c := range b {
		if isDigit(c) || isLetter(c) {
			return true
		}
	}
	return false
}

// numbers reads blank-separated numbers, with nothing but punctuation after the
// last. It returns how many there are, -1 if there is something else or more than
// fit.
func numbers(b []byte, to *[8]uint64) int {
	n := 0
	for {
		b = bytes.TrimLeft(b, " ")
		if !wordy(b) {
			return n
		}
		v, digits := parseUint(b)
		if digits == 0 || n == len(to) || digits < len(b) && isLetter(b[digits]) {
			return -1
		}
		to[n] = v
		n++
		b = b[digits:]
		if len(b) > 0 && b[0] != ' ' && wordy(b) {
			return -1
		}
	}
}

func rowOf(v *[8]uint64) Row {
	return Row{Iteration: v[0], Cycles: v[1], Packets: v[2], CyclesPerPacket: v[3], PacketsPerBatch: v[4], QueueFill: v[5], Upcalls: v[6], CyclesPerUpcall: v[7]}
}

// consistent reports whether the columns agree with each other, as they do unless
// they are not the columns they are taken for. A row of zeros does.
func (r *Row) consistent() bool {
	if r.Cycles == 0 {
		return *r == Row{}
	}
	if r.Upcalls == 0 && r.CyclesPerUpcall != 0 || r.PacketsPerBatch > r.Packets {
		return false
	}
	if r.Packets == 0 {
		return r.CyclesPerPacket == 0
	}
	return r.CyclesPerPacket == r.Cycles/r.Packets
}
