package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pmdperf/pmdperf/internal/dataplane"
)

// Common is what all experiments are told.
type Common struct {
	Cores []int    // of the PMDs; none = the last one there is
	Ports []string // to receive from, as dataplane.Config has them; none = one in memory

	// Progress gets a line about how far the experiment is, some ten times a second. It
	// may be nil.
	Progress func(string)
}

func (c *Common) dataplane() dataplane.Config {
	return dataplane.Config{Cores: c.Cores, Ports: c.Ports}
}

// inMemory reports whether all ports are in memory.
func (c *Common) inMemory() bool {
	return !slices.ContainsFunc(c.Ports, func(p string) bool { return p != "mem" })
}

func (c *Common) progress(format string, args ...any) {
	if c.Progress != nil {
		c.Progress(fmt.Sprintf(format, args...))
	}
}

func (c *Common) parameters() []Parameter {
	cores, ports := "the last", "mem"
	if len(c.Cores) > 0 {
		cores = strings.Trim(fmt.Sprint(c.Cores), "[]")
	}
	if len(c.Ports) > 0 {
		ports = strings.Join(c.Ports, " ")
	}
	return []Parameter{{"cores", cores}, {"ports", ports}}
}
