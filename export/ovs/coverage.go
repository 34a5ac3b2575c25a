package ovs

import (
	"bytes"
	"strconv"
	"strings"
)

// CoverageReport is what coverage/show prints: how often events were counted since the
// start, and their rates.
type CoverageReport struct {
	Seconds  int    // over which the first rate of events was measured, 5
	Hash     string // which differs where other events were counted, as "f3e5372c"
	Events   []CoverageEvent
	NeverHit int    // how many events are not listed, since they were never counted
	Unread   []Line // lines that could not be read; String doesn't write them
}

// CoverageEvent is a line of coverage/show.
type CoverageEvent struct {
	Name string
	// Last, Minute and Hour are the rates a second over the last seconds, minute and hour,
	// as printed: "0.0", "0.083", "0.0014".
	Last, Minute, Hour string
	Total              uint64
}

// Total returns how often an event was counted; ok is false if the text doesn't list it.
// Where it has no unread lines it was never counted then.
func (r *CoverageReport) Total(name string) (n uint64, ok bool) {
	for i := range r.Events {
		if r.Events[i].Name == name {
			return r.Events[i].Total, true
		}
	}
	return 0, false
}

const (
	coverageHead  = "Event coverage, avg rate over last:"
	coverageHash  = "hash="
	coverageNever = " events never hit"
)

// String returns the report as OVS prints it.
func (r *CoverageReport) String() string {
	var b bytes.Buffer
	if r.Hash != "" {
		b.WriteString(coverageHead + " " + strconv.Itoa(r.Seconds) + " seconds, last minute, last hour,  " +
			coverageHash + r.Hash + ":\n")
	}
	for _, e := range r.Events {
		pad(&b, e.Name, -24)
		b.WriteByte(' ')
		pad(&b, e.Last, 5)
		b.WriteString("/sec ")
		pad(&b, e.Minute, 9)
		b.WriteString("/sec ")
		pad(&b, e.Hour, 13)
		b.WriteString("/sec   total: " + strconv.FormatUint(e.Total, 10) + "\n")
	}
	if r.Hash != "" {
		b.WriteString(strconv.Itoa(r.NeverHit) + coverageNever + "\n")
	}
	return b.String()
}

// ParseCoverage reads the output of coverage/show, which is the same in all versions
// since 2.0. It returns a [*SyntaxError] if the text is not empty and nothing can be read
// from it.
func ParseCoverage(text string) (*CoverageReport, error) {
	var r reader
	var report CoverageReport
	r.scan(text, func(_ int, s string) bool { return report.line(s) })
	unread, err := r.result(len(report.Events) > 0 || report.Hash != "", "coverage/show")
	if err != nil {
		return nil, err
	}
	report.Unread = unread
	return &report, nil
}

func (r *CoverageReport) line(s string) bool {
	if head, ok := strings.CutPrefix(s, coverageHead); ok {
		w := words(head)
		_, hash, ok := strings.Cut(head, coverageHash)
		hash = strings.Trim(strings.TrimSuffix(strings.Trim(hash, blanks), ":"), blanks)
		if r.Hash != "" || !ok || hash == "" || len(w) < 1 || !isDigits(w[0]) {
			return false
		}
		for i := range len(hash) {
			if !strings.ContainsRune("0123456789abcdefABCDEF", rune(hash[i])) {
				return false
			}
		}
		n, err := strconv.Atoi(w[0])
		if err != nil {
			return false
		}
		r.Seconds, r.Hash = n, hash
		return true
	}
	if never, ok := strings.CutSuffix(s, coverageNever); ok && r.Hash != "" && isDigits(never) {
		n, err := strconv.Atoi(never)
		if err != nil || r.NeverHit != 0 {
			return false
		}
		r.NeverHit = n
		return true
	}
	e, ok := parseCoverageEvent(s)
	if !ok {
		return false
	}
	if _, twice := r.Total(e.Name); twice {
		return false
	}
	r.Events = append(r.Events, e)
	return true
}

// parseCoverageEvent reads "NAME 0.0/sec 0.083/sec 0.0014/sec total: 5".
func parseCoverageEvent(s string) (e CoverageEvent, ok bool) {
	w := words(s)
	if len(w) != 6 || w[4] != "total:" || !isDigits(w[5]) || strings.Contains(w[0], ":") {
		return e, false
	}
	for i, rate := range [...]*string{&e.Last, &e.Minute, &e.Hour} {
		if *rate, ok = strings.CutSuffix(w[1+i], "/sec"); !ok || !isNumber(*rate) {
			return e, false
		}
	}
	n, err := strconv.ParseUint(w[5], 10, 64)
	e.Name, e.Total = w[0], n
	return e, err == nil
}
