package appctl

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// textReader cuts a stream into JSON objects, none longer than max bytes with the
// white space before it. It keeps little more than that in memory.
type textReader struct {
	dec *json.Decoder
	src limitedReader
	max int64
}

// limitedReader reads no more than its allowance, which textReader renews.
type limitedReader struct {
	r         io.Reader
	total     int64 // bytes read so far
	allowance int64
}

var (
	errTooLong  = errors.New("message too long")
	errNoObject = errors.New("not a JSON object")
)

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.allowance <= 0 {
		return 0, errTooLong
	}
	if int64(len(p)) > l.allowance {
		p = p[:l.allowance]
	}
	n, err := l.r.Read(p)
	l.total += int64(n)
	l.allowance -= int64(n)
	return n, err
}

func newTextReader(r io.Reader, max int64) *textReader {
	t := &textReader{src: limitedReader{r: r}, max: max}
	t.dec = json.NewDecoder(&t.src)
	return t
}

// next returns the text of the next object, in memory of its own. After an error,
// io.EOF for the end between two objects, there is no next one.
func (t *textReader) next() ([]byte, error) {
	// What the decoder has read ahead counts too.
	t.src.allowance = t.max - (t.src.total - t.dec.InputOffset())
	// The decoder would wait for what follows a string or a number. Nothing but an
	// object is of use, so this needn't.
	if t.dec.More() {
		var first [1]byte
		if t.dec.Buffered().Read(first[:]); first[0] != '{' {
			return nil, errNoObject
		}
	}
	var text json.RawMessage
	if err := t.dec.Decode(&text); err != nil {
		return nil, err
	}
	return text, nil
}

// message is a request or a reply, its members as received. A member that is
// null counts as one that is not there, as it does for Open vSwitch.
type message map[string]json.RawMessage

// parseMessage takes a text apart that textReader has returned.
func parseMessage(text []byte) (message, error) {
	if badEscape(text) >= 0 {
		return nil, errors.New(`\u0000 or half a surrogate pair in a string`)
	}
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	for name, value := range m {
		switch name {
		case "id", "method", "params", "result", "error":
			if string(value) == "null" {
				delete(m, name)
			}
		default:
			return nil, fmt.Errorf("unknown member %q", name)
		}
	}
	return m, nil
}

// request is a call of a command.
type request struct {
	id     json.RawMessage
	method string
	params []json.RawMessage
}

// parseRequest understands a text that textReader has returned. Whatever it
// refuses has to be answered by closing the connection.
func parseRequest(text []byte) (request, error) {
	m, err := parseMessage(text)
	if err != nil {
		return request{}, err
	}
	id, method, params := m["id"], m["method"], m["params"]
	switch {
	case m["result"] != nil || m["error"] != nil:
		return request{}, errors.New("a reply, not a request")
	case id == nil:
		return request{}, errors.New("no id")
	case method == nil || method[0] != '"':
		return request{}, errors.New("no method")
	case params == nil || params[0] != '[':
		return request{}, errors.New("no array of params")
	}
	r := request{id: id, method: unquote(method)}
	if err := json.Unmarshal(params, &r.params); err != nil {
		return request{}, err
	}
	return r, nil
}

// appendRequest appends a request to dst.
func appendRequest(dst []byte, id json.RawMessage, method string, args []string) []byte {
	dst = append(dst, `{"id":`...)
	dst = append(dst, id...)
	dst = append(dst, `,"method":`...)
	dst = appendQuoted(dst, method)
	dst = append(dst, `,"params":[`...)
	for i, arg := range args {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendQuoted(dst, arg)
	}
	return append(dst, `]}`...)
}

// appendResult appends a reply with a result, any JSON value, to dst.
func appendResult(dst []byte, id, result json.RawMessage) []byte {
	dst = append(appendResultHead(dst, id), result...)
	return append(dst, resultTail...)
}

// resultTail follows the result in a reply.
const resultTail = `,"error":null}`

func appendResultHead(dst []byte, id json.RawMessage) []byte {
	dst = append(dst, `{"id":`...)
	dst = append(dst, id...)
	return append(dst, `,"result":`...)
}

// appendError appends a reply with an error to dst.
func appendError(dst []byte, id json.RawMessage, text string) []byte {
	dst = append(dst, `{"id":`...)
	dst = append(dst, id...)
	dst = append(dst, `,"error":`...)
	dst = appendQuoted(dst, withNewline(text))
	return append(dst, '}')
}
