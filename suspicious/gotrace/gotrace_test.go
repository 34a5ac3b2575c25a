package gotrace

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/suspicious"
)

func event(id string) *suspicious.Report { return &suspicious.Report{ID: id} }

// idle waits for the file under way.
func idle(t *testing.T, r *Recorder) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		busy := r.busy
		r.mu.Unlock()
		if !busy {
			return
		}
		if time.Now().After(end) {
			t.Fatal("a file is written for ever")
		}
	}
}

// Every event gets a file but those that come too early, and the newest are kept.
func TestRecorder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flight")
	r, err := Start(Config{Path: path, Cooldown: time.Nanosecond, Keep: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Start(Config{Path: path}); err == nil {
		t.Error("two recordings at a time")
	}
	for _, id := range []string{"a", "b", "c"} {
		r.Add(event(id))
		idle(t, r)
	}
	r.mu.Lock()
	r.config.Cooldown = time.Hour
	r.mu.Unlock()
	r.Add(event("early"))
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	r.Add(event("late"))
	want := []string{path + ".b.trace", path + ".c.trace"}
	if got := r.Files(); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("files %v, want %v", got, want)
	}
	there, err := filepath.Glob(path + "*")
	if err != nil || len(there) != 2 {
		t.Errorf("there are %v, %v", there, err)
	}
	for _, f := range want {
		b, err := os.ReadFile(f)
		if err != nil || !bytes.HasPrefix(b, []byte("go 1.")) || !bytes.Contains(b[:16], []byte("trace")) {
			t.Errorf("%s is no trace: %.20q, %v", f, b, err)
		}
	}
	// Another one may record then.
	r, err = Start(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// Where nothing can be written, that is said in the end.
func TestNoDirectory(t *testing.T) {
	r, err := Start(Config{Path: filepath.Join(t.TempDir(), "none", "flight")})
	if err != nil {
		t.Fatal(err)
	}
	r.Add(event("a"))
	idle(t, r)
	if err := r.Close(); err == nil {
		t.Error("no error")
	}
	if got := r.Files(); len(got) != 0 {
		t.Errorf("files %v", got)
	}
}
