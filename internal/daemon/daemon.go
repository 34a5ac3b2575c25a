// Package daemon runs real programs beside a test, which end with it whatever happens.
package daemon

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Daemon is a program that runs.
type Daemon struct {
	// Done is closed when it has ended.
	Done <-chan struct{}

	cmd *exec.Cmd
}

// Start starts a program, which dies with the test process, should that be killed. The
// caller calls Stop.
func Start(t testing.TB, cmd *exec.Cmd) *Daemon {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, done := make(chan error), make(chan struct{})
	go func() {
		// The signal comes when the thread that started the program ends, which must
		// not be before the program does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	return &Daemon{done, cmd}
}

// Stop asks the program to end, kills it after patience, and waits until it has ended.
func (d *Daemon) Stop(patience time.Duration) {
	d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.Done:
	case <-time.After(patience):
		d.cmd.Process.Kill()
		<-d.Done
	}
}
