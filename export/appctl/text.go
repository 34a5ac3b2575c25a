package appctl

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// encoding/json replaces bytes that are not UTF-8, and half surrogate pairs, by
// U+FFFD. Open vSwitch keeps the former and refuses the latter, therefore
// strings are quoted and unquoted here.

// appendQuoted appends s as a JSON string, as appendEscaped writes it.
func appendQuoted(dst []byte, s string) []byte {
	return append(appendEscaped(append(dst, '"'), s), '"')
}

// appendEscaped appends s as a part of a JSON string, without the NUL bytes in it,
// which no client accepts. All other bytes that JSON allows stay as they are.
func appendEscaped[Text string | []byte](dst []byte, s Text) []byte {
	const hex = "0123456789abcdef"
	done := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[done:i]...)
		done = i + 1
		switch c {
		case 0:
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(dst, s[done:]...)
}

// A textWriter makes what is written to it a JSON string at the end of a reply.
type textWriter struct {
	reply []byte
	from  int  // where in reply the text begins
	last  byte // written
}

func (t *textWriter) begin() {
	t.reply = append(t.reply, '"')
	t.from = len(t.reply)
}

func (t *textWriter) Write(p []byte) (int, error) { return writeText(t, p) }

// WriteString is what io.WriteString looks for.
func (t *textWriter) WriteString(s string) (int, error) { return writeText(t, s) }

func writeText[Text string | []byte](t *textWriter, s Text) (int, error) {
	if len(s) > 0 {
		t.reply = appendEscaped(slices.Grow(t.reply, len(s)+len(s)/16+64), s)
		t.last = s[len(s)-1]
	}
	return len(s), nil
}

// end ends the string, with a newline unless the text is empty.
func (t *textWriter) end() {
	if len(t.reply) > t.from && t.last != '\n' {
		t.reply = append(t.reply, `\n`...)
	}
	t.reply = append(t.reply, '"')
}

// unquote returns the value of a JSON string. The text must be one that
// encoding/json has accepted and badEscape has found nothing in.
func unquote(text []byte) string {
	s := string(text[1 : len(text)-1])
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			out = append(out, s[i])
			i++
			continue
		}
		switch c := s[i+1]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, n := escapedRune([]byte(s[i:]))
			out = utf8.AppendRune(out, r)
			i += n
			continue
		default: // the quote, the slash and the backslash stand for themselves
			out = append(out, c)
		}
		i += 2
	}
	return string(out)
}

// escapedRune decodes the \uXXXX, or the pair of them, that b begins with, and
// returns its length in bytes. Half a surrogate pair comes back as
// utf8.RuneError, which no \uXXXX but \ufffd stands for.
func escapedRune(b []byte) (r rune, n int) {
	unit := func(b []byte) rune {
		if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
			return utf8.RuneError
		}
		v, err := strconv.ParseUint(string(b[2:6]), 16, 16)
		if err != nil {
			return utf8.RuneError
		}
		return rune(v)
	}
	r = unit(b)
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if pair := utf16.DecodeRune(r, unit(b[6:])); pair != utf8.RuneError {
		return pair, 12
	}
	return utf8.RuneError, 6
}

// badEscape returns where in a valid JSON text the first escape is that Open
// vSwitch refuses, \u0000 or half a surrogate pair, or -1. Both are six bytes
// long. (In valid JSON a backslash can only be in a string.)
func badEscape(text []byte) int {
	for i := 0; i < len(text); {
		switch {
		case text[i] != '\\':
			i++
		case text[i+1] != 'u':
			i += 2
		default:
			r, n := escapedRune(text[i:])
			half := r == utf8.RuneError && !strings.EqualFold(string(text[i+2:i+6]), "fffd")
			if r == 0 || half {
				return i
			}
			i += n
		}
	}
	return -1
}

// dropBadEscapes returns the JSON text without the escapes that badEscape
// finds.
func dropBadEscapes(text []byte) []byte {
	bad := badEscape(text)
	if bad < 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	for bad >= 0 {
		out = append(out, text[:bad]...)
		text = text[bad+6:]
		bad = badEscape(text)
	}
	return append(out, text...)
}

// withNewline returns s ending with a newline, unless it is empty.
func withNewline(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}
