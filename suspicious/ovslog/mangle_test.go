package ovslog

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
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/internal/need"
)

// A mangling is something that people and programs do to a log.
type mangling struct {
	name string
	do   func(string) string
	// What it costs: what of an event can't be told any more.
	costs loss
	last  bool // makes no text, so that nothing can be done after it
}

type loss int

const (
	noPrefix loss = 1 << iota // thread, time, number
)

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

func manglings() []mangling {
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
	return []mangling{
		{name: "numbered", do: each(func(i int, s string) string { return fmt.Sprintf("%6d\t%s", i+1, s) })},
		{name: "numbered-colon", do: each(func(i int, s string) string { return fmt.Sprintf("%d:%s", i+1, s) })},
		{name: "numbered-dot", do: each(func(i int, s string) string { return fmt.Sprintf("%d. %s", i+1, s) })},
		{name: "quoted", do: before("> ")},
		{name: "quoted-twice", do: before(">> ")},
		{name: "dash", do: before("- ")},
		{name: "bar", do: before("| ")},
		{name: "name-stderr", do: before("ovs-vswitchd stderr | ")},
		{name: "two-stamps", do: stamped(func(at, s string) string { return at + " " + at + " " + s })},
		{name: "bars-after", do: each(func(_ int, s string) string { return s + " | |" })},
		{name: "tabs-slashes", do: each(func(_ int, s string) string { return "//\t" + strings.ReplaceAll(s, "   ", "\t") })},
		{name: "crlf", do: each(func(_ int, s string) string { return s + "\r" })},
		{name: "wrap80", do: wrap(80, false)},
		{name: "wrap80-trimmed", do: wrap(80, true)},
		{name: "collapsed", do: each(func(_ int, s string) string { return strings.TrimRight(blanks.ReplaceAllString(s, " "), " ") })},
		{name: "unindented", do: each(func(_ int, s string) string { return strings.TrimLeft(s, " ") })},
		{name: "syslog", do: stamped(func(at, s string) string {
			return "Nov 30 " + at[11:19] + " host-1 ovs-vswitchd[1234]: " + s
		})},
		{name: "syslog-ovs", do: stamped(func(at, s string) string {
			return "Nov 30 " + at[11:19] + " host-1 ovs-vswitchd: " + stampAtStart.ReplaceAllString(s, "ovs|")
		}), costs: noPrefix},
		{name: "rsyslog", do: stamped(func(at, s string) string {
			return strings.TrimSuffix(at, "Z") + "+00:00 host-1 ovs-vswitchd[1234]: " + s
		})},
		{name: "docker-json", do: each(func(_ int, s string) string {
			b, _ := json.Marshal(map[string]string{"log": s + "\n", "stream": "stderr", "time": "2026-11-30T14:49:54.200123456Z"})
			return string(b)
		})},
		{name: "journal-json", do: each(func(_ int, s string) string {
			b, _ := json.Marshal(map[string]string{"MESSAGE": s, "_PID": "12", "__REALTIME_TIMESTAMP": "1796000000000000"})
			return string(b)
		})},
		{name: "cri", do: each(func(_ int, s string) string { return "2026-11-30T14:49:54.200123456Z stderr F " + s })},
		{name: "cri-parts", do: each(func(_ int, s string) string {
			const p = "2026-11-30T14:49:54.200123456Z stderr "
			if len(s) > 60 {
				return p + "P " + s[:60] + "\n" + p + "F " + s[60:]
			}
			return p + "F " + s
		})},
		{name: "escapes", do: perMessage(func(lines []string) string { return strings.Join(lines, `\n`) + "\n" })},
		{name: "octal-escapes", do: perMessage(func(lines []string) string { return strings.Join(lines, "#012") + "\n" })},
		{name: "colours", do: each(func(_ int, s string) string {
			return "\x1b[33m" + strings.ReplaceAll(s, "iter", "\x1b[01;31m\x1b[Kiter\x1b[m\x1b[K") + "\x1b[0m"
		})},
		{name: "nbsp", do: each(func(_ int, s string) string { return strings.ReplaceAll(s, " ", "\u00a0") })},
		{name: "bom", do: func(s string) string { return "\ufeff" + s }},
		{name: "utf16le", do: toUTF16(binary.LittleEndian, true), last: true},
		{name: "utf16be", do: toUTF16(binary.BigEndian, false), last: true},
		{name: "gzip", do: compress, last: true},
		{name: "quoted-printable", do: toQuotedPrintable},
		{name: "html", do: each(func(_ int, s string) string {
			return strings.ReplaceAll(html.EscapeString(s), " ", "&nbsp;") + "<br>"
		})},
		{name: "newest-first", do: reverse},
		{name: "newest-message-first", do: func(s string) string {
			var messages []string
			perMessage(func(lines []string) string {
				messages = append(messages, strings.Join(lines, "\n")+"\n")
				return ""
			})(s)
			slices.Reverse(messages)
			return strings.Join(messages, "")
		}},
		{name: "doubled", do: each(func(_ int, s string) string { return s + "\n" + s })},
		{name: "grep-fragments", do: func(s string) string {
			return regexp.MustCompile(`(?m)^(\S+\|WARN\|Suspicious)`).ReplaceAllString(s, "--\n$1")
		}},
		{name: "no-prefix", do: each(func(_ int, s string) string {
			return regexp.MustCompile(`^.*?\|(WARN|INFO)\|`).ReplaceAllString(s, "")
		}), costs: noPrefix},
		{name: "custom-pattern", do: each(func(_ int, s string) string {
			return regexp.MustCompile(`^(\d{4}-..-..)T([\d:.]+)Z\|(\d+)\|pmd_perf\((\S+)\)\|(WARN|INFO)\|`).ReplaceAllString(s, "[$1 $2] <$5> $4: pmd_perf: ")
		}), costs: noPrefix},
		{name: "own-form", do: toOwnForm, costs: noPrefix},
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

func compress(s string) string {
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

func reverse(s string) string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	slices.Reverse(lines)
	return strings.Join(lines, "\n") + "\n"
}

// toOwnForm writes the events as our own recorder would.
func toOwnForm(s string) string {
	r := NewReader(strings.NewReader(s))
	var b []byte
	for rec := range r.Records() {
		if ev, ok := rec.(*Event); ok {
			ev.Began = ev.Time
			b = ev.Append(b, OneMessage)
		}
	}
	return string(b)
}

// essence is what must be the same whatever was done to a log, in a line of text an
// event.
func essence(t testing.TB, text string, costs loss) []string {
	t.Helper()
	events, _, _ := read(t, text)
	var all []string
	for _, ev := range events {
		var b strings.Builder
		if costs&noPrefix == 0 {
			fmt.Fprintf(&b, "%s %s %d ", ev.Thread, ev.Time.Format(stampLayout), ev.Seq)
		}
		fmt.Fprint(&b, ev.HasHeader, " ", ev.Reasons, ev.Iteration, " ", ev.Duration, " ", ev.Culprit, ev.Table)
		all = append(all, b.String())
	}
	slices.Sort(all)
	return all
}

// excerpts returns beginnings of samples that are short but have all shapes.
func excerpts(t testing.TB) map[string]string {
	logs := samples(t)
	for name, text := range logs {
		const lines = 60
		n := 0
		for i := range text {
			if text[i] == '\n' {
				if n++; n >= lines && strings.HasPrefix(text[i+1:], "2026-") && strings.Contains(text[i:min(len(text), i+100)], "Suspicious") {
					logs[name] = text[:i+1]
					break
				}
			}
		}
	}
	return logs
}

func TestManglings(t *testing.T) {
	logs := samples(t)
	if !need.Long() {
		logs = excerpts(t)
	}
	for _, m := range manglings() {
		t.Run(m.name, func(t *testing.T) {
			for _, name := range names(logs) {
				text := logs[name]
				want := essence(t, text, m.costs)
				got := essence(t, m.do(text), m.costs)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%.1500s", name, diff)
				}
			}
		})
	}
}

// TestPairs does everything after everything else: to beginnings of all samples in
// the long version; to that of one, and only some of the pairs, in the short.
func TestPairs(t *testing.T) {
	logs := excerpts(t)
	if !need.Long() {
		for _, name := range names(logs) {
			if name != "two-pmds" {
				delete(logs, name)
			}
		}
	}
	const every = 4 // a quarter of the pairs
	for i, a := range manglings() {
		for k, b := range manglings() {
			if !need.Long() && (i+k)%every != 0 {
				continue
			}
			if strings.HasPrefix(a.name, "newest") && strings.HasPrefix(b.name, "newest") {
				continue // turns rows over, but not messages
			}
			if a.name == "cri-parts" && (b.name == "newest-first" || b.name == "no-prefix" || strings.HasPrefix(b.name, "wrap") || strings.HasSuffix(b.name, "escapes")) {
				continue // a runtime cuts lines after all else
			}
			if a.name == "quoted-printable" && b.name == "unindented" {
				continue // takes blanks out of the middle of lines
			}
			if a.name == "cri" && b.name == "cri-parts" {
				continue // one or the other
			}
			if a.last && b.name != "gzip" || a.name == b.name {
				continue
			}
			t.Run(a.name+"/"+b.name, func(t *testing.T) {
				for _, name := range names(logs) {
					text := logs[name]
					want := essence(t, text, a.costs|b.costs)
					got := essence(t, b.do(a.do(text)), a.costs|b.costs)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s (-want +got):\n%.1500s", name, diff)
					}
				}
			})
		}
	}
}
