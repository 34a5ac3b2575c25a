package cause

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"time"
)

// The parsers below read files of /proc and of cgroups, proc(5). They allocate nothing
// but names, and return false for text that is not of the format.

var native = binary.NativeEndian

func cString(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// word cuts the next word off *b.
func word(b *[]byte) []byte {
	s := *b
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t' || s[0] == '\n') {
		s = s[1:]
	}
	n := 0
	for n < len(s) && s[n] != ' ' && s[n] != '\t' && s[n] != '\n' {
		n++
	}
	*b = s[n:]
	return s[:n]
}

// line cuts the next line off *b.
func line(b *[]byte) []byte {
	l, rest, _ := bytes.Cut(*b, []byte{'\n'})
	*b = rest
	return l
}

// number returns the value of a word of decimal digits.
func number(w []byte) (n int64, ok bool) {
	if len(w) == 0 || len(w) > 18 { // 10^18 fits
		return 0, false
	}
	for _, c := range w {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}

// parseSchedstat reads /proc/PID/task/TID/schedstat: ns on a core, ns runnable and
// waiting, times put on a core.
func parseSchedstat(b []byte) (run, wait int64, ok bool) {
	run, ok1 := number(word(&b))
	wait, ok2 := number(word(&b))
	return run, wait, ok1 && ok2
}

// parseStat reads /proc/PID/task/TID/stat: the state's letter, minor and major faults.
func parseStat(b []byte) (state byte, minor, major int64, ok bool) {
	// The name is in parentheses and may hold some itself.
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return 0, 0, 0, false
	}
	b = b[i+1:]
	w := word(&b) // field 3
	if len(w) != 1 {
		return 0, 0, 0, false
	}
	state = w[0]
	var okMinor, okMajor bool
	for field := 4; field <= 12; field++ {
		w := word(&b)
		switch field {
		case 10:
			minor, okMinor = number(w)
		case 12:
			major, okMajor = number(w)
		}
	}
	return state, minor, major, okMinor && okMajor
}

// parseSyscall reads /proc/PID/task/TID/syscall: the number of the system call, noCall
// if the thread sleeps outside of any, unknownCall if it runs.
func parseSyscall(b []byte) (call int, ok bool) {
	w := word(&b)
	switch string(w) {
	case "running":
		return unknownCall, true
	case "-1":
		return noCall, true
	}
	n, ok := number(w)
	if !ok || n > 1<<20 {
		return unknownCall, false
	}
	return int(n), true
}

// parseCPUStat reads a cgroup's cpu.stat, of version 1 (throttled_time, in ns) or 2
// (throttled_usec). It returns false for one without a quota controller.
func parseCPUStat(b []byte) (throttled, count int64, ok bool) {
	for len(b) > 0 {
		l := line(&b)
		key := word(&l)
		n, valid := number(word(&l))
		if !valid {
			continue
		}
		switch string(key) {
		case "nr_throttled":
			count = n
		case "throttled_time":
			throttled, ok = n, true
		case "throttled_usec":
			throttled, ok = n*1000, n < 1<<50
		}
	}
	return throttled, count, ok
}

// parseCoreTimes reads the line of one core in /proc/stat: steal and the sum of
// interrupts and softirqs, in the kernel's ticks for users.
func parseCoreTimes(b []byte, core int) (steal, irq int64, ok bool) {
	name := "cpu" + strconv.Itoa(core)
	for len(b) > 0 {
		l := line(&b)
		if string(word(&l)) != name {
			continue
		}
		var v [8]int64 // user, nice, system, idle, iowait, irq, softirq, steal
		for i := range v {
			if v[i], ok = number(word(&l)); !ok {
				return 0, 0, false
			}
		}
		return v[7], v[5] + v[6], true
	}
	return 0, 0, false
}

// tick is the unit of /proc/stat, USER_HZ; it is 100 on every architecture that the
// module builds for.
const tick = 10 * time.Millisecond

// parseLines reads one core's column of /proc/interrupts or /proc/softirqs and calls
// add for every line. It returns false if there is no such column.
func parseLines(b []byte, core int, add func(name string, n int64)) bool {
	head := line(&b)
	column, name := -1, "CPU"+strconv.Itoa(core)
	columns := 0
	for w := word(&head); len(w) > 0; w = word(&head) {
		if string(w) == name {
			column = columns
		}
		columns++
	}
	if column < 0 {
		return false
	}
	for len(b) > 0 {
		l := line(&b)
		label, ok := bytes.CutSuffix(word(&l), []byte{':'})
		if !ok || len(label) == 0 {
			continue
		}
		var n int64
		valid := false
		for i := range columns {
			v, ok := number(word(&l))
			if !ok {
				break // ERR and MIS have one column for all cores
			}
			if i == column {
				n, valid = v, true
			}
		}
		if !valid {
			continue
		}
		// What follows are the controller, the line's number and its users.
		what := string(label)
		if words := bytes.Fields(l); len(words) > 0 {
			if _, number := number(label); number {
				what += " " + string(words[len(words)-1])
			} else {
				what += " " + string(bytes.Join(words, []byte{' '}))
			}
		}
		add(what, n)
	}
	return true
}

// parseCgroups reads /proc/PID/task/TID/cgroup: the path in the hierarchy of the cpu
// controller of version 1, and that in version 2; "" where there is none.
func parseCgroups(b []byte) (v1, v2 string) {
	for len(b) > 0 {
		l := line(&b)
		parts := bytes.SplitN(l, []byte{':'}, 3)
		if len(parts) != 3 || len(parts[2]) == 0 || parts[2][0] != '/' {
			continue
		}
		if string(parts[0]) == "0" && len(parts[1]) == 0 {
			v2 = string(parts[2])
			continue
		}
		for c := range bytes.SplitSeq(parts[1], []byte{','}) {
			if string(c) == "cpu" {
				v1 = string(parts[2])
			}
		}
	}
	return v1, v2
}

// parseMounts reads /proc/PID/mountinfo: where the cpu controller of cgroup version 1
// and where version 2 is mounted, and what part of each; "" where there is none.
func parseMounts(b []byte) (v1, v2 cgroupMount) {
	for len(b) > 0 {
		l := line(&b)
		fields, rest, ok := bytes.Cut(l, []byte(" - "))
		if !ok {
			continue
		}
		var root, dir []byte
		for i := range 5 {
			w := word(&fields)
			switch i {
			case 3:
				root = w
			case 4:
				dir = w
			}
		}
		if len(dir) == 0 {
			continue
		}
		m := cgroupMount{root: string(root), dir: string(dir)}
		typ := word(&rest)
		word(&rest) // the source
		switch string(typ) {
		case "cgroup2":
			if v2.dir == "" {
				v2 = m
			}
		case "cgroup":
			for o := range bytes.SplitSeq(word(&rest), []byte{','}) {
				if string(o) == "cpu" && v1.dir == "" {
					v1 = m
				}
			}
		}
	}
	return v1, v2
}

// cgroupMount is a mounted hierarchy, or the part below root of one.
type cgroupMount struct{ root, dir string }

// parseTgid reads /proc/TID/status: the id of the thread's process.
func parseTgid(b []byte) (pid int, ok bool) {
	for len(b) > 0 {
		l := line(&b)
		if string(word(&l)) == "Tgid:" {
			n, ok := number(word(&l))
			return int(n), ok && n > 0
		}
	}
	return 0, false
}
