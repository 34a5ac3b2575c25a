package prom

import (
	"os"
	"runtime"
	"testing"
)

func TestSwitches(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: only Linux tells")
	}
	thread := new(Thread)
	thread.setSwitches(os.Getpid()) // the main thread, which waited at least once
	v, ok := thread.Value(ContextSwitches, "voluntary")
	if _, ok2 := thread.Value(ContextSwitches, "involuntary"); !ok || !ok2 || v == 0 {
		t.Errorf("%v voluntary ones: %v; involuntary ones: %v", v, ok, ok2)
	}
	thread = new(Thread)
	thread.setSwitches(0)
	thread.setSwitches(1 << 30) // no such thread
	if _, ok := thread.Value(ContextSwitches, "voluntary"); ok {
		t.Error("context switches of no thread")
	}
}
