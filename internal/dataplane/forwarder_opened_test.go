package dataplane

import (
	"errors"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/perf"
)

// Run calls Opened when there are recorders and before they record, and an error of
// it ends the run before it began.
func TestOpened(t *testing.T) {
	no := errors.New("no")
	for _, want := range []error{nil, no} {
		cfg := Config{Ports: []string{"mem"}, Duration: 20 * time.Millisecond, Registry: new(perf.Registry)}
		called := 0
		cfg.Opened = func() error {
			called++
			rs := cfg.Registry.Recorders()
			if len(rs) != 1 || rs[0].State() != perf.Parked {
				t.Errorf("%d recorders", len(rs))
			}
			return want
		}
		result, err := Run(t.Context(), cfg)
		if !errors.Is(err, want) || called != 1 {
			t.Errorf("error %v, want %v; called %d times", err, want, called)
		}
		if want != nil && len(result.Ports) != 0 {
			t.Errorf("a result of a run that was not: %+v", result)
		}
	}
}
