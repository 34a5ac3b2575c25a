package appctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Defaults of Config.
const (
	DefaultMaxConns     = 1000
	DefaultMaxRequest   = 64 << 10
	DefaultMaxPending   = 64 << 20
	DefaultWriteTimeout = 10 * time.Second
)

// Config says where a server is found and what it allows. The zero value of
// every field but Name is useful.
type Config struct {
	// Name is the name to find the server by: it owns NAME.pid and NAME.PID.ctl
	// in the run directory.
	Name string

	// RunDir is the directory for the two files, which has to exist. The
	// default is that of the function RunDir.
	RunDir string

	// Program and Version make up the answer to the command version. The
	// defaults are Name and "unknown".
	Program, Version string

	// Group, a name or a number, is the group whose members may connect too. By
	// default only the owner may: the socket has mode 0750, and connecting takes
	// the right to write. With a group it has 0770.
	Group string

	// Exit, if not nil, is called after the command exit, which exists only
	// then, has been answered. It must return soon and must not call Close;
	// cancelling a context is what it is for.
	Exit func()

	// MaxConns is the number of connections at one time. When one more comes, the
	// oldest that never sent a request is closed, or else the one that has been
	// idle for longest. The new one waits until the oldest has had a quarter of a
	// second to send its request. The default is DefaultMaxConns.
	MaxConns int

	// MaxRequest is the size of a request in bytes. A longer one closes its
	// connection. The default is DefaultMaxRequest.
	MaxRequest int

	// MaxPending is how many bytes of replies, of all connections together, may
	// wait for clients to read them. Beyond that the client that has been
	// reading for longest is cut off. The default is DefaultMaxPending.
	MaxPending int

	// WriteTimeout is how long a client may take to read a reply before its
	// connection is closed. The default is DefaultWriteTimeout.
	WriteTimeout time.Duration

	// IdleTimeout closes a connection on which no request was completed for
	// that long. The default, 0, is never: exporters stay connected.
	IdleTimeout time.Duration

	// Log, if not nil, is told of what no client is: commands that panic and
	// connections that can't be accepted.
	Log *slog.Logger
}

func (c *Config) setDefaults() error {
	if c.RunDir == "" {
		c.RunDir = RunDir()
	}
	dir, err := filepath.Abs(c.RunDir)
	if err != nil {
		return err
	}
	c.RunDir = dir
	if c.Name == "" || c.Name == "." || c.Name == ".." || strings.ContainsAny(c.Name, "/\x00") {
		return fmt.Errorf("%q can't be the name of a server", c.Name)
	}
	if c.MaxConns < 0 || c.MaxRequest < 0 || c.MaxPending < 0 || c.WriteTimeout < 0 || c.IdleTimeout < 0 {
		return errors.New("a limit is negative")
	}
	if c.Program == "" {
		c.Program = c.Name
	}
	if c.Version == "" {
		c.Version = "unknown"
	}
	if c.MaxConns == 0 {
		c.MaxConns = DefaultMaxConns
	}
	if c.MaxRequest == 0 {
		c.MaxRequest = DefaultMaxRequest
	}
	if c.MaxPending == 0 {
		c.MaxPending = DefaultMaxPending
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = DefaultWriteTimeout
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// access returns the rights on the socket and on the pidfile. ovs-appctl opens
// the pidfile for reading and writing, so the group needs both on it.
func (c *Config) access() (socket, pid access, err error) {
	if c.Group == "" {
		return access{0o750, -1}, access{0o644, -1}, nil
	}
	gid, err := strconv.Atoi(c.Group)
	if err != nil {
		g, err := user.LookupGroup(c.Group)
		if err != nil {
			return access{}, access{}, err
		}
		if gid, err = strconv.Atoi(g.Gid); err != nil {
			return access{}, access{}, err
		}
	}
	if gid < 0 {
		return access{}, access{}, fmt.Errorf("%d is no group", gid)
	}
	return access{0o770, gid}, access{0o664, gid}, nil
}

// Server answers commands until it is closed. Its methods are safe for
// concurrent use.
type Server struct {
	cfg      Config
	commands commandSet
	path     string
	pidfile  *pidfile
	listener *net.UnixListener
	peers    *peers
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup
	close    func() error
}

// Listen starts a server for the commands given and the built-in ones:
// list-commands, version, set-options and, with Config.Exit, exit. It replaces
// what servers of the same name that are dead have left behind, and fails if one
// is alive.
func Listen(cfg Config, commands ...Command) (*Server, error) {
	s, err := listen(cfg, commands)
	if err != nil {
		return nil, fmt.Errorf("appctl: serve %s: %w", cfg.Name, err)
	}
	return s, nil
}

func listen(cfg Config, commands []Command) (_ *Server, err error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	forSocket, forPid, err := cfg.access()
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg:      cfg,
		commands: commandSet{},
		path:     socketPath(cfg.RunDir, cfg.Name, os.Getpid()),
		peers:    newPeers(cfg.MaxConns, cfg.MaxPending),
	}
	// The form is that of Open vSwitch: program (package) version.
	version := fmt.Sprintf("%s (pmdperf) %s", cfg.Program, cfg.Version)
	for _, c := range append(s.commands.builtin(version, cfg.Exit != nil), commands...) {
		if err := s.commands.add(c); err != nil {
			return nil, err
		}
	}
	if err := checkSocketPath(s.path); err != nil {
		return nil, err
	}

	// The lock on the pidfile is what makes the name ours. Nothing of another
	// server is touched without it.
	s.pidfile, err = lockPidfile(filepath.Join(cfg.RunDir, cfg.Name+".pid"), forPid)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.pidfile.remove()
		}
	}()
	if err := removeDeadSockets(cfg.RunDir, cfg.Name); err != nil {
		return nil, err
	}
	s.listener, err = listenAt(s.path, forSocket)
	if err != nil {
		return nil, err
	}
	if err := s.pidfile.write(); err != nil {
		s.listener.Close()
		os.Remove(s.path)
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.close = sync.OnceValue(s.shutDown)
	s.running.Go(s.accept)
	return s, nil
}

// SocketPath returns the absolute path of the server's socket.
func (s *Server) SocketPath() string { return s.path }

// PidfilePath returns the absolute path of the server's pidfile. The process
// itself must never open it: see the package's documentation.
func (s *Server) PidfilePath() string { return s.pidfile.path }

// Close ends all connections, waits for commands under way, whose contexts end,
// and removes the socket and the pidfile. Every call returns the same.
func (s *Server) Close() error { return s.close() }

func (s *Server) shutDown() error {
	err := os.Remove(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // a cleaner of the directory was quicker
	}
	err = errors.Join(err, s.listener.Close())
	s.peers.close() // before commands learn of the end, so that none says so
	s.cancel()
	s.running.Wait()
	if err = errors.Join(err, s.pidfile.remove()); err != nil {
		return fmt.Errorf("appctl: close: %w", err)
	}
	return nil
}

func (s *Server) accept() {
	const pause = 10 * time.Millisecond
	sleep := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-s.ctx.Done():
		}
	}
	failing := false
	for {
		conn, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			// Mostly a lack of file descriptors, of which Linux complains even
			// if nobody wants to connect. The process may free some. If not, a
			// connection that was never used can go, but not at once: the
			// latest has had no time yet to say what it wants.
			if failing {
				s.peers.relieve()
			} else {
				s.cfg.Log.Warn("appctl: accept a connection", "error", err)
			}
			failing = true
			sleep(pause)
			continue
		}
		failing = false
		// Another may end by itself meanwhile.
		for wait := s.peers.wait(time.Now()); wait > 0; wait = s.peers.wait(time.Now()) {
			sleep(min(wait, pause))
		}
		if p := s.peers.add(conn); p != nil {
			s.running.Go(func() { s.serve(p) })
		}
	}
}
