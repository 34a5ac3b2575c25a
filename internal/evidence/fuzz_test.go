package evidence

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/suspicious/investigate"
)

// check wants a result to hold together whatever it was made of.
func check(t *testing.T, r *investigate.Result) {
	t.Helper()
	if _, err := json.Marshal(r); err != nil {
		t.Errorf("no JSON: %v", err)
	}
	if len(r.Findings) == 0 {
		t.Error("no finding, not even that there is none")
	}
	for i := range r.Stalls {
		s := &r.Stalls[i]
		if s.Culprit >= len(s.Neighborhood) || s.Culprit >= 0 && s.Neighborhood[s.Culprit].Iteration != s.Iteration {
			t.Errorf("stall %d has another culprit: %+v", i, s)
		}
		if i > 0 && s.Time.Before(r.Stalls[i-1].Time) {
			t.Errorf("stall %d is before the one before it", i)
		}
		if s.Lost < 0 || s.Lost > s.Micros+1 || s.Micros < 0 {
			t.Errorf("stall %d lost %g of %g us", i, s.Lost, s.Micros)
		}
	}
	ids := make(map[string]bool)
	for i := range r.Findings {
		f := &r.Findings[i]
		if ids[f.ID] || f.Title == "" || strings.ContainsAny(f.Title, "\n\x1b") {
			t.Errorf("finding %d: %q %q", i, f.ID, f.Title)
		}
		ids[f.ID] = true
		for _, k := range f.Stalls {
			if k < 0 || k >= len(r.Stalls) {
				t.Errorf("finding %d links stall %d of %d", i, k, len(r.Stalls))
			}
		}
		if f.Lost < 0 || f.Share < 0 || f.Share > 1 {
			t.Errorf("finding %d lost %g us, %g", i, f.Lost, f.Share)
		}
	}
	for _, s := range r.Sources {
		if s.Unread < len(s.Lost) {
			t.Errorf("%d unread, %d of them shown", s.Unread, len(s.Lost))
		}
	}
}

// FuzzCollector reads anything.
func FuzzCollector(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte) {
		c := &Collector{Case: investigate.NewCase(), Stdin: bytes.NewReader(text)}
		if err := c.Add(t.Context(), "-"); err != nil {
			t.Fatal(err)
		}
		if c.Read+len(c.Failed) == 0 {
			t.Error("neither read nor failed")
		}
		check(t, c.Case.Result())
	})
}

// FuzzCounters reads anything as counters, beside a log.
func FuzzCounters(f *testing.F) {
	log := log(f, "g04")
	f.Fuzz(func(t *testing.T, text []byte) {
		c := &Collector{Case: investigate.NewCase(), Stdin: strings.NewReader(log)}
		if err := c.Add(t.Context(), "-"); err != nil {
			t.Fatal(err)
		}
		c.Stdin = bytes.NewReader(text)
		if err := c.AddCounters(t.Context(), "-"); err != nil {
			t.Fatal(err)
		}
		r := c.Case.Result()
		check(t, r)
		for _, s := range r.Counters {
			if len(s.Points) > investigate.MaxPoints {
				t.Errorf("%s has %d points", s.Name, len(s.Points))
			}
			for i := 1; i < len(s.Points); i++ {
				if s.Points[i].Time.Before(s.Points[i-1].Time) {
					t.Errorf("%s: points are out of order", s.Name)
				}
			}
		}
		for _, rise := range r.Rises {
			if !(rise.Amount > 0) || rise.To.Before(rise.From) {
				t.Errorf("rise %+v", rise)
			}
		}
	})
}

func FuzzParseTime(f *testing.F) {
	f.Fuzz(func(t *testing.T, s string) {
		at, ok := parseTime(s)
		if !ok {
			return
		}
		if again, ok := parseTime(at.Format(time.RFC3339Nano)); ok && !again.Equal(at) {
			t.Errorf("%q is %v and then %v", s, at, again)
		}
	})
}
