package appctl

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the longest path of a socket in bytes: sun_path holds 108
// with the NUL at its end (unix(7)).
const maxSocketPath = 107

func checkSocketPath(path string) error {
	if len(path) > maxSocketPath {
		return fmt.Errorf("socket path %s has %d bytes, at most %d are possible", path, len(path), maxSocketPath)
	}
	return nil
}

// socketPath is where the server called name, running as process pid, listens.
func socketPath(runDir, name string, pid int) string {
	return filepath.Join(runDir, fmt.Sprintf("%s.%d.ctl", name, pid))
}

// listenAt makes a listening socket at path, where no file may be.
func listenAt(path string, who access) (_ *net.UnixListener, err error) {
	if err := checkSocketPath(path); err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close() // the listener has a descriptor of its own
	// Linux gives the file the mode that the socket has, less the umask, so that
	// there is no moment with more than the owner's rights before the right mode
	// is set; and nobody can connect before the listen anyway.
	if err := unix.Fchmod(fd, 0o600); err != nil {
		return nil, fmt.Errorf("set the mode of a socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return nil, fmt.Errorf("bind to %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			os.Remove(path)
		}
	}()
	if who.gid >= 0 {
		if err := os.Lchown(path, -1, who.gid); err != nil {
			return nil, err
		}
	}
	if err := os.Chmod(path, who.mode); err != nil {
		return nil, err
	}
	const backlog = 4096 // the kernel lowers it to net.core.somaxconn
	if err := unix.Listen(fd, backlog); err != nil {
		return nil, fmt.Errorf("listen at %s: %w", path, err)
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", path, err)
	}
	return l.(*net.UnixListener), nil
}

// removeDeadSockets removes the sockets that dead servers called name have left
// behind. A live one, say of a process in another pid namespace, stays.
func removeDeadSockets(runDir, name string) error {
	entries, err := os.ReadDir(runDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		middle, ok := strings.CutPrefix(e.Name(), name+".")
		if !ok {
			continue
		}
		number, ok := strings.CutSuffix(middle, ".ctl")
		if !ok || e.Type()&os.ModeSocket == 0 {
			continue
		}
		pid, err := parsePid(number)
		if err != nil || e.Name() != fmt.Sprintf("%s.%d.ctl", name, pid) {
			continue
		}
		path := filepath.Join(runDir, e.Name())
		if !refusesConnections(path) {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// refusesConnections reports whether no process listens at the socket at path.
func refusesConnections(path string) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: path}) == unix.ECONNREFUSED
}
