package ovs

import (
	"bytes"
	"strconv"
	"strings"
)

// RxqReport is what pmd-rxq-show prints: the receive queues of every PMD thread.
type RxqReport struct {
	// Seconds is the time over which the usage was measured, 0 if the text doesn't say.
	Seconds int
	Blocks  []RxqBlock
	Unread  []Line // lines that could not be read; String doesn't write them
}

// RxqBlock lists the queues of one thread.
type RxqBlock struct {
	Thread   Thread
	Isolated *bool // nil if the text doesn't say
	Queues   []RxqQueue
	Overhead *Usage // nil if the thread has no queue, or the text doesn't say
}

// RxqQueue is one receive queue.
type RxqQueue struct {
	Port    string
	Queue   int
	Enabled bool
	Usage   Usage
	// NoState says that the text doesn't tell whether the queue is enabled, as up to OVS
	// 2.11, where a queue that is listed is polled: Enabled is true.
	NoState bool
	// NoUsage says that the text has no usage at all, as up to OVS 2.8.
	NoUsage bool
}

// Usage is a share of a PMD's cycles, as far as it is known. Queues and overhead
// together are the busy share of the PMD.
type Usage struct {
	Known   bool // false for "NOT AVAIL", which OVS prints for the first seconds
	Percent int
}

// String returns the usage as OVS prints it: " 2 %" or "NOT AVAIL".
func (u Usage) String() string {
	if !u.Known {
		return "NOT AVAIL"
	}
	var b bytes.Buffer
	pad(&b, strconv.Itoa(u.Percent), 2)
	return b.String() + " %"
}

// String returns the report as OVS 3.1 prints it, less what an older version's text
// didn't have.
func (r *RxqReport) String() string {
	var b bytes.Buffer
	if r.Seconds > 0 {
		b.WriteString("Displaying last " + strconv.Itoa(r.Seconds) + " seconds pmd usage %\n")
	}
	for _, block := range r.Blocks {
		b.WriteString(block.Thread.String() + "\n")
		if block.Isolated != nil {
			b.WriteString("  isolated : " + strconv.FormatBool(*block.Isolated) + "\n")
		}
		for _, q := range block.Queues {
			b.WriteString("  port: ")
			pad(&b, q.Port, -16)
			b.WriteString("  queue-id: ")
			pad(&b, strconv.Itoa(q.Queue), 2)
			switch {
			case q.NoState:
			case q.Enabled:
				b.WriteString(" (enabled) ")
			default:
				b.WriteString(" (disabled)")
			}
			if !q.NoUsage {
				b.WriteString("  pmd usage: " + q.Usage.String())
			}
			b.WriteByte('\n')
		}
		if block.Overhead != nil {
			b.WriteString("  overhead: " + block.Overhead.String() + "\n")
		}
	}
	return b.String()
}

// ParseRxq reads the output of pmd-rxq-show. It returns a [*SyntaxError] if the text is
// not empty and no block can be read from it.
func ParseRxq(text string) (*RxqReport, error) {
	var r reader
	var report RxqReport
	r.scan(text, func(_ int, s string) bool { return report.line(s) })
	unread, err := r.result(len(report.Blocks) > 0 || report.Seconds > 0, "pmd-rxq-show")
	if err != nil {
		return nil, err
	}
	report.Unread = unread
	return &report, nil
}

func (r *RxqReport) line(s string) bool {
	if t, ok := parseThread(s); ok {
		r.Blocks = append(r.Blocks, RxqBlock{Thread: t})
		return true
	}
	w := words(s)
	if len(r.Blocks) == 0 {
		if len(w) == 7 && w[0] == "Displaying" && w[1] == "last" && isDigits(w[2]) && w[3] == "seconds" && r.Seconds == 0 {
			n, err := strconv.Atoi(w[2])
			r.Seconds = n
			return err == nil && n > 0
		}
		return false
	}
	b := &r.Blocks[len(r.Blocks)-1]
	key, value, _ := strings.Cut(s, ":")
	value = strings.Trim(value, blanks)
	switch strings.Trim(key, blanks) {
	case "isolated":
		v := value == "true"
		if b.Isolated != nil || !v && value != "false" {
			return false
		}
		b.Isolated = &v
		return true
	case "overhead":
		u, ok := parseUsage(value)
		if !ok || b.Overhead != nil {
			return false
		}
		b.Overhead = &u
		return true
	case "port":
		queues, ok := parseQueues(value)
		b.Queues = append(b.Queues, queues...)
		return ok
	}
	return false
}

// parseQueues reads a line of queues from the port's name on: one, or up to OVS 2.8 all
// that the port has. The name ends at the last "queue-id:", so that it may contain
// anything else.
func parseQueues(s string) (queues []RxqQueue, ok bool) {
	i := strings.LastIndex(s, "queue-id:")
	if i < 0 {
		return nil, false
	}
	q := RxqQueue{Port: strings.Trim(s[:i], blanks), Enabled: true}
	before, usage, hasUsage := strings.Cut(s[i+len("queue-id:"):], "pmd usage:")
	w := words(before)
	if q.Port == "" || len(w) == 0 {
		return nil, false
	}
	q.NoUsage = !hasUsage
	if hasUsage {
		if q.Usage, ok = parseUsage(strings.Trim(usage, blanks)); !ok {
			return nil, false
		}
	}
	switch last := w[len(w)-1]; last {
	case "(enabled)", "(disabled)":
		q.Enabled = last == "(enabled)"
		w = w[:len(w)-1]
	default:
		q.NoState = true
	}
	if len(w) != 1 && !(q.NoUsage && q.NoState) {
		return nil, false
	}
	for _, id := range w {
		n, err := strconv.Atoi(id)
		if err != nil || !isDigits(id) {
			return nil, false
		}
		q.Queue = n
		queues = append(queues, q)
	}
	return queues, true
}

func parseUsage(s string) (u Usage, ok bool) {
	if s == "NOT AVAIL" {
		return u, true
	}
	s, ok = strings.CutSuffix(s, "%")
	s = strings.Trim(s, blanks)
	if !ok || !isDigits(s) {
		return u, false
	}
	n, err := strconv.Atoi(s)
	return Usage{true, n}, err == nil
}
