//go:build !race

package need

// Race says that the race detector is on, under which everything takes several times
// its time and memory.
const Race = false
