package perf

import "fmt"

// A Level says how much a recorder records.
type Level uint8

// The levels. The zero value is Basic, as in Open vSwitch.
const (
	// Basic records iterations, cycles, packets, counters, rx queue usage and the
	// histograms of cycles and packets per iteration.
	Basic Level = iota
	// Detailed records everything.
	Detailed
	// Off records nothing and does not even read the clock.
	Off
)

// String returns the level's name.
func (l Level) String() string {
	if l > Off {
		return fmt.Sprintf("level(%d)", uint8(l))
	}
	return [...]string{"basic", "detailed", "off"}[l]
}

// ParseLevel returns the level of that name.
func ParseLevel(name string) (Level, error) {
	for l := Basic; l <= Off; l++ {
		if name == l.String() {
			return l, nil
		}
	}
	return 0, fmt.Errorf("unknown level %q: use off, basic or detailed", name)
}
