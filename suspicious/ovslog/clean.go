package ovslog

import (
	"bytes"
	"encoding/json"
	"html"
	"unicode/utf8"
)

// clean undoes encodings of characters in a line of whatever origin: JSON strings,
// escapes, entities, quoted-printable, colours, blanks of all kinds. What comes
// back may be several lines, parted by '\n'. quoted says that the text around is
// quoted-printable.
func clean(b []byte, quoted bool) []byte {
	for range maxLayers {
		before := b
		b = unoctal(b)
		b = plain(b)
		b = fromJSON(b)
		if quoted || bytes.Contains(b, []byte("=3D")) || bytes.Contains(b, []byte("=C2=A0")) {
			after := unquotedPrintable(b)
			quoted = quoted && bytes.Equal(after, b) // once: what comes out may look encoded too
			b = after
		}
		if bytes.IndexByte(b, '&') >= 0 && bytes.IndexByte(b, ';') >= 0 {
			b = []byte(html.UnescapeString(string(b)))
		}
		b = untag(b)
		if bytes.Equal(b, before) {
			break
		}
	}
	return unescape(b)
}

// plain removes escape sequences of terminals and characters without width, and
// makes blanks of all blanks and lines of carriage returns.
func plain(b []byte) []byte {
	i := 0
	for i < len(b) && b[i] >= ' ' && b[i] < 0x7f {
		i++
	}
	if i == len(b) {
		return b
	}
	out := make([]byte, 0, len(b))
	for i = 0; i < len(b); {
		switch c := b[i]; {
		case c == 0x1b:
			i += escape(b[i:])
		case c == '\t' || c == '\v' || c == '\f':
			out = append(out, ' ')
			i++
		case c == '\n' || c == '\r':
			out = append(out, '\n')
			i++
		case c < ' ' || c == 0x7f:
			i++
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		default:
			r, n := utf8.DecodeRune(b[i:])
			switch {
			case r == 0x85 || r == 0x2028 || r == 0x2029:
				out = append(out, '\n')
			case r == 0xa0 || r == 0x1680 || r >= 0x2000 && r <= 0x200a || r == 0x202f || r == 0x205f || r == 0x3000:
				out = append(out, ' ')
			case r == 0xad || r >= 0x200b && r <= 0x200f || r == 0x2060 || r == 0xfeff:
			case r == utf8.RuneError && n == 1 && b[i] == 0xa0:
				out = append(out, ' ') // a no-break space of Latin-1
			default:
				out = append(out, b[i:i+n]...)
			}
			i += n
		}
	}
	return out
}

// escape returns the length of the terminal's escape sequence that b begins with.
func escape(b []byte) int {
	if len(b) < 2 {
		return len(b)
	}
	switch b[1] {
	case '[': // up to a letter
		for i := 2; i < len(b); i++ {
			if b[i] >= '@' && b[i] <= '~' {
				return i + 1
			}
		}
		return len(b)
	case ']': // up to a bell or ESC \
		for i := 2; i < len(b); i++ {
			if b[i] == 7 {
				return i + 1
			}
			if b[i] == 0x1b && i+1 < len(b) && b[i+1] == '\\' {
				return i + 2
			}
		}
		return 1
	case '(', ')': // a character set
		return min(3, len(b))
	}
	return 2
}

// fromJSON returns the messages of a line of objects that have one, as docker's
// json-file and journalctl -o json write them.
func fromJSON(b []byte) []byte {
	if bytes.IndexByte(b, '"') < 0 {
		return b
	}
	for _, key := range []string{`"log"`, `"MESSAGE"`, `"message"`, `"msg"`} {
		var all []byte
		found := false
		for rest := b; ; {
			i := bytes.Index(rest, []byte(key))
			if i < 0 {
				break
			}
			rest = bytes.TrimLeft(rest[i+len(key):], " ")
			value, ok := bytes.CutPrefix(rest, []byte(":"))
			value = bytes.TrimLeft(value, " ")
			if !ok || len(value) == 0 || value[0] != '"' {
				continue
			}
			if found && (len(all) == 0 || all[len(all)-1] != '\n') {
				all = append(all, '\n')
			}
			end := stringEnd(value)
			if end < 0 {
				// It goes on in the next line.
				all, found = append(all, value[1:]...), true
				break
			}
			var s string
			if json.Unmarshal(value[:end], &s) == nil {
				all, found = append(all, s...), true
			}
			rest = value[end:]
		}
		if found {
			return all
		}
	}
	return b
}

// stringEnd returns the length of the JSON string that b begins with, or -1.
func stringEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// unquotedPrintable decodes b if every '=' in it is an escape; one at the end,
// which says that the line goes on, stays.
func unquotedPrintable(b []byte) []byte {
	if bytes.IndexByte(b, '=') < 0 {
		return b
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '=' || i == len(b)-1 {
			out = append(out, b[i])
			continue
		}
		if soft, ok := softBreak(b[i+1:]); ok {
			i += soft
			continue
		}
		if i+2 >= len(b) {
			return b
		}
		hi, lo := unhex(b[i+1]), unhex(b[i+2])
		if hi < 0 || lo < 0 {
			return b
		}
		out = append(out, byte(hi<<4|lo))
		i += 2
	}
	return out
}

// softBreak returns the length of the escaped line end that b begins with.
func softBreak(b []byte) (n int, ok bool) {
	for _, end := range []string{`\n`, "#012", "\n"} {
		if bytes.HasPrefix(b, []byte(end)) {
			return len(end), true
		}
	}
	return 0, false
}

func unhex(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// untag removes HTML's tags; <br> ends a line.
func untag(b []byte) []byte {
	if bytes.IndexByte(b, '<') < 0 || bytes.IndexByte(b, '>') < 0 {
		return b
	}
	const longest = 200
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] == '<' && i+1 < len(b) && (b[i+1] == '/' || isLetter(b[i+1])) {
			if end := bytes.IndexByte(b[i:min(len(b), i+longest)], '>'); end > 0 {
				if tag := b[i+1 : i+end]; len(tag) >= 2 && (tag[0]|0x20) == 'b' && (tag[1]|0x20) == 'r' {
					out = append(out, '\n')
				}
				i += end
				continue
			}
		}
		out = append(out, b[i])
	}
	return out
}

// unoctal decodes the "#033" of rsyslog, apart from its line ends.
func unoctal(b []byte) []byte {
	if bytes.Contains(b, []byte("#033")) {
		b = bytes.ReplaceAll(b, []byte("#033"), []byte{0x1b})
	}
	for _, esc := range []string{`\x1b`, `\x1B`, `\u001b`, `\033`, `\e[`} {
		if bytes.Contains(b, []byte(esc)) {
			to := "\x1b"
			if esc == `\e[` {
				to = "\x1b["
			}
			b = bytes.ReplaceAll(b, []byte(esc), []byte(to))
		}
	}
	return b
}

// unescape makes line ends and blanks of the escapes that stand for them.
func unescape(b []byte) []byte {
	if bytes.IndexByte(b, '\\') < 0 && bytes.IndexByte(b, '#') < 0 {
		return b
	}
	for _, e := range [][2]string{
		{`\r\n`, "\n"}, {`\n`, "\n"}, {`\012`, "\n"}, {"#012", "\n"}, {`\u000a`, "\n"},
		{`\r`, "\n"}, {"#015", "\n"}, {`\t`, " "}, {"#011", " "}, {`\011`, " "},
		{`\u003e`, ">"}, {`\u003c`, "<"}, {`\"`, `"`},
	} {
		if bytes.Contains(b, []byte(e[0])) {
			b = bytes.ReplaceAll(b, []byte(e[0]), []byte(e[1]))
		}
	}
	return b
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
