package history

// RingSize is how many records a Ring holds, the one being filled included. It is
// twice what is shown, so that the neighborhood of a pass is whole when the pass
// is found to be slow.
const RingSize = 2048

// Shown is how many iterations and how many milliseconds a report may show.
const Shown = 1000

// Ring holds the last records, indexed by iteration number. The zero value is
// ready.
type Ring struct {
	records [RingSize]Record
}

// At returns the slot of iteration n. It holds that iteration only as long as
// fewer than RingSize came after it.
func (r *Ring) At(n uint64) *Record { return &r.records[n%RingSize] }

// Span returns the slots of iterations first to end-1, which must not lie on both
// sides of a multiple of RingSize.
func (r *Ring) Span(first, end uint64) []Record {
	i := first % RingSize
	return r.records[i : i+end-first]
}

// Append appends the records of iterations first to end-1, at most RingSize, to
// dst, oldest first.
func (r *Ring) Append(dst []Record, first, end uint64) []Record {
	if first >= end {
		return dst
	}
	from, to := first%RingSize, end%RingSize
	if from < to {
		return append(dst, r.records[from:to]...)
	}
	return append(append(dst, r.records[from:]...), r.records[:to]...)
}
