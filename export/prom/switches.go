package prom

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// setSwitches sets how often a thread of this process was switched off its core, where
// the system tells.
func (t *Thread) setSwitches(thread int) {
	if thread == 0 {
		return
	}
	// The file of proc_pid_status(5).
	status, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/status", thread))
	if err != nil {
		return // the thread has ended
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
		switch {
		case err != nil:
		case name == "voluntary_ctxt_switches":
			t.setCount(ContextSwitches, n, "voluntary")
		case name == "nonvoluntary_ctxt_switches":
			t.setCount(ContextSwitches, n, "involuntary")
		}
	}
}
