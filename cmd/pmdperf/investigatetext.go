package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pmdperf/pmdperf/internal/human"
	"github.com/pmdperf/pmdperf/suspicious/investigate"
)

// What of an investigation fits a screen.
const (
	shownFindings = 2 // whose details are told
	shownTitles   = 8
	shownEvidence = 3
	shownSteps    = 3
	shownNotes    = 4
	shownPMDs     = 6
)

// investigationText tells what an investigation came to: the summary first, then the
// details of the most important findings, or of all.
func investigationText(r *investigate.Result, all bool) string {
	p := newPage()
	p.summary(r)
	n := shownFindings
	if all {
		n = len(r.Findings)
	}
	for i := range r.Findings[:min(n, len(r.Findings))] {
		p.WriteByte('\n')
		p.findingText(i+1, &r.Findings[i], all)
	}
	if n < len(r.Findings) {
		fmt.Fprintf(p, "\n%s\n", p.faint.Render("--all tells as much about the other findings"))
	}
	p.rest(r, all)
	return p.String()
}

// summary says what was looked at, and what was found in a line each.
func (p *page) summary(r *investigate.Result) {
	var reported, unreported uint64
	for i := range r.PMDs {
		reported += r.PMDs[i].Reported
		unreported += r.PMDs[i].Unreported
	}
	head := fmt.Sprintf("%s, %s", plural(len(r.Sources), "file"), plural(int(reported), "suspicious iteration"))
	if unreported > 0 {
		head += fmt.Sprintf(" and %d unreported", unreported)
	}
	if len(r.PMDs) > 0 {
		head += " of " + plural(len(r.PMDs), "PMD")
	}
	fmt.Fprintf(p, "%s\n", p.title.Render(head))
	if !r.From.IsZero() {
		fmt.Fprintf(p, "  %s to %s, %s\n", stamp(r.From), stamp(r.To), human.Duration(r.To.Sub(r.From).Seconds()))
	}
	p.pmds(r.PMDs)
	for i := range r.Findings {
		if i == shownTitles && len(r.Findings) > shownTitles+1 {
			fmt.Fprintf(p, "  and %d findings more\n", len(r.Findings)-i)
			break
		}
		f := &r.Findings[i]
		title := f.Title
		if i == 0 {
			title = p.bad.Render(title)
		}
		fmt.Fprintf(p, "%2d. %s\n", i+1, title)
	}
}

// pmds has a line for each PMD, the one that lost most first.
func (p *page) pmds(pmds []investigate.PMD) {
	if len(pmds) < 2 {
		return
	}
	pmds = slices.DeleteFunc(slices.Clone(pmds), func(m investigate.PMD) bool { return m.Reported+m.Unreported == 0 })
	slices.SortStableFunc(pmds, func(x, y investigate.PMD) int { return -cmp.Compare(x.Stalled, y.Stalled) })
	for i := range pmds {
		if i == shownPMDs {
			fmt.Fprintf(p, "  and %d PMDs more\n", len(pmds)-i)
			return
		}
		m := &pmds[i]
		name := m.Thread
		if name == "" {
			name = "no name"
		}
		share := ""
		if m.Share > 0 {
			share = fmt.Sprintf(", %s %% of the time", human.Percent(100*m.Share))
		}
		fmt.Fprintf(p, "  %s: %s, %s in all%s, the longest %s\n", p.label.Render(fmt.Sprintf("%-15s", name)),
			plural(int(m.Reported+m.Unreported), "stall"), human.Duration(m.Stalled/1e6), share, human.Duration(m.Longest/1e6))
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// stamp writes a time; the year 0 stands for one that isn't known.
func stamp(t time.Time) string {
	if t.Year() == 0 {
		return t.Format("Jan _2 15:04:05.000")
	}
	return t.Format("2006-01-02 15:04:05.000")
}

func (p *page) findingText(n int, f *investigate.Finding, all bool) {
	fmt.Fprintf(p, "%s\n", p.title.Render(fmt.Sprintf("%d. %s", n, f.Title)))
	for _, s := range f.Text {
		p.wrapped("   ", s)
	}
	if l := lossText(f.Loss); l != "" {
		p.wrapped("   ", l)
	}
	p.wrapped("   ", fmt.Sprintf("Confidence: %s, as %s.", f.Confidence, f.Because))
	evidence, steps := f.Evidence, f.Next
	if !all {
		evidence, steps = evidence[:min(len(evidence), shownEvidence)], steps[:min(len(steps), shownSteps)]
	}
	for _, e := range evidence {
		fmt.Fprintf(p, "   %s %s\n", p.faint.Render(where(e.Place)), e.Text)
	}
	for _, s := range steps {
		if s.Command != "" {
			fmt.Fprintf(p, "   %s %s\n", p.label.Render("$"), p.label.Render(s.Command))
			fmt.Fprintf(p, "     %s\n", s.Why)
			continue
		}
		p.wrapped("   ", s.Why)
	}
}

// lossText says how many packets stalls can have cost.
func lossText(l *investigate.Loss) string {
	if l == nil {
		return ""
	}
	if l.Why != "" && l.Packets == 0 {
		return "No estimate of lost packets: " + l.Why + "."
	}
	capacity := fmt.Sprintf("what the rx queues hold, %s", human.Count(l.Capacity))
	if l.Assumed {
		capacity += " assumed"
	}
	if l.Packets == 0 {
		return fmt.Sprintf("No packets need have been lost: at %s packets/s around the stalls less arrives in one than %s.", human.Short(l.Rate), capacity)
	}
	s := fmt.Sprintf("Up to %s packets can have been lost: %s packets/s arrive around the stalls, less %s", human.Count(l.Packets), human.Short(l.Rate), capacity)
	if l.Why != "" {
		s += "; " + l.Why
	}
	return s + "."
}

func where(at investigate.Place) string {
	switch {
	case at.Source == "":
		return ""
	case at.Line == 0:
		return at.Source + ":"
	}
	return fmt.Sprintf("%s:%d:", at.Source, at.Line)
}

// wrapped writes a text in lines of at most 96 characters.
func (p *page) wrapped(indent, text string) {
	const width = 96
	line := indent
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > width && len(line) > len(indent) {
			fmt.Fprintf(p, "%s\n", line)
			line = indent
		}
		if len(line) > len(indent) {
			line += " "
		}
		line += word
	}
	fmt.Fprintf(p, "%s\n", line)
}

// rest says under which thresholds this was found, and what could not be read.
func (p *page) rest(r *investigate.Result, all bool) {
	p.WriteByte('\n')
	for i, t := range r.Thresholds {
		if i == shownNotes && !all {
			fmt.Fprintf(p, "and %d times more\n", len(r.Thresholds)-i)
			break
		}
		s := "thresholds: the log was off"
		switch {
		case t.Inferred:
			s = fmt.Sprintf("threshold: %d us at most, which is the shortest that was reported; no line says it", t.Micros)
		case t.On && t.QueueFill > 0:
			s = fmt.Sprintf("thresholds: %d us, %d packets in a queue", t.Micros, t.QueueFill)
		case t.On:
			s = fmt.Sprintf("threshold: %d us", t.Micros)
		}
		if t.Source != "" {
			s += fmt.Sprintf(" (%s)", strings.TrimSuffix(where(t.Place), ":"))
		}
		fmt.Fprintln(p, p.faint.Render(s))
	}
	if r.LeftOut > 0 {
		fmt.Fprintln(p, p.faint.Render(fmt.Sprintf("%d shorter stalls are counted, but not told one by one", r.LeftOut)))
	}
	for _, s := range r.Sources {
		if s.Unread == 0 {
			continue
		}
		fmt.Fprintf(p, "%s\n", p.bad.Render(fmt.Sprintf("%s: %s could not be read", s.Name, plural(s.Unread, "line"))))
		for i, l := range s.Lost {
			if i == shownEvidence && !all {
				break
			}
			fmt.Fprintf(p, "   %s %s\n", p.faint.Render(fmt.Sprintf("line %d:", l.Line)), printable(l.Text))
		}
	}
}

// printable shows a text of any origin on a terminal, in one line.
func printable(s string) string {
	const most = 80
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '\ufffd'
		}
		return r
	}, strings.TrimSpace(s))
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return s
}
