package confusion

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Progress says how far a run has come.
type Progress struct {
	Provocation string `json:"provocation"`
	Made        int    `json:"made"`
	Rounds      int    `json:"rounds"`
}

// message is a line of what a process with the loop says to the one that started it.
type message struct {
	Progress *Progress `json:"progress,omitempty"`
	Table    *Table    `json:"table,omitempty"`
}

// Serve is what the process does that [Supervise] starts: it runs the experiment and
// writes to w how it goes.
func Serve(ctx context.Context, w io.Writer, o Options) error {
	enc := json.NewEncoder(w)
	var last time.Time
	o.Progress = func(p Progress) {
		if time.Since(last) > 100*time.Millisecond {
			last = time.Now()
			_ = enc.Encode(message{Progress: &p}) // who doesn't listen gets no table either
		}
	}
	t, err := Run(ctx, o)
	if err != nil {
		return err
	}
	return enc.Encode(message{Table: t})
}

// Supervise starts a process that calls [Serve], and returns its table. The experiment
// needs one of its own: it is stopped now and then, which shells take for the end of a
// program in the foreground, gives up privileges for good, and must not be preempted by
// the Go runtime. progress is called for every message; nil for nobody. Standard output
// and the environment of cmd are set here.
func Supervise(cmd *exec.Cmd, progress func(Progress)) (*Table, error) {
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	// Should the process be told to die with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.Env = append(cmd.Env, "GODEBUG=asyncpreemptoff=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	// Who has given up its privileges can't remove its cgroup.
	defer clean(cmd.Process.Pid)
	var table *Table
	for dec := json.NewDecoder(out); ; {
		var m message
		if err = dec.Decode(&m); err != nil {
			break
		}
		if m.Progress != nil && progress != nil {
			progress(*m.Progress)
		}
		if m.Table != nil {
			table = m.Table
		}
	}
	waitErr := cmd.Wait()
	switch text := strings.TrimSpace(stderr.String()); {
	case table != nil:
		return table, nil
	case text != "":
		return nil, errors.New(text)
	case waitErr != nil:
		return nil, waitErr
	}
	return nil, fmt.Errorf("the process with the loop said no more: %w", err)
}
