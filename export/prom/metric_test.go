package prom

import "testing"

// The table is complete, and its names fit their types.
func TestFamilies(t *testing.T) {
	seen := make(map[string]bool)
	for i, f := range families {
		if f.name == "" || f.help == "" || seen[f.name] || len(f.labels) > mostLabels {
			t.Errorf("metric %d: %+v", i, f)
		}
		seen[f.name] = true
	}
}
