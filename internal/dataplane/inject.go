package dataplane

import (
	"fmt"
	"strings"
	"time"
)

// InjectKind is a kind of trouble that the forwarder can make for itself, so that
// there is something to find.
type InjectKind string

// The kinds of trouble.
const (
	InjectCompute InjectKind = "compute" // the loop's own code takes long
	InjectFault   InjectKind = "fault"   // a storm of page faults in the loop
	InjectBlock   InjectKind = "block"   // a system call in the loop that waits
	InjectGC      InjectKind = "gc"      // a storm of garbage collections beside the loop
	InjectReload  InjectKind = "reload"  // a reload of all PMDs with that much time between
)

var injectKinds = [...]InjectKind{InjectCompute, InjectFault, InjectBlock, InjectGC, InjectReload}

// Injection is trouble of one kind and duration, once per Every.
type Injection struct {
	Kind     InjectKind
	Duration time.Duration
	Every    time.Duration
}

// ParseInjection reads KIND=DURATION@EVERY, say compute=2ms@1s.
func ParseInjection(s string) (Injection, error) {
	kind, rest, ok := strings.Cut(s, "=")
	duration, every, ok2 := strings.Cut(rest, "@")
	if !ok || !ok2 {
		return Injection{}, fmt.Errorf("injection %q: write KIND=DURATION@EVERY, say compute=2ms@1s", s)
	}
	in := Injection{Kind: InjectKind(kind)}
	var err error
	if in.Duration, err = time.ParseDuration(duration); err != nil {
		return Injection{}, fmt.Errorf("injection %q: %q is not a duration: write 500us, 2ms or 1s", s, duration)
	}
	if in.Every, err = time.ParseDuration(every); err != nil {
		return Injection{}, fmt.Errorf("injection %q: %q is not a duration: write 500us, 2ms or 1s", s, every)
	}
	if err := in.validate(); err != nil {
		return Injection{}, err
	}
	return in, nil
}

// String returns the injection as ParseInjection reads it.
func (i Injection) String() string {
	return fmt.Sprintf("%s=%s@%s", i.Kind, i.Duration, i.Every)
}

func (i Injection) validate() error {
	known := false
	names := make([]string, len(injectKinds))
	for k, kind := range injectKinds {
		known = known || kind == i.Kind
		names[k] = string(kind)
	}
	switch {
	case !known:
		return fmt.Errorf("injection %q: unknown kind %q: choose %s", i, i.Kind, strings.Join(names, ", "))
	case i.Duration <= 0:
		return fmt.Errorf("injection %q: the duration must be positive", i)
	case i.Duration > time.Minute:
		return fmt.Errorf("injection %q: the duration must be at most 1m", i)
	case i.Every <= i.Duration:
		return fmt.Errorf("injection %q: what follows @ must be longer than the duration", i)
	}
	return nil
}

// inLoop reports whether PMDs make the trouble themselves, in a pass.
func (i Injection) inLoop() bool {
	return i.Kind == InjectCompute || i.Kind == InjectFault || i.Kind == InjectBlock
}

// schedule is the injections of one PMD by tick.
type schedule struct {
	next    uint64 // tick of the earliest, all ones where there is none
	entries []scheduled
	trouble *trouble
}

type scheduled struct {
	kind     InjectKind
	duration uint64 // ticks
	every    uint64
	at       uint64
	done     *uint64
}

// run makes the trouble that is due. Turns that passed meanwhile are left out.
func (s *schedule) run(now func() uint64) {
	at := now()
	next := ^uint64(0)
	for i := range s.entries {
		e := &s.entries[i]
		if at >= e.at {
			s.trouble.make(e.kind, e.duration, now)
			*e.done++
			at = now()
			e.at += e.every
			if e.at <= at {
				e.at += (at - e.at + e.every) / e.every * e.every
			}
		}
		next = min(next, e.at)
	}
	s.next = next
}
