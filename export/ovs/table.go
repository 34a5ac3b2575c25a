package ovs

import (
	"bytes"
	"strconv"
)

// Table is an iteration or millisecond history.
type Table struct {
	Columns []string   // titles; the first is "iter" or "ms"
	Rows    [][]string // one cell for every column, as printed
}

// Uint returns the number in the column with that title of row i; ok is false if there
// is no such column or no number in it.
func (t *Table) Uint(i int, column string) (v uint64, ok bool) {
	for c, title := range t.Columns {
		if title == column {
			v, err := strconv.ParseUint(t.Rows[i][c], 10, 64)
			return v, err == nil
		}
	}
	return 0, false
}

// Titles of the columns that the histories may have besides those of the original.
// Their cells are text, an absent one a dash.
const (
	columnClock  = "wall clock"
	columnTx     = "tx"
	columnSlept  = "slept us"
	columnLasted = "lasted us"
	columnQueue  = "slowest queue"
	columnMark   = "mark"
)

// isExtra reports whether a column is none of the original's.
func isExtra(column string) bool {
	switch column {
	case columnClock, columnTx, columnSlept, columnLasted, columnQueue, columnMark:
		return true
	}
	return false
}

// historyTitles returns the titles of a history if the line holds them.
func historyTitles(line string) []string {
	cols := columns(line)
	if len(cols) < 2 || cols[0] != "iter" && cols[0] != "ms" {
		return nil
	}
	for _, c := range cols {
		if isDigits(c) {
			return nil
		}
	}
	return cols
}

// add reads a row; it returns false if the line doesn't fit the titles.
func (t *Table) add(line string) bool {
	cells := words(line)
	if len(cells) != len(t.Columns) {
		return false
	}
	for i, cell := range cells {
		if !isExtra(t.Columns[i]) && !isDigits(cell) {
			return false
		}
	}
	t.Rows = append(t.Rows, cells)
	return true
}

// width returns the width of a column's title and of its cells.
func width(column string) (title, cell int) {
	switch column {
	case "iter":
		return 17, 17
	case "ms":
		return 12, 12
	case columnClock, columnQueue:
		return 15, 15
	}
	return 10, 11
}

// write appends the table's text. Three blanks at least follow a title, and two a
// cell that is one wider than its title, so that no value touches the next.
func (t *Table) write(b *bytes.Buffer) {
	for _, column := range t.Columns {
		w, _ := width(column)
		b.WriteString("   ")
		pad(b, column, -w)
	}
	b.WriteByte('\n')
	for _, row := range t.Rows {
		gap := 3
		for i, cell := range row {
			tw, w := width(t.Columns[i])
			pad(b, "", gap)
			pad(b, cell, -w)
			gap = 3 - (w - tw)
		}
		b.WriteByte('\n')
	}
}

// pad appends s, filled up with blanks on the left to width w or, if w is negative, on
// the right to -w.
func pad[Text string | []byte](b *bytes.Buffer, s Text, w int) {
	fill(b, ' ', w-len(s))
	b.Write(append(b.AvailableBuffer(), s...))
	fill(b, ' ', -w-len(s))
}

// fill appends n times c.
func fill(b *bytes.Buffer, c byte, n int) {
	for range n {
		b.WriteByte(c)
	}
}
