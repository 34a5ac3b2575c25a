// Package mangle does to logs what people and programs do to them before somebody is
// asked to read them. It is for tests.
package mangle

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"html"
	"mime/quotedprintable"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
)

// A Mangling is something that people and programs do to a log.
type Mangling struct {
	Name string
	Do   func(string) string
	// NoPrefix says that it costs the prefix: thread, time and number.
	NoPrefix bool
	Last     bool // makes no text, so that nothing can be done after it
}

// each does something to every line.
func each(do func(i int, line string) string) func(string) string {
	return func(text string) string {
		var b strings.Builder
		i := 0
		for line := range strings.Lines(text) {
			b.WriteString(do(i, strings.TrimSuffix(line, "\n")))
			b.WriteByte('\n')
			i++
		}
		return b.String()
	}
}

func before(prefix string) func(string) string {
	return each(func(_ int, line string) string { return prefix + line })
}

var stampAtStart = regexp.MustCompile(`^\d{4}-\S+?Z\|`)

// All returns all of them.
func All() []Mangling {
	blanks := regexp.MustCompile(`[ \t]+`)
	// Lines of programs that add the time get that of the last line that has one.
	stamped := func(layout func(stamp, line string) string) func(string) string {
		last := "2026-11-30T14:49:54.194Z"
		return each(func(_ int, line string) string {
			if m := stampAtStart.FindString(line); m != "" {
				last = strings.TrimSuffix(m, "|")
			}
			return layout(last, line)
		})
	}
	return []Mangling{
		{Name: "numbered", Do: each(func(i int, s string) string { return fmt.Sprintf("%6d\t%s", i+1, s) })},
		{Name: "numbered-colon", Do: each(func(i int, s string) string { return fmt.Sprintf("%d:%s", i+1, s) })},
		{Name: "numbered-dot", Do: each(func(i int, s string) string { return fmt.Sprintf("%d. %s", i+1, s) })},
		{Name: "quoted", Do: before("> ")},
		{Name: "quoted-twice", Do: before(">> ")},
		{Name: "dash", Do: before("- ")},
		{Name: "bar", Do: before("| ")},
		{Name: "name-stderr", Do: before("ovs-vswitchd stderr | ")},
		{Name: "two-stamps", Do: stamped(func(at, s string) string { return at + " " + at + " " + s })},
		{Name: "bars-after", Do: each(func(_ int, s string) string { return s + " | |" })},
		{Name: "tabs-slashes", Do: each(func(_ int, s string) string { return "//\t" + strings.ReplaceAll(s, "   ", "\t") })},
		{Name: "crlf", Do: each(func(_ int, s string) string { return s + "\r" })},
		{Name: "wrap80", Do: wrap(80, false)},
		{Name: "wrap80-trimmed", Do: wrap(80, true)},
		{Name: "collapsed", Do: each(func(_ int, s string) string { return strings.TrimRight(blanks.ReplaceAllString(s, " "), " ") })},
		{Name: "unindented", Do: each(func(_ int, s string) string { return strings.TrimLeft(s, " ") })},
		{Name: "syslog", Do: stamped(func(at, s string) string {
			return "Nov 30 " + at[11:19] + " host-1 ovs-vswitchd[1234]: " + s
		})},
		{Name: "syslog-ovs", Do: stamped(func(at, s string) string {
			return "Nov 30 " + at[11:19] + " host-1 ovs-vswitchd: " + stampAtStart.ReplaceAllString(s, "ovs|")
		}), NoPrefix: true},
		{Name: "rsyslog", Do: stamped(func(at, s string) string {
			return strings.TrimSuffix(at, "Z") + "+00:00 host-1 ovs-vswitchd[1234]: " + s
		})},
		{Name: "docker-json", Do: each(func(_ int, s string) string {
			b, _ := json.Marshal(map[string]string{"log": s + "\n", "stream": "stderr", "time": "2026-11-30T14:49:54.200123456Z"})
			return string(b)
		})},
		{Name: "journal-json", Do: each(func(_ int, s string) string {
			b, _ := json.Marshal(map[string]string{"MESSAGE": s, "_PID": "12", "__REALTIME_TIMESTAMP": "1796000000000000"})
			return string(b)
		})},
		{Name: "cri", Do: each(func(_ int, s string) string { return "2026-11-30T14:49:54.200123456Z stderr F " + s })},
		{Name: "cri-parts", Do: each(func(_ int, s string) string {
			const p = "2026-11-30T14:49:54.200123456Z stderr "
			if len(s) > 60 {
				return p + "P " + s[:60] + "\n" + p + "F " + s[60:]
			}
			return p + "F " + s
		})},
		{Name: "escapes", Do: perMessage(func(lines []string) string { return strings.Join(lines, `\n`) + "\n" })},
		{Name: "octal-escapes", Do: perMessage(func(lines []string) string { return strings.Join(lines, "#012") + "\n" })},
		{Name: "colours", Do: each(func(_ int, s string) string {
			return "\x1b[33m" + strings.ReplaceAll(s, "iter", "\x1b[01;31m\x1b[Kiter\x1b[m\x1b[K") + "\x1b[0m"
		})},
		{Name: "nbsp", Do: each(func(_ int, s string) string { return strings.ReplaceAll(s, " ", "\u00a0") })},
		{Name: "bom", Do: func(s string) string { return "\ufeff" + s }},
		{Name: "utf16le", Do: toUTF16(binary.LittleEndian, true), Last: true},
		{Name: "utf16be", Do: toUTF16(binary.BigEndian, false), Last: true},
		{Name: "gzip", Do: Gzip, Last: true},
		{Name: "quoted-printable", Do: toQuotedPrintable},
		{Name: "html", Do: each(func(_ int, s string) string {
			return strings.ReplaceAll(html.EscapeString(s), " ", "&nbsp;") + "<br>"
		})},
		{Name: "newest-first", Do: Reverse},
		{Name: "newest-message-first", Do: func(s string) string {
			var messages []string
			perMessage(func(lines []string) string {
				messages = append(messages, strings.Join(lines, "\n")+"\n")
				return ""
			})(s)
			slices.Reverse(messages)
			return strings.Join(messages, "")
		}},
		{Name: "doubled", Do: each(func(_ int, s string) string { return s + "\n" + s })},
		{Name: "grep-fragments", Do: func(s string) string {
			return regexp.MustCompile(`(?m)^(\S+\|WARN\|Suspicious)`).ReplaceAllString(s, "--\n$1")
		}},
		{Name: "no-prefix", Do: each(func(_ int, s string) string {
			return regexp.MustCompile(`^.*?\|(WARN|INFO)\|`).ReplaceAllString(s, "")
		}), NoPrefix: true},
		{Name: "custom-pattern", Do: each(func(_ int, s string) string {
			return regexp.MustCompile(`^(\d{4}-..-..)T([\d:.]+)Z\|(\d+)\|pmd_perf\((\S+)\)\|(WARN|INFO)\|`).ReplaceAllString(s, "[$1 $2] <$5> $4: pmd_perf: ")
		}), NoPrefix: true},
	}
}

// perMessage does something to a message of several lines.
func perMessage(do func(lines []string) string) func(string) string {
	return func(text string) string {
		var b strings.Builder
		var lines []string
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if strings.Contains(line, "|") && len(lines) > 0 {
				b.WriteString(do(lines))
				lines = nil
			}
			lines = append(lines, line)
		}
		b.WriteString(do(lines))
		return b.String()
	}
}

func wrap(width int, trim bool) func(string) string {
	return each(func(_ int, s string) string {
		var parts []string
		for len(s) > width {
			parts = append(parts, s[:width])
			s = s[width:]
		}
		parts = append(parts, s)
		if trim {
			for i := range parts {
				parts[i] = strings.TrimRight(parts[i], " ")
			}
		}
		return strings.Join(parts, "\n")
	})
}

func toUTF16(order binary.ByteOrder, mark bool) func(string) string {
	return func(s string) string {
		if mark {
			s = "\ufeff" + s
		}
		var b []byte
		for _, u := range utf16.Encode([]rune(s)) {
			var two [2]byte
			order.PutUint16(two[:], u)
			b = append(b, two[:]...)
		}
		return string(b)
	}
}

// Gzip compresses a text.
func Gzip(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(s))
	w.Close()
	return b.String()
}

func toQuotedPrintable(s string) string {
	var b bytes.Buffer
	w := quotedprintable.NewWriter(&b)
	w.Write([]byte(s))
	w.Close()
	return strings.ReplaceAll(b.String(), "\r\n", "\n")
}

// Reverse turns the order of lines around.
func Reverse(s string) string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	slices.Reverse(lines)
	return strings.Join(lines, "\n") + "\n"
}

// Possible reports whether b can be done after a, by programs or by people.
func Possible(a, b Mangling) bool {
	switch {
	case strings.HasPrefix(a.Name, "newest") && strings.HasPrefix(b.Name, "newest"):
		return false // turns rows over, but not messages
	case a.Name == "cri-parts" && (b.Name == "newest-first" || b.Name == "no-prefix" || strings.HasPrefix(b.Name, "wrap") || strings.HasSuffix(b.Name, "escapes")):
		return false // a runtime cuts lines after all else
	case a.Name == "quoted-printable" && b.Name == "unindented":
		return false // takes blanks out of the middle of lines
	case a.Name == "cri" && b.Name == "cri-parts":
		return false // one or the other
	}
	return (!a.Last || b.Name == "gzip") && a.Name != b.Name
}
