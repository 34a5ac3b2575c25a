package exporter

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pmdperf/pmdperf/export/prom"
)

// switches are how often a thread was switched off its core.
type switches struct {
	voluntary, involuntary uint64
}

// pidOf returns the process that a control socket belongs to by the name that Open
// vSwitch gives it, NAME.PID.ctl; 0 if it has another name.
func pidOf(socket string) int {
	name, _ := strings.CutSuffix(filepath.Base(socket), ".ctl")
	pid, err := strconv.ParseUint(name[strings.LastIndexByte(name, '.')+1:], 10, 31)
	if err != nil {
		return 0
	}
	return int(pid)
}

// switchesOf returns the switches of a process's PMD threads by core, where the system
// tells. In a container it doesn't tell of programs outside.
func switchesOf(proc string, pid int) map[int]switches {
	files, _ := filepath.Glob(fmt.Sprintf("%s/%d/task/*/status", proc, pid))
	of := make(map[int]switches)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		if core, s, ok := parseStatus(string(text)); ok {
			of[core] = s
		}
	}
	return of
}

// parseStatus reads a thread's status (proc_pid_status(5)); ok is false if it is no PMD
// thread by its name, which is "pmd-c01/id:8" or, before Open vSwitch 2.15, "pmd8", which
// doesn't tell the core.
func parseStatus(text string) (core int, s switches, ok bool) {
	var found int
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		number := func(to *uint64) {
			if n, err := strconv.ParseUint(value, 10, 64); err == nil {
				*to = n
				found++
			}
		}
		switch name {
		case "Name":
			thread, _, _ := strings.Cut(value, "/")
			number, isPMD := strings.CutPrefix(thread, "pmd-c")
			n, err := strconv.ParseUint(number, 10, 16)
			if !isPMD || err != nil {
				return 0, s, false
			}
			core = int(n)
			found++
		case "voluntary_ctxt_switches":
			number(&s.voluntary)
		case "nonvoluntary_ctxt_switches":
			number(&s.involuntary)
		}
	}
	return core, s, found == 3
}

// addSwitches sets the switches of those threads that they are known of.
func addSwitches(threads []*prom.Thread, of map[int]switches) {
	for _, t := range threads {
		if s, ok := of[t.Core]; ok && !t.Main {
			w := writer{t}
			w.count(prom.ContextSwitches, s.voluntary, "voluntary")
			w.count(prom.ContextSwitches, s.involuntary, "involuntary")
		}
	}
}
