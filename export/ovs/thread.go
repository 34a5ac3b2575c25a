package ovs

import (
	"strconv"
	"strings"
)

// Unspecified is the NUMA node or core of a thread whose heading doesn't name one.
const Unspecified = -1

// Thread is the heading of a block: the polling thread that the block is about.
type Thread struct {
	Main bool // the main thread, which polls the ports of no PMD; it has no node and core
	NUMA int  // NUMA node, or Unspecified
	Core int  // CPU core, or Unspecified
}

// MainThread returns the heading of the main thread's block.
func MainThread() Thread { return Thread{Main: true, NUMA: Unspecified, Core: Unspecified} }

// String returns the heading as OVS prints it, for example
// "pmd thread numa_id 0 core_id 1:".
func (t Thread) String() string {
	s := "pmd thread"
	if t.Main {
		s = "main thread"
	}
	if t.NUMA != Unspecified {
		s += " numa_id " + strconv.Itoa(t.NUMA)
	}
	if t.Core != Unspecified {
		s += " core_id " + strconv.Itoa(t.Core)
	}
	return s + ":"
}

// parseThread reads a heading; ok is false if the line is none.
func parseThread(line string) (t Thread, ok bool) {
	line, ok = strings.CutSuffix(line, ":")
	if !ok {
		return t, false
	}
	w := words(line)
	if len(w) < 2 || w[1] != "thread" || w[0] != "pmd" && w[0] != "main" {
		return t, false
	}
	t = Thread{Main: w[0] == "main", NUMA: Unspecified, Core: Unspecified}
	w = w[2:]
	w, ok = takeID(w, "numa_id", &t.NUMA)
	if ok {
		w, ok = takeID(w, "core_id", &t.Core)
	}
	return t, ok && len(w) == 0
}

// takeID takes "name N" from the front of w, if it is there. It returns what is left;
// ok is false if N is not a number.
func takeID(w []string, name string, id *int) (rest []string, ok bool) {
	if len(w) == 0 || w[0] != name {
		return w, true
	}
	if len(w) < 2 || !isDigits(w[1]) {
		return w, false
	}
	n, err := strconv.Atoi(w[1])
	if err != nil {
		return w, false
	}
	*id = n
	return w[2:], true
}
