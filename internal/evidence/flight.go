package evidence

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/investigate"
)

const (
	maxRecord   = 4 << 20  // bytes of a flight record's line: 2048 iterations need 600 kB
	maxDocument = 64 << 20 // bytes of a document that is no line
	maxLost     = 20
	maxLostText = 200
)

// json reads flight records, one a line, or a document that has them: the answer of
// pmdperf/events.
func (c *Collector) json(src int, r *bufio.Reader) error {
	s := c.Case.Source(src)
	var line []byte
	for number := 1; ; number++ {
		var long bool
		var err error
		line, long, err = readLine(r, line[:0])
		if len(line) == 0 && err != nil {
			return asEnd(err)
		}
		s.Lines = number
		text := bytes.TrimSpace(line)
		switch {
		case len(text) == 0:
		case long:
			lost(s, number, text)
		case number == 1 && !json.Valid(text):
			return c.document(src, io.MultiReader(bytes.NewReader(line), r))
		default:
			if c.events(src, number, text) != nil {
				lost(s, number, text)
			}
		}
		if err != nil {
			return asEnd(err)
		}
	}
}

func asEnd(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

func lost(s *investigate.Source, number int, text []byte) {
	s.Unread++
	if len(s.Lost) < maxLost {
		s.Lost = append(s.Lost, investigate.Lost{Line: number, Text: string(bytes.ToValidUTF8(text[:min(len(text), maxLostText)], []byte("\ufffd")))})
	}
}

// readLine appends a line to buf; of one that is too long only the beginning.
func readLine(r *bufio.Reader, buf []byte) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if room := maxRecord - len(buf); len(part) > room {
			part, long = part[:room], true
		}
		buf = append(buf, part...)
		if err != bufio.ErrBufferFull {
			return buf, long, err
		}
	}
}

// document reads a document of several lines.
func (c *Collector) document(src int, r io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err != nil {
		return err
	}
	s := c.Case.Source(src)
	s.Lines = bytes.Count(text, []byte("\n"))
	if len(text) > maxDocument {
		return fmt.Errorf("a JSON document of more than %d MB: flight records are one a line", maxDocument>>20)
	}
	// Several documents may follow each other.
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		var raw json.RawMessage
		at := 1 + bytes.Count(text[:d.InputOffset()], []byte("\n"))
		if err := d.Decode(&raw); err == io.EOF {
			return nil
		} else if err != nil {
			lost(s, at, text[d.InputOffset():])
			return nil
		}
		if c.events(src, at, raw) != nil {
			lost(s, at, raw)
		}
	}
}

// events adds what a JSON value has: a flight record, a list of them, or a document with
// a list.
func (c *Collector) events(src, line int, text []byte) error {
	var many []suspicious.FlightRecord
	if text[0] == '[' {
		if err := json.Unmarshal(text, &many); err != nil {
			return err
		}
	} else {
		var one struct {
			suspicious.FlightRecord
			Events []suspicious.FlightRecord `json:"events"`
		}
		if err := json.Unmarshal(text, &one); err != nil {
			return err
		}
		many = one.Events
		if one.Events == nil {
			many = []suspicious.FlightRecord{one.FlightRecord}
		}
	}
	for i := range many {
		f := &many[i]
		if f.Version != suspicious.FlightVersion || len(f.Reasons) == 0 {
			return fmt.Errorf("no flight record of version %d", suspicious.FlightVersion)
		}
		c.Case.AddFlight(src, line, f)
	}
	return nil
}
