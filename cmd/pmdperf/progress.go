package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/pmdperf/pmdperf/internal/dataplane"
)

// progress writes a line about how a run goes: on a terminal once a second, in
// place; elsewhere after a second and then every quietInterval. One goroutine at a
// time may use it.
type progress struct {
	to      *console
	inPlace bool
	whole   time.Duration // of the run, 0 if it has no end

	// When something was shown last, and how many packets had been received.
	at time.Duration
	rx uint64
}

// quietInterval is how often a line is due where lines stay.
const quietInterval = 5 * time.Second

func newProgress(to *console, whole time.Duration) *progress {
	return &progress{to: to, inPlace: isTerminal(to.w), whole: whole}
}

// isTerminal reports whether w is a terminal, or another character device, where a
// line in place does no harm.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *progress) show(r dataplane.Result) {
	if !p.inPlace && p.at > 0 && r.Elapsed-p.at < quietInterval {
		return
	}
	line := p.line(&r)
	if !p.inPlace {
		fmt.Fprintf(p.to, "pmdperf: %s\n", line)
		return
	}
	p.to.replace(line)
}

// line returns the line, of less than 80 characters as a rule, for the time since it
// was called last.
func (p *progress) line(r *dataplane.Result) string {
	var sum dataplane.PortResult
	for _, port := range r.Ports {
		sum.Rx += port.Rx
		sum.Drops += port.Drops
		sum.Missed += port.Missed
	}
	var mpps float64
	if r.Elapsed > p.at && sum.Rx >= p.rx {
		mpps = float64(sum.Rx-p.rx) / (r.Elapsed - p.at).Seconds() / 1e6
	}
	p.at, p.rx = r.Elapsed, sum.Rx

	var b strings.Builder
	fmt.Fprintf(&b, "%.0f s", r.Elapsed.Seconds())
	if p.whole > 0 {
		fmt.Fprintf(&b, " of %g s", p.whole.Seconds())
	}
	fmt.Fprintf(&b, ": %.3f Mpps, received %d, dropped %d, missed %d", mpps, sum.Rx, sum.Drops, sum.Missed)
	if r.Stale > 0 {
		fmt.Fprintf(&b, ", %d PMD silent", r.Stale)
	}
	return b.String()
}

// end takes the line off the terminal.
func (p *progress) end() { p.to.blank() }
