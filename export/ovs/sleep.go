package ovs

import (
	"bytes"
	"strconv"
	"strings"
)

// SleepReport is what pmd-sleep-show prints since OVS 3.3: how long PMD threads may
// sleep when they have little to do.
type SleepReport struct {
	Default *uint64 // in us, for PMDs without a value of their own; nil if the text doesn't say
	Blocks  []SleepBlock
	Unread  []Line // lines that could not be read; String doesn't write them
}

// SleepBlock is the longest sleep of one thread.
type SleepBlock struct {
	Thread   Thread
	MaxSleep *uint64 // in us; nil if the text doesn't say
}

// String returns the report as OVS 3.3 prints it.
func (r *SleepReport) String() string {
	var b bytes.Buffer
	line := func(name string, us *uint64) {
		if us != nil {
			b.WriteString(name + " ")
			pad(&b, strconv.FormatUint(*us, 10), 4)
			b.WriteString(" us\n")
		}
	}
	line(sleepDefault, r.Default)
	for _, block := range r.Blocks {
		b.WriteString(block.Thread.String() + "\n")
		line("  "+sleepMax, block.MaxSleep)
	}
	return b.String()
}

const (
	sleepDefault = "Default max sleep:"
	sleepMax     = "max sleep:"
)

// ParseSleep reads the output of pmd-sleep-show. It returns a [*SyntaxError] if the
// text is not empty and nothing can be read from it.
func ParseSleep(text string) (*SleepReport, error) {
	var r reader
	var report SleepReport
	r.scan(text, func(_ int, s string) bool { return report.line(s) })
	unread, err := r.result(len(report.Blocks) > 0 || report.Default != nil, "pmd-sleep-show")
	if err != nil {
		return nil, err
	}
	report.Unread = unread
	return &report, nil
}

func (r *SleepReport) line(s string) bool {
	if t, ok := parseThread(s); ok {
		r.Blocks = append(r.Blocks, SleepBlock{Thread: t})
		return true
	}
	if len(r.Blocks) == 0 {
		return r.Default == nil && takeSleep(s, sleepDefault, &r.Default)
	}
	b := &r.Blocks[len(r.Blocks)-1]
	return b.MaxSleep == nil && takeSleep(s, sleepMax, &b.MaxSleep)
}

// takeSleep reads "NAME N us" into *us; it returns false if the line isn't that.
func takeSleep(s, name string, us **uint64) bool {
	s, named := strings.CutPrefix(s, name)
	s, ended := strings.CutSuffix(s, "us")
	n, err := strconv.ParseUint(strings.Trim(s, blanks), 10, 64)
	if !named || !ended || err != nil {
		return false
	}
	*us = &n
	return true
}
