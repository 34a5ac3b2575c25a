package suspicious

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pmdperf/pmdperf/internal/need"
)

// A full file system cuts no entry in half.
func TestFileSystemFull(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8k"); err != nil {
		need.Skip(t, "needs the right to mount a file system: "+err.Error())
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "log")
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, bytes.Repeat([]byte{'x'}, 4096), 0o644); err != nil {
		t.Fatal(err)
	}
	f := NewFile(FileConfig{Path: path})
	defer f.Close()
	entry := func(lost uint64) []byte {
		return []byte(strings.Repeat("a", 998) + string('0'+byte(lost)) + "\n")
	}
	for range 7 {
		f.Append(entry)
	}
	if lost, err := f.Lost(); lost != 3 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%d lost: %v", lost, err)
	}
	if got := read(t, path); len(got) != 4000 || !strings.HasSuffix(got, "0\n") {
		t.Errorf("%d bytes", len(got))
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	f.Append(entry)
	if got := read(t, path); len(got) != 5000 || !strings.HasSuffix(got, "a3\n") {
		t.Errorf("%d bytes, ...%q", len(got), got[max(0, len(got)-5):])
	}
}
