package dataplane

import (
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/perf/tsc"
)

// TestTroubleLasts makes each kind and wants it to take its time.
func TestTroubleLasts(t *testing.T) {
	kinds := []InjectKind{InjectCompute, InjectFault, InjectBlock}
	var list []Injection
	for _, k := range kinds {
		list = append(list, Injection{Kind: k})
	}
	tr, err := newTrouble(list)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	for _, k := range kinds {
		const d = 3 * time.Millisecond
		begun := time.Now()
		tr.make(k, tsc.System().Ticks(d), tsc.Now)
		// The two clocks may differ a little.
		if took := time.Since(begun); took < d*99/100 {
			t.Errorf("%s took %v, want %v", k, took, d)
		}
	}
}
