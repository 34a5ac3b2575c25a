package dataplane

import (
	"strings"
	"testing"
	"time"
)

func TestParseInjection(t *testing.T) {
	got, err := ParseInjection("fault=500us@1s")
	if want := (Injection{InjectFault, 500 * time.Microsecond, time.Second}); got != want || err != nil {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for in, want := range map[string]string{
		"":                 "KIND=DURATION@EVERY",
		"compute":          "KIND=DURATION@EVERY",
		"compute=1ms":      "KIND=DURATION@EVERY",
		"compute=1@1s":     "not a duration",
		"compute=1ms@soon": "not a duration",
		"nap=1ms@1s":       "choose compute, fault, block, gc, reload",
		"compute=0s@1s":    "must be positive",
		"compute=-1ms@1s":  "must be positive",
		"block=1s@1s":      "must be longer",
		"reload=2m@1h":     "at most 1m",
	} {
		_, err := ParseInjection(in)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v, want one line with %q", in, err, want)
		}
	}
}

// FuzzParseInjection wants what is accepted to be valid and to be read back.
func FuzzParseInjection(f *testing.F) {
	for _, kind := range injectKinds {
		f.Add(string(kind) + "=2ms@1s")
	}
	f.Fuzz(func(t *testing.T, s string) {
		in, err := ParseInjection(s)
		if err != nil {
			return
		}
		if in.validate() != nil {
			t.Fatalf("%q was accepted as %+v", s, in)
		}
		if again, err := ParseInjection(in.String()); err != nil || again != in {
			t.Fatalf("%q is read back as %v, %v, want %v", in, again, err, in)
		}
	})
}

// TestSchedule drives the time: every injection comes once per turn, and turns
// that pass while another one lasts are left out.
func TestSchedule(t *testing.T) {
	var done [2]uint64
	now := uint64(0)
	tr, err := newTrouble(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := schedule{trouble: tr, next: 1, entries: []scheduled{
		{kind: InjectCompute, duration: 10, every: 100, at: 100, done: &done[0]},
		{kind: InjectCompute, duration: 350, every: 1000, at: 1000, done: &done[1]},
	}}
	clock := func() uint64 { now++; return now }
	for now < 1950 {
		if clock() >= s.next {
			s.run(clock)
		}
	}
	// The first has 19 turns by then; of those at 1100, 1200 and 1300, during the
	// long one, one is made up for.
	if done != [2]uint64{17, 1} {
		t.Errorf("made %v, want 17 and 1", done)
	}
	if s.next != 2000 {
		t.Errorf("next at %d, want 2000", s.next)
	}
}
