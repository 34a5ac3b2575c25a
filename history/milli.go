package history

// A Milli sums up the passes that ended in one millisecond. Rows are cut by the
// clock: a pass belongs whole to the row in which it ends, a row ends with the
// first pass that ends a millisecond or more after the row began, and the next
// begins there. A stall so shows as one long row, never as a missing one:
// Duration says how long the row really lasted, and rates are to be divided by it.
//
// Duration = Cycles + Sleep + Gap, exactly.
type Milli struct {
	End          uint64 // tick at which the row ended: the end of its last pass
	Duration     uint64 // ticks from the end of the row before
	Cycles       uint64 // ticks in passes
	BusyCycles   uint64 // ticks in passes that received or sent
	Sleep        uint64 // ticks slept
	Gap          uint64 // ticks between passes
	UpcallCycles uint64
	SumFill      uint64 // sum over the passes of each one's highest queue fill

	Iterations     uint32
	BusyIterations uint32
	Rx             uint32
	Tx             uint32
	Batches        uint32
	Upcalls        uint32
	MaxFill        uint32
	Drops          uint32
}

const millisSize = 1024

// Millis holds the last rows, the one being filled included. The zero value has
// none; Cut starts the first.
type Millis struct {
	rows  [millisSize]Milli
	first uint64 // oldest row that may be shown
	open  uint64 // the row being filled
}

// Open returns the row being filled.
func (m *Millis) Open() *Milli { return &m.rows[m.open%millisSize] }

// Cut completes the open row and opens the next.
func (m *Millis) Cut() {
	m.open++
	*m.Open() = Milli{}
	if m.open-m.first >= millisSize {
		m.first = m.open - millisSize + 1
	}
}

// Reset forgets all rows.
func (m *Millis) Reset() {
	m.first = m.open
	*m.Open() = Milli{}
}

// Len returns the number of complete rows.
func (m *Millis) Len() int { return int(m.open - m.first) }

// Append appends the last n complete rows, or as many as there are, to dst, oldest
// first.
func (m *Millis) Append(dst []Milli, n int) []Milli {
	first, end := m.Last(n)
	return m.AppendRows(dst, first, end)
}

// Last returns the numbers of the last n complete rows, or of as many as there are: from
// first to end-1.
func (m *Millis) Last(n int) (first, end uint64) {
	return m.open - uint64(max(0, min(n, m.Len()))), m.open
}

// AppendRows appends the rows of the numbers first to end-1 to dst, oldest first. They
// are there as long as fewer than 1024 were opened after each.
func (m *Millis) AppendRows(dst []Milli, first, end uint64) []Milli {
	if first >= end {
		return dst
	}
	from, to := first%millisSize, end%millisSize
	if from < to {
		return append(dst, m.rows[from:to]...)
	}
	return append(append(dst, m.rows[from:]...), m.rows[:to]...)
}
