package observe

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestFollow reads what is appended, across rotation and truncation, in whole lines and
// only when the log is quiet.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ovs.log")
	write := func(text string, flags int) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flags, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write("before\n", 0)
	f, err := follow(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	now := at(0)
	want := func(what string, after time.Duration, last bool, want string) {
		t.Helper()
		now = now.Add(after)
		if got := string(f.poll(now, last)); got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	want("nothing new", time.Second, false, "")
	write("one\ntw", os.O_APPEND)
	want("just written", 0, false, "")
	write("o\nthr", os.O_APPEND)
	want("still growing", quiet-1, false, "")
	want("quiet", quiet, false, "one\ntwo\n")
	want("told", time.Second, false, "")

	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	want("between two files", quiet, false, "")
	write("ee\n", 0)
	want("the next file", 0, false, "")
	want("the next file, quiet", quiet, false, "three\n")

	write("x\n", os.O_TRUNC)
	want("cut off", 0, false, "")
	want("cut off, read", quiet, false, "")
	want("cut off, read again", quiet, false, "x\n")

	for range busy/quiet*2 + 1 {
		write("y", os.O_APPEND)
		now = now.Add(quiet / 2)
		if got := f.poll(now, false); got != nil {
			t.Fatalf("half a line was told: %q", got)
		}
	}
	write("\n", os.O_APPEND)
	if got := string(f.poll(now.Add(1), false)); len(got) != int(busy/quiet*2)+2 {
		t.Errorf("a log that is never quiet: %q", got)
	}
	write("end", os.O_APPEND)
	want("the last of all", 0, true, "end")

	if _, err := follow(path + ".none"); err == nil {
		t.Error("a log that isn't there was opened")
	}
}
