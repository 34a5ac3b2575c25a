package appctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxReply is the size in bytes of the longest reply that a client takes. The
// longest that is of use, every table of a large ovs-vswitchd, has some tens of
// megabytes.
const maxReply = 256 << 20

// ServerError is a server's answer that it could not or would not do what it
// was asked. The connection is as good as before.
type ServerError struct {
	Method string // the command
	Text   string // as the server sent it, mostly with a newline at the end
}

// Error returns the server's text without the newline at its end.
func (e *ServerError) Error() string { return strings.TrimSuffix(e.Text, "\n") }

// Client is a connection to a server. It is not safe for concurrent use.
type Client struct {
	conn  net.Conn
	texts *textReader
	id    int
	json  bool
}

// Dial connects to the server that target means in the default run directory
// (see Resolve, which also takes another one). A server whose
// queue of connections is full is tried again until the context ends.
func Dial(ctx context.Context, target string) (*Client, error) {
	path, err := Resolve("", target)
	if err != nil {
		return nil, err
	}
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		switch {
		case err == nil:
			return &Client{conn: conn, texts: newTextReader(conn, maxReply)}, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("appctl: connect to %s: %w", path, ctx.Err())
		case !errors.Is(err, unix.EAGAIN):
			return nil, fmt.Errorf("appctl: cannot connect to %q: %w", path, cause(err))
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// cause strips package net's words from an error, which repeat the path.
func cause(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }

// LimitReply makes replies of more than that many bytes, as they are sent, an error. The
// limit is 256 MB otherwise.
func (c *Client) LimitReply(bytes int64) { c.texts.max = bytes }

// SetJSON makes later calls return JSON. Servers of Open vSwitch before 3.4 do
// not know how to and answer with a *ServerError; calls return text then, as
// before.
func (c *Client) SetJSON(ctx context.Context) error {
	_, err := c.call(ctx, setOptions, []string{"--format", "json"})
	c.json = c.json || err == nil
	return err
}

// Call has the server run a command and returns its result: text, or a JSON
// value after SetJSON. What is not empty ends with a newline. If the server
// answered with an error, it is returned as a *ServerError. After any other
// error the connection is closed, and reconnecting is up to the caller; it wraps
// the context's error if the context ended before the reply was there, and io.EOF
// if the server closed the connection, as it does when it can't make sense of the
// request or when it ends.
func (c *Client) Call(ctx context.Context, method string, args ...string) (string, error) {
	result, err := c.call(ctx, method, args)
	if err != nil {
		return "", err
	}
	if c.json {
		return string(result) + "\n", nil
	}
	if result[0] != '"' {
		c.conn.Close()
		return "", fmt.Errorf("appctl: %s: the result is not a string", method)
	}
	return withNewline(unquote(result)), nil
}

func (c *Client) call(ctx context.Context, method string, args []string) (json.RawMessage, error) {
	for _, s := range append([]string{method}, args...) {
		if strings.IndexByte(s, 0) >= 0 {
			return nil, fmt.Errorf("appctl: %s: %q has a NUL byte", method, s)
		}
	}
	result, err := c.transact(ctx, method, args)
	if err == nil {
		return result, nil
	}
	if e, ok := errors.AsType[*ServerError](err); ok {
		return nil, e
	}
	// Whatever arrives now answers a call that nobody waits for.
	c.conn.Close()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return nil, fmt.Errorf("appctl: %s: %w", method, err)
}

func (c *Client) transact(ctx context.Context, method string, args []string) (json.RawMessage, error) {
	if err := c.conn.SetDeadline(time.Time{}); err != nil {
		return nil, cause(err)
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		c.conn.SetDeadline(time.Unix(1, 0)) // wakes the reader or writer
		close(ended)
	})
	defer func() {
		if !stop() {
			<-ended // or it might hit the next call
		}
	}()

	c.id++
	id := strconv.Itoa(c.id)
	if _, err := c.conn.Write(appendRequest(nil, json.RawMessage(id), method, args)); err != nil {
		return nil, cause(err)
	}
	text, err := c.texts.next()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("the server closed the connection: %w", io.EOF)
	case err != nil:
		return nil, cause(err)
	}
	m, err := parseMessage(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the reply is wrong: %w", err)
	case m["method"] != nil || m["params"] != nil:
		return nil, errors.New("got a request instead of a reply")
	case string(m["id"]) != id:
		return nil, errors.New("got a reply to something else")
	case m["error"] == nil && m["result"] == nil:
		return nil, errors.New("the reply has neither a result nor an error")
	case m["error"] == nil:
		return m["result"], nil
	case m["error"][0] != '"':
		return nil, errors.New("the error in the reply is not a string")
	}
	return nil, &ServerError{Method: method, Text: unquote(m["error"])}
}

// ExitCode returns the status with which ovs-appctl ends where a call returned
// err: 0 without an error, 2 if the server answered with one, 142 (as a shell
// shows the death by SIGALRM) if the time of -T ran out, which is the context's
// deadline here, and 1 for all else.
func ExitCode(err error) int {
	switch _, fromServer := errors.AsType[*ServerError](err); {
	case err == nil:
		return 0
	case fromServer:
		return 2
	case errors.Is(err, context.DeadlineExceeded):
		return 142
	}
	return 1
}
