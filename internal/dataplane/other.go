//go:build !linux

package dataplane

import (
	"fmt"
	"runtime"
	"time"
)

// openAFPacket fails: packet sockets are Linux's.
func openAFPacket(name string, _, _ int) (*memPort, error) {
	return nil, fmt.Errorf("port %s%s: packet sockets need Linux: use mem", afpacketPrefix, name)
}

// usableCores returns all cores.
func usableCores() []int {
	cores := make([]int, runtime.NumCPU())
	for i := range cores {
		cores[i] = i
	}
	return cores
}

// keepOff reports false: threads cannot be moved here.
func keepOff([]int) (undo func(), ok bool) { return func() {}, false }

// trouble can be made by computing only.
type trouble struct{}

func newTrouble(list []Injection) (*trouble, error) {
	for _, in := range list {
		if in.Kind == InjectFault || in.Kind == InjectBlock {
			return nil, fmt.Errorf("injection %s needs Linux: use %s", in, InjectCompute)
		}
	}
	return new(trouble), nil
}

func (*trouble) make(_ InjectKind, ticks uint64, now func() uint64) {
	for end := now() + ticks; now() < end; {
	}
}

func (*trouble) close() {}

// sleep lets the thread sleep for at least d.
func sleep(d time.Duration) { time.Sleep(d) }

func sleepExactly() error { return nil }
