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

// openAFXDP fails: AF_XDP sockets are Linux's.
func openAFXDP(name string, _, _ int) (*memPort, error) {
	return nil, fmt.Errorf("port %s%s: AF_XDP sockets need Linux: use mem", afxdpPrefix, name)
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

// threadID returns 0: threads have no numbers here.
func threadID() int { return 0 }

// switches reports false: it is not known how often a thread left its core.
func switches() (slept, taken int64, ok bool) { return 0, 0, false }

// nap sleeps for about d.
func nap(d time.Duration) { time.Sleep(d) }

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
