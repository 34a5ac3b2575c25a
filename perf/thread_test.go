//go:build linux

package perf

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A pinned thread has the name and the single core that people and exporters look
// for.
func TestPin(t *testing.T) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	core := 0
	for !allowed.IsSet(core) {
		core++
	}
	type thread struct {
		err           error
		name, allowed string
	}
	got := make(chan thread)
	go func() {
		var th thread
		th.err = Pin(core, 8)
		b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/status", unix.Gettid()))
		if err != nil {
			th.err = err
		}
		for line := range strings.Lines(string(b)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
			switch key {
			case "Name":
				th.name = value
			case "Cpus_allowed_list":
				th.allowed = value
			}
		}
		got <- th // and the thread ends with the goroutine
	}()
	th := <-got
	if th.err != nil {
		t.Fatal(th.err)
	}
	if want := fmt.Sprintf("pmd-c%02d/id:8", core); th.name != want {
		t.Errorf("name %q, want %q", th.name, want)
	}
	if want := fmt.Sprint(core); th.allowed != want {
		t.Errorf("cores %q, want %q", th.allowed, want)
	}
	errs := make(chan error)
	for _, core := range []int{-1, 1023, 1 << 20} {
		go func() { errs <- Pin(core, 0) }()
		if err := <-errs; err == nil || !strings.Contains(err.Error(), fmt.Sprint("core ", core)) {
			t.Errorf("core %d: %v", core, err)
		}
	}
}
