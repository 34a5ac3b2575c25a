package evidence

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pmdperf/pmdperf/suspicious/investigate"
	"github.com/pmdperf/pmdperf/suspicious/ovslog"
)

const (
	maxCounters     = 512 << 20 // bytes of a file of counters
	maxCounterLine  = 1 << 20
	maxSeries       = 4096 // that are looked at; only those that changed are handed on
	maxSeriesPoints = 1 << 20
)

// AddCounters reads a file of counters with times. An error means that the context is
// done; what could not be read is in Failed.
func (c *Collector) AddCounters(ctx context.Context, name string) error {
	var r io.Reader = c.Stdin
	if name != "-" {
		f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			c.fail(name, err)
			return nil
		}
		defer f.Close()
		r = f
	}
	src := c.Case.AddSource(name)
	err := c.readCounters(src, &guard{r: r, ctx: ctx})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch {
	case err == nil:
		c.Read++
	default:
		c.Case.Source(src).Error = err.Error()
		c.fail(name, err)
	}
	return nil
}

func (c *Collector) readCounters(src int, r io.Reader) error {
	plain, err := ovslog.Decode(r)
	if err != nil {
		return err
	}
	limited := &io.LimitedReader{R: plain, N: maxCounters}
	b := bufio.NewReaderSize(limited, headSize)
	head, err := b.Peek(headSize)
	if err != nil && err != io.EOF && len(head) == 0 {
		return err
	}
	s := &series{source: c.Case.Source(src)}
	trimmed := bytes.TrimLeft(head, " \t\r\n\ufeff")
	switch {
	case len(trimmed) == 0:
		return fmt.Errorf("%w: it is empty", ErrNothing)
	case binary(head):
		return fmt.Errorf("%w: it is binary", ErrNothing)
	case trimmed[0] == '{' && bytes.Contains(head, []byte(`"values"`)):
		err = s.prometheus(b)
	case isCSV(trimmed):
		err = s.csv(b)
	default:
		err = s.pairs(b)
	}
	if limited.N == 0 {
		err = errors.Join(err, fmt.Errorf("only the first %d MB were read", maxCounters>>20))
	}
	if len(s.order) == 0 {
		if err == nil {
			err = fmt.Errorf("%w: no counter with a time", ErrNothing)
		}
		return err
	}
	for _, name := range s.order {
		if one := s.byName[name].done(); len(one.Points) > 0 {
			c.Case.AddSeries(src, one)
		}
	}
	return err
}

// series collects counters.
type series struct {
	source *investigate.Source
	byName map[string]*one
	order  []string
}

// one counter: of a run of equal values only the first and the last point is kept.
type one struct {
	investigate.Series
	full bool
}

func (s *series) add(line int, name string, at time.Time, v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) || name == "" || at.IsZero() {
		return
	}
	o := s.byName[name]
	if o == nil {
		if len(s.order) >= maxSeries {
			return
		}
		if s.byName == nil {
			s.byName = make(map[string]*one)
		}
		name = strings.ToValidUTF8(strings.Clone(name[:min(len(name), 200)]), "\ufffd")
		o = &one{Series: investigate.Series{Name: name, Place: investigate.Place{Line: line}}}
		s.byName[name] = o
		s.order = append(s.order, name)
	}
	p := investigate.Point{Time: at, Value: v}
	n := len(o.Points)
	if n >= 2 && o.Points[n-1].Value == v && o.Points[n-2].Value == v && o.Points[n-1].Time.Before(at) {
		o.Points[n-1] = p
		return
	}
	if n >= maxSeriesPoints {
		o.full = true
		return
	}
	o.Points = append(o.Points, p)
}

// done returns the counter with its points in the order of their times and no more of
// them than a case takes.
func (o *one) done() investigate.Series {
	slices.SortStableFunc(o.Points, func(a, b investigate.Point) int { return a.Time.Compare(b.Time) })
	for len(o.Points) > investigate.MaxPoints {
		// Every other one: a rise gets twice as wide.
		kept := o.Points[:0]
		for i, p := range o.Points {
			if i%2 == 0 || i == len(o.Points)-1 {
				kept = append(kept, p)
			}
		}
		o.Points = kept
	}
	return o.Series
}

// prometheus reads the answer to a range query.
func (s *series) prometheus(r io.Reader) error {
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Values [][2]any          `json:"values"`
			} `json:"result"`
		} `json:"data"`
	}
	const most = 64 << 20
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return err
	}
	if len(text) > most {
		return fmt.Errorf("a JSON document of more than %d MB", most>>20)
	}
	s.source.Lines = bytes.Count(text, []byte("\n"))
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("not the answer to a range query: %w", err)
	}
	for _, m := range answer.Data.Result {
		name := metricName(m.Metric)
		for _, v := range m.Values {
			at, ok1 := v[0].(float64)
			text, ok2 := v[1].(string)
			value, err := strconv.ParseFloat(text, 64)
			if !ok1 || !ok2 || err != nil {
				s.source.Unread++
				continue
			}
			s.add(1, name, seconds(at), value)
		}
	}
	return nil
}

func metricName(labels map[string]string) string {
	name := labels["__name__"]
	var keys []string
	for k := range labels {
		if k != "__name__" && k != "job" && k != "instance" {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%s=%q", k, labels[k])
	}
	if len(keys) > 0 {
		name += "{" + strings.Join(keys, ",") + "}"
	}
	return name
}

func seconds(v float64) time.Time {
	if !(v > 0 && v < 1<<40) {
		return time.Time{}
	}
	whole, part := math.Modf(v)
	return time.Unix(int64(whole), int64(part*1e9)).UTC()
}

func isCSV(head []byte) bool {
	first, rest, _ := bytes.Cut(head, []byte("\n"))
	second, _, _ := bytes.Cut(rest, []byte("\n"))
	n := bytes.Count(first, []byte(","))
	if n == 0 || bytes.Count(second, []byte(",")) != n || bytes.ContainsAny(first, "{") {
		return false
	}
	at, _, _ := bytes.Cut(second, []byte(","))
	_, ok := parseTime(strings.Trim(strings.TrimSpace(string(at)), `"`))
	return ok
}

func (s *series) csv(r io.Reader) error {
	c := csv.NewReader(&lineLimit{r: r})
	c.ReuseRecord = true
	c.FieldsPerRecord = -1
	c.TrimLeadingSpace = true
	c.LazyQuotes = true
	var names []string
	for {
		fields, err := c.Read()
		if err == io.EOF {
			return nil
		}
		if parse := (*csv.ParseError)(nil); errors.As(err, &parse) {
			lost(s.source, parse.Line, []byte(parse.Err.Error()))
			continue
		} else if err != nil {
			return err
		}
		line, _ := c.FieldPos(0)
		s.source.Lines = line
		if names == nil {
			for _, f := range fields {
				names = append(names, strings.Clone(strings.TrimSpace(f)))
			}
			continue
		}
		at, ok := parseTime(strings.TrimSpace(fields[0]))
		if !ok {
			lost(s.source, line, []byte(strings.Join(fields, ",")))
			continue
		}
		for i := 1; i < len(fields) && i < len(names); i++ {
			text := strings.TrimSpace(fields[i])
			if text == "" {
				continue
			}
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				lost(s.source, line, []byte(strings.Join(fields, ",")))
				break
			}
			s.add(line, names[i], at, v)
		}
	}
}

// A lineLimit fails when a line gets too long to be one.
type lineLimit struct {
	r io.Reader
	n int
}

func (l *lineLimit) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if i := bytes.LastIndexByte(p[:n], '\n'); i >= 0 {
		l.n = n - i
	} else if l.n += n; l.n > maxCounterLine {
		return n, fmt.Errorf("a line of more than %d kB", maxCounterLine>>10)
	}
	return n, err
}

var (
	// The lines of ethtool -S: "     rx_missed_errors: 12".
	pair = regexp.MustCompile(`^\s*([A-Za-z_][^:={}]*?)\s*[:=]\s*(-?\d+(?:\.\d+)?)\s*$`)
	// ovs-vsctl: {collisions=0, rx_bytes=12, ...}.
	braces = regexp.MustCompile(`\{([^{}]*=[^{}]*)\}`)
	in     = regexp.MustCompile(`([A-Za-z_][\w.\-]*)\s*=\s*"?(-?\d+)"?`)
	nic    = regexp.MustCompile(`NIC statistics`)
	// A line that names an interface: "dpdk0", "# dpdk0", "interface: dpdk0".
	named = regexp.MustCompile(`^\s*(?:#+\s*|(?i:interface|port|name)\s*[:=]?\s*)?"?([A-Za-z][\w.\-]{0,30})"?\s*:?\s*$`)
)

// pairs reads readings of counters that follow lines with times.
func (s *series) pairs(r *bufio.Reader) error {
	var at time.Time
	iface := ""
	var buf []byte
	for number := 1; ; number++ {
		var err error
		var long bool
		buf, long, err = readLine(r, buf[:0])
		if len(buf) == 0 && err != nil {
			return asEnd(err)
		}
		s.source.Lines = number
		line := strings.TrimSpace(string(buf[:min(len(buf), maxCounterLine)]))
		if !long {
			s.pairLine(number, line, &at, &iface)
		}
		if err != nil {
			return asEnd(err)
		}
	}
}

func (s *series) pairLine(number int, line string, at *time.Time, iface *string) {
	of := func(name string) string {
		if *iface == "" {
			return name
		}
		return name + " of " + *iface
	}
	if line == "" || nic.MatchString(line) {
		return
	}
	before, _, _ := strings.Cut(line, "{")
	t, rest, timed := leadingTime(before)
	if timed {
		*at = t
		if n := named.FindStringSubmatch(rest); n != nil {
			*iface = n[1]
		}
	}
	found := timed
	for _, m := range braces.FindAllStringSubmatch(line, -1) {
		for _, kv := range in.FindAllStringSubmatch(m[1], -1) {
			if v, err := strconv.ParseFloat(kv[2], 64); err == nil {
				found = true
				s.add(number, of(kv[1]), *at, v)
			}
		}
	}
	switch {
	case found:
	case pair.MatchString(line):
		m := pair.FindStringSubmatch(line)
		if v, err := strconv.ParseFloat(m[2], 64); err == nil {
			s.add(number, of(m[1]), *at, v)
		}
	case named.MatchString(line):
		*iface = named.FindStringSubmatch(line)[1]
	default:
		lost(s.source, number, []byte(line))
	}
}

// leadingTime reads a time at the beginning of a line, and returns what stands behind it.
func leadingTime(line string) (t time.Time, rest string, ok bool) {
	line = strings.TrimLeft(line, "#=-[ \t")
	fields := strings.Fields(line)
	// The longest that is a time: "date" prints six words.
	for n := min(len(fields), 7); n > 0; n-- {
		if t, ok := parseTime(strings.TrimRight(strings.Join(fields[:n], " "), "]:=-# ")); ok {
			return t, strings.Trim(strings.Join(fields[n:], " "), "]=-# "), true
		}
	}
	return t, "", false
}

// parseTime reads a time in any of the usual forms. Without a zone it is UTC, as in logs
// of Open vSwitch.
func parseTime(s string) (time.Time, bool) {
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		switch { // since 1970, in seconds, ms, us or ns; from 2001 on, so that no counter is taken for a time
		case v >= 1e9 && v < 1e10:
		case v >= 1e12 && v < 1e13:
			v /= 1e3
		case v >= 1e15 && v < 1e16:
			v /= 1e6
		case v >= 1e18 && v < 1e19:
			v /= 1e9
		default:
			return time.Time{}, false
		}
		return seconds(v), true
	}
	if len(s) < 8 || len(s) > 40 {
		return time.Time{}, false
	}
	for _, layout := range [...]string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00",
		"2006-01-02T15:04:05.999999999-0700", "2006-01-02 15:04:05.999999999 -0700", "2006/01/02 15:04:05.999999999",
		time.UnixDate, time.ANSIC, time.RFC1123, time.RFC1123Z, "Mon Jan _2 03:04:05 PM MST 2006", "Mon 02 Jan 2006 03:04:05 PM MST", "Mon Jan _2 15:04:05 MST 2006",
	} {
		if t, err := time.Parse(layout, s); err == nil && t.Year() > 1970 {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}
