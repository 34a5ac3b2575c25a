package perf

// usageIntervals keep what the last intervals of UsageInterval were spent on.
type usageIntervals struct {
	ring  [UsageIntervals]usageRow
	done  uint64 // number of complete intervals
	end   uint64 // tick from which on the open interval is complete
	ticks uint64 // length of an interval
	// from are the sums at the beginning of the open interval. After a clear they are
	// less than zero (modulo 2^64) by what the interval had before.
	from    usageRow
	scratch []uint64
}

// usageRow is a Usage in the owner's memory; busy cycles of queues are in the order
// of Recorder.rx.
type usageRow struct {
	ticks, busy, idle, sleep, gap uint64
	queues                        []uint64
}

func (u *usageIntervals) init(r *Recorder) {
	u.ticks = max(1, uint64(r.setup.hz*UsageInterval.Seconds()))
	u.begin(r)
}

// begin begins an interval at the end of the last record.
func (u *usageIntervals) begin(r *Recorder) {
	u.end = r.sums.until + u.ticks
	u.from = r.usageSums(u.from.queues)
}

// usageSums returns the sums of which a usage is the difference, in queues' memory.
func (r *Recorder) usageSums(queues []uint64) usageRow {
	s := &r.sums
	t := &s.totals
	row := usageRow{s.until - s.since, t.BusyCycles, t.Cycles - t.BusyCycles, t.Sleep, 0, queues[:0]}
	row.gap = row.ticks - t.Cycles - t.Sleep
	for i := range r.rx {
		row.queues = append(row.queues, r.rx[i].cycles[1])
	}
	return row
}

// cut completes the open interval and begins the next.
func (u *usageIntervals) cut(r *Recorder) {
	row := &u.ring[u.done%UsageIntervals]
	*row = r.usageSums(row.queues)
	row.subtract(&u.from)
	u.done++
	u.begin(r)
}

// keep makes the open interval survive a clear, after which the sums begin at zero:
// from - sums is as far below zero as the interval had come.
func (u *usageIntervals) keep(r *Recorder) {
	sums := r.usageSums(u.scratch)
	u.from.subtract(&sums)
}

// poll moves what queues used to where p has them, who has the memory for that; before
// it, the first known of its base were polled.
func (u *usageIntervals) poll(r *Recorder, p *Prepared, known int) {
	move := func(row *usageRow, queues []uint64) {
		for i, o := range p.rxFrom {
			if o >= 0 && o < known && o < len(row.queues) {
				queues[i] = row.queues[o]
			}
		}
		row.queues = queues
	}
	for i := range u.ring {
		move(&u.ring[i], p.usage[i])
	}
	move(&u.from, p.usage[UsageIntervals])
	for i, o := range p.rxFrom {
		if o < 0 || o >= known {
			// One that comes back has sums of before.
			u.from.queues[i] = r.rx[i].cycles[1]
		}
	}
	u.scratch = p.scratch
}

// subtract subtracts b from a; both have the same queues.
func (a *usageRow) subtract(b *usageRow) {
	a.ticks -= b.ticks
	a.busy -= b.busy
	a.idle -= b.idle
	a.sleep -= b.sleep
	a.gap -= b.gap
	for i := range a.queues {
		a.queues[i] -= b.queues[i]
	}
}
