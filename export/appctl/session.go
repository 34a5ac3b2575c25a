package appctl

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// session is the state of one connection.
type session struct {
	server *Server
	json   bool   // set-options asked for JSON
	buffer []byte // memory for replies, which would keep the garbage collector busy
}

// maxBuffer is how much memory for replies a connection keeps: enough for the default show
// of two PMDs, and little enough for a thousand connections.
const maxBuffer = 16 << 10

// serve answers the requests of one connection until it ends.
func (s *Server) serve(p *peer) {
	defer s.peers.remove(p)
	se := session{server: s}
	texts := newTextReader(p.conn, int64(s.cfg.MaxRequest))
	for {
		if s.cfg.IdleTimeout > 0 {
			p.conn.SetReadDeadline(time.Now().Add(s.cfg.IdleTimeout))
		}
		text, err := texts.next()
		if err != nil {
			return
		}
		r, err := parseRequest(text)
		if err != nil {
			return
		}
		s.peers.enter(p, working, 0)
		reply, failed := se.answer(s.ctx, r)
		s.peers.enter(p, writing, len(reply))
		p.conn.SetWriteDeadline(time.Now().Add(s.cfg.WriteTimeout))
		_, err = p.conn.Write(reply)
		if r.method == exit && failed == nil {
			s.cfg.Exit() // even if the client didn't wait for the answer
		}
		if err != nil {
			return
		}
		s.peers.enter(p, idle, 0)
		if se.buffer = reply[:0]; cap(reply) > maxBuffer {
			se.buffer = nil
		}
	}
}

// answer carries out a request and returns the reply, and the error if the reply
// is one. The reply is in the session's buffer.
func (se *session) answer(ctx context.Context, r request) (reply []byte, err error) {
	c, args, err := se.server.commands.find(r)
	if err == nil {
		reply, err = se.run(ctx, r.id, c, args)
	}
	if err != nil {
		return appendError(se.buffer[:0], r.id, err.Error()), err
	}
	return reply, nil
}

// run runs a command and returns the reply with its result. A command that panics is
// an error: a defect in what shows a packet loop must not end the loop.
func (se *session) run(ctx context.Context, id json.RawMessage, c Command, args []string) (reply []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			se.server.cfg.Log.Error("appctl: command panicked", "command", c.Name, "panic", v, "stack", string(debug.Stack()))
			reply, err = nil, fmt.Errorf(`"%s" command failed: %v`, c.Name, v)
		}
	}()
	if c.Name == setOptions {
		asJSON, err := parseFormat(args)
		if err != nil {
			return nil, err
		}
		se.json = asJSON
	}
	if se.json && c.JSON != nil {
		v, err := c.JSON(ctx, args)
		if err != nil {
			return nil, err
		}
		result, err := marshal(v)
		if err != nil {
			return nil, err
		}
		return appendResult(slices.Grow(se.buffer[:0], len(result)+64), id, result), nil
	}
	t := textWriter{reply: appendResultHead(se.buffer[:0], id)}
	if se.json {
		t.reply = append(t.reply, wrapHead...)
	}
	t.begin()
	if err := c.Text(ctx, &t, args); err != nil {
		return nil, err
	}
	t.end()
	if se.json {
		t.reply = append(t.reply, wrapTail...)
	}
	return append(t.reply, resultTail...), nil
}

// A text stands between these where a command has no JSON form, as Open vSwitch has it.
const (
	wrapHead = `{"reply-format":"plain","reply":`
	wrapTail = `}`
)

// marshal is json.Marshal without the escaping for HTML and without what Open
// vSwitch's JSON parser refuses. Nothing at all becomes an empty text, since a
// reply whose result is null is not one.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	text := dropBadEscapes(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
	if string(text) == "null" {
		return json.RawMessage(wrapHead + `""` + wrapTail), nil
	}
	return text, nil
}
