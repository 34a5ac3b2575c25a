package ovs

import (
	"bytes"
	"strconv"
	"strings"
)

// StatsReport is what pmd-stats-show prints: a block for every PMD thread and one for
// the main thread.
type StatsReport struct {
	Blocks []StatsBlock
	Unread []Line // lines that could not be read; String doesn't write them
}

// StatsBlock is what pmd-stats-show prints about one thread.
type StatsBlock struct {
	Thread Thread
	Rows   []StatsRow
}

// StatsRow is a line of pmd-stats-show: "  idle cycles: 6964870318 (100.00%)".
type StatsRow struct {
	Label  string // "idle cycles"
	Number string // as printed: "6964870318", or "1.00" for an average
	Note   string // what stands in the parentheses: "100.00%", "1551654/25"; often empty
}

// Value returns the number in the row with that label, as OVS 3.1 labels it, whatever
// version printed the text; ok is false if there is none or if it isn't a whole number.
func (b *StatsBlock) Value(label string) (v uint64, ok bool) {
	for _, l := range [2]string{label, oldStatsLabels[label]} {
		for _, r := range b.Rows {
			if r.Label == l {
				v, err := strconv.ParseUint(r.Number, 10, 64)
				return v, err == nil
			}
		}
	}
	return 0, false
}

// String returns the report as OVS 3.1 prints it.
func (r *StatsReport) String() string {
	var b bytes.Buffer
	for _, block := range r.Blocks {
		b.WriteString(block.Thread.String() + "\n")
		for _, row := range block.Rows {
			b.WriteString("  " + row.Label + ": " + row.Number)
			if row.Note != "" {
				b.WriteString(" (" + row.Note + ")")
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// ParseStats reads the output of pmd-stats-show of any version. Since OVS 4.0 that is
// the one of pmd-perf-show, of which the report has the rows that there were before; the
// exact cycles are not among them. ParseStats returns a [*SyntaxError] if the text is
// not empty and no block can be read from it.
func ParseStats(text string) (*StatsReport, error) {
	if isPerf(text) {
		r, err := ParsePerf(text)
		if err != nil {
			return nil, err
		}
		return statsOfPerf(r), nil
	}
	var r reader
	var blocks []StatsBlock
	r.scan(text, func(_ int, s string) bool {
		if t, ok := parseThread(s); ok {
			blocks = append(blocks, StatsBlock{Thread: t})
			return true
		}
		row, ok := parseStatsRow(s)
		if !ok || len(blocks) == 0 {
			return false
		}
		b := &blocks[len(blocks)-1]
		for _, have := range b.Rows {
			if have.Label == row.Label {
				return false
			}
		}
		b.Rows = append(b.Rows, row)
		return true
	})
	unread, err := r.result(len(blocks) > 0, "pmd-stats-show")
	if err != nil {
		return nil, err
	}
	return &StatsReport{blocks, unread}, nil
}

func parseStatsRow(s string) (row StatsRow, ok bool) {
	label, rest, ok := strings.Cut(s, ":")
	if !ok || !isLabel(label) {
		return row, false
	}
	number, note, hasNote := strings.Cut(rest, "(")
	row = StatsRow{Label: label, Number: strings.Trim(number, blanks)}
	if !isNumber(row.Number) {
		return row, false
	}
	if !hasNote {
		return row, true
	}
	note, ok = strings.CutSuffix(note, ")")
	row.Note = strings.Trim(note, blanks)
	return row, ok && row.Note != "" && strings.Trim(row.Note, "0123456789.%/-naif") == ""
}
