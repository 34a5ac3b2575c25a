package experiment

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/pmdperf/pmdperf/perf/tsc"
)

// Machine is where something was measured.
type Machine struct {
	CPU     string  `json:"cpu,omitempty"`
	Virtual bool    `json:"virtual,omitempty"` // a guest of a hypervisor
	Cores   int     `json:"cores"`
	System  string  `json:"system"` // operating system and architecture
	Kernel  string  `json:"kernel,omitempty"`
	Go      string  `json:"go"`
	Clock   string  `json:"clock"` // of ticks, which are called cycles
	Hz      float64 `json:"hz"`    // ticks a second
}

// String returns the machine on one line.
func (m Machine) String() string {
	s := m.CPU
	if s == "" {
		s = "unknown processor"
	}
	if m.Virtual {
		s += " (virtual)"
	}
	return fmt.Sprintf("%s, %d cores, %s %s, %s, %s at %.0f MHz", s, m.Cores, m.System, m.Kernel, m.Go, m.Clock, m.Hz/1e6)
}

func thisMachine() Machine {
	c := tsc.System()
	m := Machine{Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Clock: fmt.Sprint(c.Source()), Hz: c.Hz()}
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		for s := bufio.NewScanner(f); s.Scan(); {
			name, value, _ := strings.Cut(s.Text(), ":")
			switch strings.TrimSpace(name) {
			case "model name":
				m.CPU = strings.TrimSpace(value)
			case "flags":
				m.Virtual = strings.Contains(value+" ", " hypervisor ")
			}
		}
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(release))
	}
	return m
}
