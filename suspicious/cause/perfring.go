package cause

// Records of perf_event_open(2) that a ring can hold here.
const (
	perfLost       = 2  // PERF_RECORD_LOST
	perfSwitch     = 14 // PERF_RECORD_SWITCH
	perfSwitchWide = 15 // PERF_RECORD_SWITCH_CPU_WIDE

	perfMiscOut     = 1 << 13 // PERF_RECORD_MISC_SWITCH_OUT
	perfMiscPreempt = 1 << 14 // PERF_RECORD_MISC_SWITCH_OUT_PREEMPT
)

// parsePerf reads the records in b, which begins and ends with a whole one, and hands
// the events of thread tid on. wide says that the records are those of a core: each then
// has the thread that comes or went, and ends with the current one's ids and the time;
// otherwise they are the thread's own and end with the time. It reports whether b was
// well formed.
func parsePerf(b []byte, tid int, wide bool, add func(event)) bool {
	for len(b) > 0 {
		if len(b) < 8 {
			return false
		}
		kind, misc, size := native.Uint32(b), native.Uint16(b[4:]), int(native.Uint16(b[6:]))
		if size < 8 || size > len(b) {
			return false
		}
		body := b[8:size]
		b = b[size:]
		switch {
		case kind == perfLost:
			add(event{kind: evLost})
		case kind == perfSwitch && !wide:
			if len(body) < 8 {
				return false
			}
			e := event{time: int64(native.Uint64(body[len(body)-8:])), kind: evIn, pid: -1, call: unknownCall}
			if misc&perfMiscOut != 0 {
				e.kind = evOut
				e.state = leftState(misc)
			}
			add(e)
		case kind == perfSwitchWide && wide:
			if len(body) < 8+8+8 {
				return false
			}
			other := int(int32(native.Uint32(body[4:])))
			ids := body[len(body)-16:]
			current := int(int32(native.Uint32(ids[4:])))
			e := event{time: int64(native.Uint64(ids[8:])), pid: other, call: unknownCall}
			switch {
			case current == tid && misc&perfMiscOut != 0:
				e.kind, e.state = evOut, leftState(misc)
			case current == tid:
				e.kind = evIn
			case misc&perfMiscOut != 0:
				e.kind = evOther
			default:
				continue
			}
			add(e)
		}
	}
	return true
}

func leftState(misc uint16) uint32 {
	if misc&perfMiscPreempt != 0 {
		return taskRunning
	}
	return taskAsleep
}
