package ovslog

import (
	"bytes"
	"time"
)

// logSet is what the message begins with that ends with a number.
const logSet = "pmd-perf-log-set: "

// parseOther reads a message that is no event's. It returns nil for one that says
// nothing of interest.
func parseOther(o Origin, module, msg []byte) Record {
	s := scanner{rest: msg, ok: true}
	switch {
	case s.begins(logSet):
		set := &Settings{Origin: o}
		set.On = s.either("on", "off")
		s.want(", before=")
		set.Before = s.uint()
		s.want(", after=")
		set.After = s.uint()
		s.want(", extend=")
		set.Extend = s.either("true", "false")
		s.want(", us_thr=")
		set.MaxDuration = s.uint()
		s.want(", q_thr=")
		set.QueueFill = s.uint()
		return s.done(set)
	case s.begins("Dropped "):
		d := &Dropped{Origin: o, Module: string(module)}
		d.Messages = s.uint()
		s.want(" log messages in last ")
		d.Seconds = s.uint()
		s.want(" seconds (most recently, ")
		d.Ago = s.uint()
		s.want(" seconds ago) due to excessive rate")
		return s.done(d)
	case s.begins("Unreasonably long "):
		l := &LongPoll{Origin: o}
		l.Interval = s.millis()
		s.want("ms poll interval (")
		l.User = s.millis()
		s.want("ms user, ")
		l.System = s.millis()
		s.want("ms system)")
		return s.done(l)
	case s.begins("faults: "):
		f := &Faults{Origin: o}
		f.Minor = s.uint()
		s.want(" minor, ")
		f.Major = s.uint()
		s.want(" major")
		return s.done(f)
	case s.begins("context switches: "):
		c := &Switches{Origin: o}
		c.Voluntary = s.uint()
		s.want(" voluntary, ")
		c.Involuntary = s.uint()
		s.want(" involuntary")
		return s.done(c)
	case s.begins("blocked "):
		b := &Blocked{Origin: o}
		b.For = s.millis()
		s.want(" ms waiting for ")
		b.Waited = s.until(" to quiesce")
		return s.done(b)
	case s.begins("Estimated TSC frequency: "), s.begins("DPDK provided TSC frequency: "):
		f := &Frequency{Origin: o, Estimated: msg[0] == 'E'}
		f.KHz = s.uint()
		s.want(" KHz")
		return s.done(f)
	case s.begins("There are "):
		t := &Threads{Origin: o}
		t.Count = s.uint()
		s.want(" pmd threads on numa node ")
		t.NUMA = s.uint()
		return s.done(t)
	case s.begins("Core "):
		a := &Assignment{Origin: o}
		s.blanks()
		a.Core = s.uint()
		s.want(" on numa node ")
		a.NUMA = s.uint()
		s.want(" assigned port '")
		a.Port = s.until("' rx queue ")
		a.Queue = s.uint()
		if r := s.done(a); r != nil {
			return r
		}
	}
	for _, n := range notices() {
		if bytes.Contains(msg, []byte(n.words)) {
			return &Notice{Origin: o, Topic: n.topic, Text: string(msg)}
		}
	}
	return nil
}

type notice struct {
	words string
	topic Topic
}

func notices() [5]notice {
	return [...]notice{
		{"PMD auto load balance", LoadBalance},
		{"max sleep", MaxSleep},
		{"is pinned with port", Pinned},
		{"This rx queue will not be polled", NotPolled},
		{"no available (non-isolated) pmd", NoThread},
	}
}

// A scanner reads a message from left to right; once something is not as wanted,
// ok is false for good.
type scanner struct {
	rest []byte
	ok   bool
}

func (s *scanner) begins(with string) bool {
	rest, ok := bytes.CutPrefix(s.rest, []byte(with))
	if ok {
		s.rest = rest
	}
	return ok
}

func (s *scanner) want(text string) {
	if !s.ok || !s.begins(text) {
		s.ok = false
	}
}

func (s *scanner) either(yes, no string) bool {
	if s.ok && s.begins(yes) {
		return true
	}
	s.want(no)
	return false
}

func (s *scanner) blanks() { s.rest = bytes.TrimLeft(s.rest, " ") }

func (s *scanner) uint() uint64 {
	v, n := parseUint(s.rest)
	if n == 0 {
		s.ok = false
	}
	s.rest = s.rest[n:]
	return v
}

// millis reads milliseconds; more than a century of them is not believed.
func (s *scanner) millis() time.Duration {
	v := s.uint()
	if v > 100*366*24*3600*1000 {
		s.ok = false
		return 0
	}
	return time.Duration(v) * time.Millisecond
}

func (s *scanner) until(text string) string {
	before, after, ok := bytes.Cut(s.rest, []byte(text))
	if !s.ok || !ok {
		s.ok = false
		return ""
	}
	s.rest = after
	return string(before)
}

func (s *scanner) done(r Record) Record {
	if !s.ok {
		return nil
	}
	return r
}
