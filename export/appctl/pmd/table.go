package pmd

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/perf"
)

// identity names a PMD in the JSON of a command of our own.
type identity struct {
	Name string `json:"name"`
	Core int    `json:"core"`
	NUMA int    `json:"numa"`
}

func identify(r *perf.Recorder) identity { return identity{r.Name(), r.Core(), r.NUMA()} }

// identityOf is the same for what was recorded of a PMD.
func identityOf(t *ovs.Recorded) identity { return identity{t.Name, *t.Core, *t.NUMA} }

// table is a text of columns. Numbers stand at the right of theirs, and so does all
// else but the columns whose title begins with "-", which are names.
type table struct {
	rows [][]string
	left []bool
}

func newTable(titles ...string) *table {
	t := &table{left: make([]bool, len(titles))}
	head := make([]string, len(titles))
	for i, title := range titles {
		head[i], t.left[i] = strings.CutPrefix(title, "-")
	}
	t.row(head...)
	return t
}

// row adds a row with a cell for each column.
func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) String() string {
	width := make([]int, len(t.left))
	for _, row := range t.rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			blanks := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if t.left[i] {
				b.WriteString(cell + blanks)
			} else {
				b.WriteString(blanks + cell)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// absent is the cell of what is not known.
const absent = "-"

func count(n uint64) string { return strconv.FormatUint(n, 10) }

func decimals(v float64, n int) string { return strconv.FormatFloat(v, 'f', n, 64) }

func optional(v *uint64) string {
	if v == nil {
		return absent
	}
	return count(*v)
}

// micros turns ticks into microseconds: what can't be turned is absent.
type micros float64 // ticks in a microsecond, 0 if not known

func microsOf(hz float64) micros { return micros(hz / 1e6) }

func (m micros) of(ticks float64) string {
	if m == 0 {
		return absent
	}
	return decimals(ticks/float64(m), 3)
}

func (m micros) optional(ticks *uint64) string {
	if ticks == nil {
		return absent
	}
	return m.of(float64(*ticks))
}

func (m micros) mean(ticks *float64) string {
	if ticks == nil {
		return absent
	}
	return m.of(*ticks)
}

// moment is a time of day and date in UTC.
func moment(t time.Time) string {
	if t.IsZero() {
		return absent
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}
