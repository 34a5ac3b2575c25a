package appctl

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// pidfile is this process's locked pidfile. The lock lasts as long as the file
// is open, therefore whoever owns the pidfile must keep it referenced: the
// garbage collector closes files.
type pidfile struct {
	path string
	file *os.File
}

// access is who may use a file of the server besides its owner.
type access struct {
	mode fs.FileMode
	gid  int // -1 leaves the group as it is
}

// lockPidfile makes the file at path this process's pidfile: locked, still
// empty, and in the place of one whose process is dead. The error says who holds
// the name if a live process does.
func lockPidfile(path string, who access) (*pidfile, error) {
	// The file appears under its name only when it is locked, so that nobody
	// ever takes the pidfile of a starting process for a dead one's.
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, err
	}
	err = func() error {
		defer os.Remove(f.Name())
		if who.gid >= 0 {
			if err := f.Chown(-1, who.gid); err != nil {
				return err
			}
		}
		if err := f.Chmod(who.mode); err != nil {
			return err
		}
		lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
		if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &lock); err != nil {
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		return publish(f.Name(), path)
	}()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &pidfile{path: path, file: f}, nil
}

// write puts the process's number into the file, which is the sign that the
// server can be asked.
func (p *pidfile) write() error {
	_, err := fmt.Fprintf(p.file, "%d\n", os.Getpid())
	return err
}

// remove removes the file, if it still is the one at the path, and the lock.
func (p *pidfile) remove() error {
	var err error
	if same(p.file, p.path) {
		err = os.Remove(p.path)
	}
	return errors.Join(err, p.file.Close())
}

// same reports whether the open file is the one at path.
func same(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(open, there)
}

// publish moves the locked file temp to path, unless a live process has its
// pidfile there.
func publish(temp, path string) error {
	const attempts = 1000 // a second of others starting and stopping
	for range attempts {
		err := os.Link(temp, path)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		done, err := replaceStale(temp, path)
		if done || err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return fmt.Errorf("%s keeps changing hands", path)
}

// replaceStale moves temp over the pidfile at path, if that belongs to nobody.
// False without an error means that the file at path changed and the caller is to
// try again.
func replaceStale(temp, path string) (bool, error) {
	stale, own, err := openPidfile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case own:
		return false, fmt.Errorf("%s is in use by this process already", path)
	}
	defer stale.Close()
	return takeOver(stale, temp, path)
}

// takeOver is replaceStale for an open pidfile, which was the one at path.
func takeOver(stale *os.File, temp, path string) (bool, error) {
	// Two processes, or two servers in one process, may find the same stale file.
	// Only the holder of this second lock may replace it. (flock, unlike the
	// POSIX lock, also works between two descriptors of one process, and
	// ovs-appctl doesn't see it.)
	if err := unix.Flock(int(stale.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return false, nil
	}
	switch pid, locked, err := lockHolder(stale); {
	case err != nil:
		return false, err
	case locked:
		return false, fmt.Errorf("%s is in use by process %d, which is running", path, pid)
	}
	if !same(stale, path) {
		return false, nil
	}
	if err := os.Rename(temp, path); err != nil {
		return false, err
	}
	return true, nil
}

// readPidfile returns the process whose pidfile is at path. Like ovs-appctl it
// wants that process to hold the lock; if it doesn't the error is ESRCH.
func readPidfile(path string) (int, error) {
	f, own, err := openPidfile(path)
	if err != nil {
		return 0, err
	}
	if own {
		return os.Getpid(), nil
	}
	defer f.Close()
	holder, locked, err := lockHolder(f)
	if err != nil {
		return 0, err
	}
	if !locked {
		return 0, fmt.Errorf("%s: nobody holds its lock: %w", path, unix.ESRCH)
	}
	line, err := bufio.NewReader(io.LimitReader(f, 64)).ReadString('\n')
	if err != nil && err != io.EOF {
		return 0, err
	}
	pid, err := parsePid(line)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s: %w", path, err)
	case pid != holder:
		return 0, fmt.Errorf("%s: is of process %d but process %d holds its lock: %w", path, pid, holder, unix.ESRCH)
	}
	return pid, nil
}

// parsePid reads the line of a pidfile.
func parsePid(line string) (int, error) {
	line = strings.TrimSpace(line)
	pid, err := strconv.ParseInt(line, 10, 32)
	if err != nil || pid <= 0 {
		return 0, fmt.Errorf("%q is no process number", line)
	}
	return int(pid), nil
}

// lockHolder returns the process that holds the write lock on f. The number is
// 0 for a process of another pid namespace.
func lockHolder(f *os.File) (pid int, locked bool, err error) {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil {
		return 0, false, fmt.Errorf("look at the lock on %s: %w", f.Name(), err)
	}
	return int(lock.Pid), lock.Type != unix.F_UNLCK, nil
}

// openPidfile opens a pidfile for reading, unless it is locked by this very
// process: closing it would then drop the lock. own says that it is, the file is
// nil then.
func openPidfile(path string) (f *os.File, own bool, err error) {
	// A descriptor made with O_PATH holds the file but not its locks. Found by
	// way of it, the file opened is surely the one looked at.
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, false, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, false, fmt.Errorf("%s is not a regular file", path)
	}
	own, err = lockedHere(st.Dev, st.Ino)
	if own || err != nil {
		return nil, own, err
	}
	file, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, false, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(file), path), false, nil
}

// lockedHere reports whether this process holds a POSIX write lock on a file.
// F_GETLK doesn't tell, because a process's own locks never stand in its way.
func lockedHere(dev, ino uint64) (bool, error) {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return false, err
	}
	for _, e := range open {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Dev != dev || st.Ino != ino {
			continue
		}
		info, err := os.ReadFile("/proc/self/fdinfo/" + e.Name())
		if err != nil {
			continue // closed in the meantime
		}
		for line := range strings.Lines(string(info)) {
			// lock:	1: POSIX  ADVISORY  WRITE 5353 fe:00:9978675 0 EOF
			w := strings.Fields(line)
			if len(w) > 4 && w[0] == "lock:" && w[2] == "POSIX" && w[4] == "WRITE" {
				return true, nil
			}
		}
	}
	return false, nil
}
