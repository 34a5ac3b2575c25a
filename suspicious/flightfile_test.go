package suspicious

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// line is an entry that says how many were lost before.
func line(n int) func(lost uint64) []byte {
	return func(lost uint64) []byte { return fmt.Appendf(nil, "%d lost=%d\n", n, lost) }
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFileRotates(t *testing.T) {
	for _, keep := range []int{-1, 1, 2} {
		dir := t.TempDir()
		path := filepath.Join(dir, "log")
		f := NewFile(FileConfig{Path: path, MaxBytes: 20, Keep: keep})
		for n := range 8 {
			f.Append(line(n)) // 9 bytes: two a file
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"log": "6 lost=0\n7 lost=0\n"}
		if keep >= 1 {
			want["log.1"] = "4 lost=0\n5 lost=0\n"
		}
		if keep >= 2 {
			want["log.2"] = "2 lost=0\n3 lost=0\n"
		}
		got := make(map[string]string)
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range files {
			got[e.Name()] = read(t, filepath.Join(dir, e.Name()))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("keep %d (-want +got):\n%s", keep, diff)
		}
	}
}

// A file goes on where a program before it ended, and one that was killed in a line
// doesn't spoil the next.
func TestFileGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("old\nkill"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := NewFile(FileConfig{Path: path, MaxBytes: 20})
	f.Append(line(1))
	f.Append(line(2))
	if got := read(t, path+".1"); got != "old\nkill\n1 lost=0\n" {
		t.Errorf("%q", got)
	}
	if got := read(t, path); got != "2 lost=0\n" {
		t.Errorf("%q", got)
	}
}

// What can't be written is counted, and the next that can be says so.
func TestFileLoses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not there yet")
	path := filepath.Join(dir, "log")
	f := NewFile(FileConfig{Path: path})
	if f.Open() == nil {
		t.Fatal("opened a file in no directory")
	}
	f.Append(line(1))
	f.Append(line(2))
	if lost, err := f.Lost(); lost != 2 || err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%d lost: %v", lost, err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f.Append(func(uint64) []byte { return nil })
	f.Append(line(3))
	f.Append(line(4))
	if got := read(t, path); got != "3 lost=2\n4 lost=0\n" {
		t.Errorf("%q", got)
	}
	if lost, _ := f.Lost(); lost != 2 {
		t.Errorf("%d lost", lost)
	}

	// The file is full, and nothing may be renamed: where its old one is to go there is
	// a directory with something in it.
	if err := os.MkdirAll(path+".1/in the way", 0o755); err != nil {
		t.Fatal(err)
	}
	full := NewFile(FileConfig{Path: path, MaxBytes: 20, Keep: 1})
	full.Append(line(5))
	full.Append(line(6))
	if got := read(t, path); got != "3 lost=2\n4 lost=0\n" {
		t.Errorf("%q", got)
	}
	if err := os.RemoveAll(path + ".1"); err != nil {
		t.Fatal(err)
	}
	full.Append(line(7))
	if got := read(t, path); got != "7 lost=2\n" {
		t.Errorf("%q", got)
	}
}

// Devices are written to and never moved away or filled up by counting.
func TestFileDevice(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full")
	}
	f := NewFile(FileConfig{Path: "/dev/full", MaxBytes: 20})
	for n := range 9 {
		f.Append(line(n))
	}
	if lost, err := f.Lost(); lost != 9 || err == nil {
		t.Errorf("%d lost: %v", lost, err)
	}
	// Through a link, so that a defect moves only that.
	path := filepath.Join(t.TempDir(), "null")
	if err := os.Symlink("/dev/null", path); err != nil {
		t.Fatal(err)
	}
	f = NewFile(FileConfig{Path: path, MaxBytes: 20})
	for n := range 9 {
		f.Append(line(n))
	}
	if lost, err := f.Lost(); lost != 0 {
		t.Errorf("%d lost: %v", lost, err)
	}
	if _, err := os.Lstat(path + ".1"); err == nil {
		t.Error("the device was moved away")
	}
}
