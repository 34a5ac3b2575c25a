package explain

import (
	"encoding/binary"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/suspicious"
	"github.com/pmdperf/pmdperf/suspicious/cause"
)

//go:noinline
func computeHere(quit *atomic.Bool) (n int) {
	for !quit.Load() {
		n++
	}
	return n
}

//go:noinline
func waitHere(fd int) error {
	var b [1]byte
	_, err := unix.Read(fd, b[:])
	return err
}

// thread runs f on a thread of its own and returns its number and a function that waits
// for its end.
func thread(f func()) (tid int, wait func()) {
	ready, done := make(chan int), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good
		ready <- unix.Gettid()
		f()
	}()
	return <-ready, func() { <-done }
}

func skipWithoutFramePointers(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		need.Skip(t, "frame pointers are for amd64 and arm64")
	}
}

// The stack of a thread that runs, and of one that sleeps in a system call, is found
// while it goes on doing so.
func TestGoStack(t *testing.T) {
	skipWithoutFramePointers(t)
	var quit atomic.Bool
	running, joinRunning := thread(func() { computeHere(&quit) })
	defer joinRunning()
	defer quit.Store(true)
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	asleep, joinAsleep := thread(func() { _ = waitHere(pipe[0]) })
	defer joinAsleep()
	defer unix.Close(pipe[1])

	for _, tt := range []struct {
		tid  int
		in   string
		from string
	}{{running, ".computeHere (stack_linux_test.go:", "explain.thread.func1"}, {asleep, ".waitHere (stack_linux_test.go:", "TestGoStack"}} {
		var stack []string
		var err error
		found := false
		for end := time.Now().Add(10 * time.Second); !found && time.Now().Before(end); {
			stack, err = goStack(tt.tid)
			if err != nil && strings.Contains(err.Error(), "perf_event_open") {
				need.Skip(t, err.Error())
			}
			all := strings.Join(stack, "\n")
			found = strings.Contains(all, tt.in) && strings.Contains(all, tt.from) && strings.Index(all, tt.in) < strings.Index(all, tt.from)
		}
		if !found {
			t.Errorf("%s: stack %v, %v", tt.in, stack, err)
		}
	}
	if _, err := goStack(1 << 22); err == nil {
		t.Error("no error for a thread that is not there")
	}
}

// A stuck loop is told of with what it does in the kernel and in its code.
func TestExamine(t *testing.T) {
	skipWithoutFramePointers(t)
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	tid, join := thread(func() { _ = waitHere(pipe[0]) })
	defer join()
	defer unix.Close(pipe[1])
	e := New(cause.Options{})
	defer e.Close()
	e.Watch("loop", tid, -1)
	e.Status()
	var s suspicious.Stall
	ok := func() bool {
		return strings.HasPrefix(s.Doing, "asleep in system call read") && strings.Contains(strings.Join(s.Stack, "\n"), ".waitHere (")
	}
	for end := time.Now().Add(10 * time.Second); !ok() && time.Now().Before(end); {
		s = suspicious.Stall{Name: "loop"}
		e.Examine(&s)
	}
	if !ok() {
		t.Errorf("%+v", s)
	}
}

func TestDoing(t *testing.T) {
	for want, s := range map[string]cause.Sample{
		"running, or waiting for its core":                             {State: "R"},
		"asleep in system call ppoll, in the kernel's do_sys_poll":     {State: "S", Call: "ppoll", Wchan: "do_sys_poll"},
		"in uninterruptible sleep":                                     {State: "D", Call: "none"},
		"stopped by a signal":                                          {State: "T"},
		"stopped by a debugger":                                        {State: "t"},
		"in a state that is not known, in the kernel's folio_wait_bit": {Wchan: "folio_wait_bit"},
		"in state Z": {State: "Z"},
	} {
		if got := doing(s); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}

func TestParsePointers(t *testing.T) {
	for _, tt := range []struct {
		text   string
		sp, pc uintptr
		ok     bool
	}{
		{"running\n", 0, 0, false},
		{"0 0x3 0x7ffc 0x1 0x0 0x0 0x0 0x7ffc10 0x47a0\n", 0x7ffc10, 0x47a0, true},
		{"-1 0x7ffc10 0x47a0\n", 0x7ffc10, 0x47a0, true},
		{"", 0, 0, false},
		{"-1 0x7ffc10 zzz", 0, 0, false},
		{"1 2 3 4", 0, 0, false},
	} {
		if sp, pc, ok := parsePointers(tt.text); sp != tt.sp || pc != tt.pc || ok != tt.ok {
			t.Errorf("%q: %x %x %v", tt.text, sp, pc, ok)
		}
	}
}

// Frames are followed as long as they lead upwards within what was read.
func TestLink(t *testing.T) {
	code := func(n uintptr) uintptr { return reflect.ValueOf(TestLink).Pointer() + n }
	const sp = 0x10000
	at := func(i uintptr) uintptr { return sp + 8*i }
	for name, tt := range map[string]struct {
		words, want []uintptr
	}{
		"nothing":    {nil, []uintptr{8}},
		"leaf":       {[]uintptr{code(1), 5, at(5), code(2), 0, at(8), code(3), 0, 0, code(4)}, []uintptr{8, code(1), code(2), code(3), code(4)}},
		"remainder":  {[]uintptr{3, at(7), code(9), at(5), code(2), at(8), code(3), 5, 0, code(4)}, []uintptr{8, code(2), code(3), code(4)}},
		"an end":     {[]uintptr{3, at(4), code(9), 3, at(7), code(2), 3, at(9), code(3), 3, 3, at(13), code(5), 0, code(6)}, []uintptr{8, code(5), code(6)}},
		"no end":     {[]uintptr{3, at(5), code(9), 3, 3, at(7), code(2), 3, 3}, []uintptr{8, code(9), code(2)}},
		"downwards":  {[]uintptr{3, 5, at(4), code(1), at(2), code(2)}, []uintptr{8, code(1)}},
		"no code":    {[]uintptr{3, 5, at(4), 7, 0, 9}, []uintptr{8}},
		"itself":     {[]uintptr{at(0), code(1), at(1), code(2)}, []uintptr{8}},
		"far beyond": {[]uintptr{at(1000), code(1)}, []uintptr{8}},
	} {
		if got := link(tt.words, sp, 7); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %x, want %x", name, got, tt.want)
		}
	}
}

func TestLastChain(t *testing.T) {
	record := func(kind uint32, size uint16, words ...uint64) []byte {
		b := binary.NativeEndian.AppendUint32(nil, kind)
		b = binary.NativeEndian.AppendUint16(b, 0)
		b = binary.NativeEndian.AppendUint16(b, size)
		for _, w := range words {
			b = binary.NativeEndian.AppendUint64(b, w)
		}
		return b
	}
	const user = ^uint64(511) // PERF_CONTEXT_USER
	good := record(unix.PERF_RECORD_SAMPLE, 40, 3, user, 100, 200)
	other := record(unix.PERF_RECORD_LOST, 24, 1, 2)
	kernelOnly := record(unix.PERF_RECORD_SAMPLE, 24, 1, user)
	lying := record(unix.PERF_RECORD_SAMPLE, 24, 1<<40, 50)
	for name, tt := range map[string]struct {
		b    []byte
		want []uintptr
	}{
		"one":         {good, []uintptr{101, 200}},
		"among other": {append(append(append([]byte(nil), other...), good...), kernelOnly...), []uintptr{101, 200}},
		"too many":    {lying, []uintptr{51}},
		"cut off":     {good[:30], nil},
		"no size":     {record(unix.PERF_RECORD_SAMPLE, 0, 1, 1), nil},
		"empty":       {nil, nil},
	} {
		if got := lastChain(tt.b); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func FuzzStack(f *testing.F) {
	f.Add([]byte{9, 0, 0, 0, 0, 0, 24, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0}, "-1 0x7ffc10 0x47a0\n")
	f.Fuzz(func(t *testing.T, b []byte, s string) {
		if pcs := lastChain(b); len(pcs) > maxFrames {
			t.Errorf("%d frames", len(pcs))
		}
		parsePointers(s)
		words := make([]uintptr, len(b)/8)
		for i := range words {
			words[i] = uintptr(binary.NativeEndian.Uint64(b[8*i:]))
		}
		if pcs := link(words, 16, 7); len(pcs) > maxFrames+2 {
			t.Errorf("%d frames", len(pcs))
		}
	})
}
