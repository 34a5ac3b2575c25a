package evidence

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/suspicious/investigate"
)

// The commands that print the same headings, by what stands below.
const (
	perfShow  = "pmd-perf-show"
	statsShow = "pmd-stats-show"
	rxqShow   = "pmd-rxq-show"
	sleepShow = "pmd-sleep-show"
	coverage  = "coverage/show"
)

// A part is what one command printed.
type part struct {
	command string
	line    int // of its first line, from 1 on
	lines   []string
}

// show reads a section.
func (c *Collector) show(src int, sec *section) {
	for _, p := range split(sec) {
		text := strings.Join(p.lines, "\n")
		var unread []ovs.Line
		switch p.command {
		case perfShow:
			r, err := ovs.ParsePerf(text)
			if err != nil {
				continue
			}
			unread = r.Unread
			for i := range r.Blocks {
				c.Case.AddMeasured(src, fromPerf(&r.Blocks[i], p.line))
			}
		case statsShow:
			r, err := ovs.ParseStats(text)
			if err != nil {
				continue
			}
			unread = r.Unread
			for i := range r.Blocks {
				c.Case.AddMeasured(src, fromStats(&r.Blocks[i], p.line))
			}
		case rxqShow:
			r, err := ovs.ParseRxq(text)
			if err != nil {
				continue
			}
			unread = r.Unread
			for i := range r.Blocks {
				c.Case.AddMeasured(src, fromRxq(&r.Blocks[i], p.line, r.Seconds))
			}
		case sleepShow:
			r, err := ovs.ParseSleep(text)
			if err != nil {
				continue
			}
			unread = r.Unread
			for i := range r.Blocks {
				if b := &r.Blocks[i]; b.MaxSleep != nil {
					c.Case.AddNote(src, investigate.Note{
						Place: investigate.Place{Line: p.line}, Topic: investigate.TopicSleep,
						Text: fmt.Sprintf("core %d may sleep up to %d us", b.Thread.Core, *b.MaxSleep),
					})
				}
			}
			c.Case.Found(src, sleepShow)
		case coverage:
			r, err := ovs.ParseCoverage(text)
			if err != nil {
				continue
			}
			unread = r.Unread
			c.Case.AddMeasured(src, fromCoverage(r, p.line))
		default:
			continue
		}
		s := c.Case.Source(src)
		for _, l := range unread {
			lost(s, p.line-1+l.Number, []byte(l.Text))
		}
	}
}

var number = regexp.MustCompile(`^\s*\d+([:.)]|\s|$)`)

// clean undoes what was done to every line of a section: ends, colours, quotes, numbers.
func clean(text []byte) []string {
	text = bytes.ReplaceAll(text, []byte("\u00a0"), []byte(" "))
	text = colours.ReplaceAll(text, nil)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	prefix := ""
	numbered := false
	for i, line := range lines {
		line = strings.TrimRight(line, "\r \t")
		line = strings.TrimSuffix(line, " | |")
		line = strings.TrimSuffix(line, "<br>")
		lines[i] = strings.TrimRight(line, " ")
		for _, mark := range [...]string{threadMark, mainMark, eventMark} {
			if at := strings.Index(line, mark); at > 0 && prefix == "" {
				prefix = line[:at]
				numbered = number.MatchString(prefix)
			}
		}
	}
	if strings.TrimSpace(prefix) == "" {
		return lines
	}
	for i, line := range lines {
		switch {
		case numbered:
			if m := number.FindStringIndex(line); m != nil {
				lines[i] = line[m[1]:]
			}
		case strings.HasPrefix(line, prefix):
			lines[i] = line[len(prefix):]
		case strings.TrimRight(prefix, " ") == line:
			lines[i] = ""
		}
	}
	return lines
}

var colours = regexp.MustCompile("\x1b\\[[0-9;]*[mK]")

// split parts a section by commands.
func split(sec *section) (parts []part) {
	lines := clean(sec.text)
	relay(lines)
	start := 0 // of the block, with what stands above its heading
	headings := 0
	end := func(to int) {
		if headings == 0 || to == start {
			return
		}
		block := lines[start:to]
		command := commandOf(block)
		if n := len(parts); n > 0 && (parts[n-1].command == command || command == "") {
			parts[n-1].lines = append(parts[n-1].lines, block...)
		} else {
			parts = append(parts, part{command, sec.line + start, block})
		}
		start = to
	}
	for i, line := range lines {
		first := i
		if !strings.Contains(line, threadMark) && strings.TrimSpace(line) != mainMark && !strings.HasPrefix(line, eventMark) {
			continue
		}
		for first > start && i-first < lookBack && isPreamble([]byte(lines[first-1]), 0) {
			first--
		}
		end(first)
		headings++
	}
	end(len(lines))
	return parts
}

var (
	titles = regexp.MustCompile(`(?:max )?vhost qlen|[a-z]+/[a-z]+`)
	cells  = regexp.MustCompile(`^[ \t]*(?:(?:\d+(?:\.\d+)?|>|-?nan)(?:[ \t]+|$)){2,}$`)
)

// relay puts the columns of histograms back where they were, if white space was lost.
func relay(lines []string) {
	const wall, pair = 10, 23 // widths of columns
	inside := false
	columns := 0
	for i, line := range lines {
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "Histograms"):
			inside = true
			continue
		case !inside || len(words) == 0:
			if len(words) == 0 {
				inside = false
			}
			continue
		}
		var b strings.Builder
		b.WriteString("   ")
		found := titles.FindAllString(line, -1)
		switch {
		case len(found) > 0 && len(found) <= 7 && words[0] == "cycles/it":
			columns = len(found)
			for _, t := range found {
				fmt.Fprintf(&b, "%-*s", pair, t)
			}
		case cells.MatchString(line) && len(words) == 2*columns:
			for k := 0; k < len(words); k += 2 {
				fmt.Fprintf(&b, "%-*s%-*s", wall, words[k], pair-wall, words[k+1])
			}
		case cells.MatchString(line) && len(words) == columns:
			for _, w := range words {
				fmt.Fprintf(&b, "%-*s", pair, w)
			}
		default:
			continue
		}
		if !strings.Contains(strings.TrimSpace(line), "  ") {
			lines[i] = b.String()
		}
	}
}

// commandOf returns what printed a block.
func commandOf(block []string) string {
	for _, line := range block {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, eventMark):
			return coverage
		case strings.HasPrefix(line, "Iterations:"), strings.HasPrefix(line, "Measurement duration:"):
			return perfShow
		case strings.HasPrefix(line, "isolated"), strings.HasPrefix(line, "port:"), strings.HasPrefix(line, "Displaying last"):
			return rxqShow
		case strings.Contains(line, "hits:"), strings.HasPrefix(line, "packets received:"), strings.HasPrefix(line, "polling cycles:"), strings.HasPrefix(line, "idle cycles:"):
			return statsShow
		case strings.HasPrefix(line, "max sleep:"):
			return sleepShow
		}
	}
	return ""
}

func thread(m *investigate.Measured, t ovs.Thread) {
	m.Main, m.NUMA, m.Core = t.Main, t.NUMA, t.Core
	if t.Main {
		m.NUMA, m.Core = -1, -1
	}
}

func fromPerf(b *ovs.PerfBlock, line int) investigate.Measured {
	m := investigate.Measured{Command: perfShow, Clock: b.Time}
	m.Line = line
	thread(&m, b.Thread)
	m.Seconds, _ = strconv.ParseFloat(b.Duration, 64)
	value := func(label string) *uint64 {
		if v, ok := b.Value(label); ok {
			return &v
		}
		return nil
	}
	figure := func(label, unit string) *float64 {
		if f, ok := b.Figure(label, unit); ok {
			if v := f.Float(); isNumber(v) {
				return &v
			}
		}
		return nil
	}
	either := func(labels ...string) *uint64 {
		for _, l := range labels {
			if v := value(l); v != nil {
				return v
			}
		}
		return nil
	}
	const used, idle, busy = "Used TSC cycles", "idle iterations", "busy iterations"
	m.Iterations = value("Iterations")
	m.UsedCycles = either(used, "Cycles")
	m.UsedPercent = figure(used, "% of total cycles")
	m.IdleIterations, m.BusyIterations = either(idle, "idle"), either(busy, "busy")
	m.IdlePercent, m.BusyPercent = figure(idle, "% of used cycles"), figure(busy, "% of used cycles")
	m.SleepIterations, m.SleepMicros = value("sleep iterations"), value("Sleep time (us)")
	m.RxPackets, m.TxPackets, m.TxBatches = value("Rx packets"), value("Tx packets"), value("Tx batches")
	m.CyclesPerPacket = figure("Rx packets", "cycles/pkt")
	m.Passes, m.Upcalls, m.LostUpcalls = value("Datapath passes"), value("Upcalls"), value("Lost upcalls")
	m.MicrosPerUpcall = figure("Upcalls", "us/upcall")
	// The frequency is given by the time and the share of it that was used.
	if m.UsedCycles != nil && m.UsedPercent != nil && *m.UsedPercent > 1 && m.Seconds > 0.5 {
		m.Hz = float64(*m.UsedCycles) / (*m.UsedPercent / 100) / m.Seconds
	}
	for i := range b.Histograms {
		h := &b.Histograms[i]
		out := investigate.Histogram{Title: h.Title, Walls: h.Walls, Counts: h.Counts}
		out.Percentiles = out.Quantiles(50, 90, 99, 99.9)
		m.Histograms = append(m.Histograms, out)
	}
	if t := b.Iterations; t != nil {
		for i := len(t.Rows) - 1; i >= 0; i-- {
			m.History = append(m.History, investigate.Row{
				Iteration: cell(t, i, "iter"), Cycles: cell(t, i, "cycles"), Packets: cell(t, i, "packets"),
				CyclesPerPacket: cell(t, i, "cycles/pkt"), PacketsPerBatch: cell(t, i, "pkts/batch"), Fill: cell(t, i, "vhost qlen"),
				Upcalls: cell(t, i, "upcalls"), CyclesPerUpcall: cell(t, i, "cycles/upcall"),
			})
		}
	}
	if t := b.Milliseconds; t != nil {
		for i := len(t.Rows) - 1; i >= 0; i-- {
			r := investigate.Milli{
				Number: cell(t, i, "ms"), Iterations: cell(t, i, "iterations"), CyclesPerIter: cell(t, i, "cycles/it"),
				Packets: cell(t, i, "Kpps"), CyclesPerPacket: cell(t, i, "cycles/pkt"), PacketsPerBatch: cell(t, i, "pkts/batch"),
				Fill: cell(t, i, "vhost qlen"), Upcalls: cell(t, i, "upcalls"), CyclesPerUpcall: cell(t, i, "cycles/upcall"),
			}
			r.Cycles = r.Iterations * r.CyclesPerIter
			m.Milliseconds = append(m.Milliseconds, r)
		}
	}
	return m
}

func cell(t *ovs.Table, i int, column string) uint64 {
	v, _ := t.Uint(i, column)
	return v
}

func fromStats(b *ovs.StatsBlock, line int) investigate.Measured {
	m := investigate.Measured{Command: statsShow}
	m.Line = line
	thread(&m, b.Thread)
	value := func(labels ...string) *uint64 {
		for _, l := range labels {
			if v, ok := b.Value(l); ok {
				return &v
			}
		}
		return nil
	}
	m.RxPackets = value("packets received")
	m.Upcalls = value("miss with success upcall", "miss")
	m.LostUpcalls = value("miss with failed upcall", "lost")
	idle, busy := value("idle cycles", "polling cycles"), value("processing cycles")
	if idle != nil && busy != nil {
		if all := float64(*idle) + float64(*busy); all > 0 {
			sum := *idle + *busy
			i, p := 100*float64(*idle)/all, 100*float64(*busy)/all
			m.UsedCycles, m.IdlePercent, m.BusyPercent = &sum, &i, &p
		}
		if m.RxPackets != nil && *m.RxPackets > 0 {
			v := float64(*busy) / float64(*m.RxPackets)
			m.CyclesPerPacket = &v
		}
	}
	return m
}

func fromCoverage(r *ovs.CoverageReport, line int) investigate.Measured {
	m := investigate.Measured{Command: coverage, Core: -1, NUMA: -1}
	m.Line = line
	for _, e := range r.Events {
		c := investigate.Count{Name: e.Name, Total: e.Total}
		c.PerSecond, _ = strconv.ParseFloat(e.Last, 64)
		c.PerMinute, _ = strconv.ParseFloat(e.Minute, 64)
		if !isNumber(c.PerSecond) || !isNumber(c.PerMinute) {
			c.PerSecond, c.PerMinute = 0, 0
		}
		m.Events = append(m.Events, c)
	}
	return m
}

func isNumber(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func fromRxq(b *ovs.RxqBlock, line, seconds int) investigate.Measured {
	m := investigate.Measured{Command: rxqShow, Seconds: float64(seconds)}
	m.Line = line
	thread(&m, b.Thread)
	percent := func(u ovs.Usage) *float64 {
		if !u.Known {
			return nil
		}
		v := float64(u.Percent)
		return &v
	}
	for _, q := range b.Queues {
		m.Queues = append(m.Queues, investigate.Queue{Port: q.Port, ID: q.Queue, Enabled: q.Enabled, Percent: percent(q.Usage)})
	}
	if b.Overhead != nil {
		m.Overhead = percent(*b.Overhead)
	}
	return m
}
