package appctl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParsePid(t *testing.T) {
	for in, want := range map[string]int{
		"1\n": 1, " 42 ": 42, "2147483647": 2147483647,
		"": 0, "0\n": 0, "-1\n": 0, "2147483648\n": 0, "12x": 0, "1 2": 0,
	} {
		got, err := parsePid(in)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: got %d, %v, want %d", in, got, err, want)
		}
	}
}

func FuzzPid(f *testing.F) {
	for _, s := range []string{"1\n", "", "0", "-1", "+7", "2147483648", "1 2", "0x10", "1_0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		pid, err := parsePid(line)
		if (err == nil) != (pid > 0) {
			t.Fatalf("%q: got %d, %v", line, pid, err)
		}
		if again, err := parsePid(fmt.Sprintln(pid)); pid > 0 && (err != nil || again != pid) {
			t.Fatalf("%q: got %d, and from that %d, %v", line, pid, again, err)
		}
	})
}

// TestOwnPidfile checks that looking up a server of one's own process leaves
// the lock in place, which another process can see.
func TestOwnPidfile(t *testing.T) {
	s := serve(t, Config{})
	for range 3 {
		if pid, err := readPidfile(s.PidfilePath()); err != nil || pid != os.Getpid() {
			t.Fatalf("got process %d, %v", pid, err)
		}
		runtime.GC()
		if own, err := lockedByUs(s.PidfilePath()); err != nil || !own {
			t.Fatalf("the lock is gone: %v", err)
		}
	}
	if _, err := Listen(Config{RunDir: filepath.Dir(s.PidfilePath()), Name: "demo"}); err == nil || !strings.Contains(err.Error(), "in use by this process") {
		t.Errorf("a second server of that name: %v", err)
	}
	if own, err := lockedByUs(s.PidfilePath()); err != nil || !own {
		t.Errorf("the lock is gone after a second server of that name: %v", err)
	}
	if text, err := os.ReadFile("/proc/locks"); err == nil && !strings.Contains(string(text), fmt.Sprintf("WRITE %d ", os.Getpid())) {
		t.Errorf("no lock of process %d in\n%s", os.Getpid(), text)
	}
	c := dial(t, s.SocketPath())
	if got, err := c.Call(soon(t), "echo", "x"); got != "x\n" {
		t.Errorf("the first server says %q, %v", got, err)
	}
}

func lockedByUs(path string) (bool, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return false, err
	}
	return lockedHere(st.Dev, st.Ino)
}

func TestReadPidfileRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pid")
	if _, err := readPidfile(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	// Ours is a file nobody has locked, as after kill -9, whoever's number is in
	// it.
	if err := os.WriteFile(path, fmt.Appendln(nil, os.Getpid()), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readPidfile(path); !errors.Is(err, unix.ESRCH) {
		t.Errorf("no lock: %v", err)
	}
	// Neither does flock count.
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := readPidfile(path); !errors.Is(err, unix.ESRCH) {
		t.Errorf("flock: %v", err)
	}
	if _, err := readPidfile(filepath.Dir(path)); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Errorf("directory: %v", err)
	}
	fifo := path + ".fifo"
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readPidfile(fifo); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Errorf("fifo: %v", err)
	}
}

// TestOneTakesStale lets many take a stale pidfile at once; it must become
// exactly one's.
func TestOneTakesStale(t *testing.T) {
	dir := runDir(t)
	path := filepath.Join(dir, "x.pid")
	for round := range 30 {
		if round%2 == 0 {
			if err := os.WriteFile(path, []byte("4194305\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var mu sync.Mutex
		var got []*pidfile
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				p, err := lockPidfile(path, access{0o644, -1})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					got = append(got, p)
				} else if !strings.Contains(err.Error(), "in use by this process") {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(got) != 1 {
			t.Fatalf("round %d: %d have the pidfile", round, len(got))
		}
		if !same(got[0].file, path) {
			t.Errorf("round %d: the winner's file isn't the one at the path", round)
		}
		if err := got[0].remove(); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestTakeOver covers what happens too rarely by chance.
func TestTakeOver(t *testing.T) {
	dir := t.TempDir()
	path, temp := filepath.Join(dir, "x.pid"), filepath.Join(dir, "temp")
	create := func(path string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(path), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	open := func() *os.File {
		t.Helper()
		f, own, err := openPidfile(path)
		if err != nil || own {
			t.Fatal(err, own)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	create(path)
	create(temp)
	stale, others := open(), open()

	// Somebody else is about to replace the file.
	if err := unix.Flock(int(others.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if done, err := takeOver(stale, temp, path); done || err != nil {
		t.Errorf("taken from under the other's hands: %v", err)
	}
	// Now it has.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	create(path)
	others.Close()
	if done, err := takeOver(stale, temp, path); done || err != nil {
		t.Errorf("taken after the other has: %v", err)
	}
	if text, err := os.ReadFile(path); string(text) != path {
		t.Errorf("the other's pidfile is %q, %v", text, err)
	}
	if done, err := takeOver(open(), temp, path); !done || err != nil {
		t.Errorf("not taken: %v", err)
	}
	if text, err := os.ReadFile(path); string(text) != temp {
		t.Errorf("the pidfile is %q, %v", text, err)
	}
}

// TestOtherPid has a number in a pidfile that isn't the lock's owner's.
func TestOtherPid(t *testing.T) {
	dir := runDir(t)
	t.Setenv("OVS_RUNDIR", dir)
	victim(t, dir)
	for text, want := range map[string]string{
		"4194305\n":         "holds its lock",
		"":                  "no process number", // as while a server starts
		"junk\n":            "no process number",
		"99999999999999999": "no process number",
	} {
		if err := os.WriteFile(dir+"/victim.pid", []byte(text), 0); err != nil {
			t.Fatal(err)
		}
		if path, err := Resolve("", "victim"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v, want %q", text, path, err, want)
		}
	}
}

// TestRemoveSparesOthers has the pidfile replaced behind the server's back.
func TestRemoveSparesOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.pid")
	p, err := lockPidfile(path, access{0o644, -1})
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(path)
	if err := os.WriteFile(path, []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := p.remove(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); string(text) != "other" {
		t.Errorf("the other's file: %q, %v", text, err)
	}
}
