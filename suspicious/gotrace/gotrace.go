// Package gotrace writes down what the Go runtime was doing around a suspicious
// iteration: the window of runtime/trace's flight recorder, to be looked at with go tool
// trace.
package gotrace

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime/trace"
	"slices"
	"sync"
	"time"

	"github.com/pmdperf/pmdperf/suspicious"
)

// Config says what is written and how often. The zero value of all but Path is usable.
type Config struct {
	// Path is what the files' names begin with; the event's ID and ".trace" follow.
	Path string
	// Window is how far back a file reaches at least, 0 for a second.
	Window time.Duration
	// MaxBytes is about the most memory that the window may take, 0 for 16 MiB.
	MaxBytes uint64
	// Cooldown is the shortest time between two files, 0 for 10 s.
	Cooldown time.Duration
	// Keep is how many files are kept, the newest, 0 for 8.
	Keep int
}

// A Recorder keeps the window and writes it when there is an event. Any goroutine may
// use it.
//
// Recording costs the program about a percent; it starts and ends with a short stop of
// the world. A window is written on a goroutine of its own, which waits for every loop to
// end its pass: a loop that is stuck delays it and is not delayed by it.
type Recorder struct {
	config   Config
	recorder *trace.FlightRecorder
	writing  sync.WaitGroup

	mu     sync.Mutex
	begun  time.Time // when the last file was begun
	busy   bool
	closed bool
	files  []string // oldest first
	err    error    // the last
}

// Start starts recording. Only one can record in a program.
func Start(c Config) (*Recorder, error) {
	c.Window = cmp.Or(c.Window, time.Second)
	c.MaxBytes = cmp.Or(c.MaxBytes, 16<<20)
	c.Cooldown = cmp.Or(c.Cooldown, 10*time.Second)
	c.Keep = cmp.Or(c.Keep, 8)
	r := &Recorder{config: c, recorder: trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: c.Window, MaxBytes: c.MaxBytes})}
	if err := r.recorder.Start(); err != nil {
		return nil, fmt.Errorf("record the Go runtime: %w", err)
	}
	return r, nil
}

// Add writes the window around an event, unless a file was written lately; it is a
// suspicious.Sink and doesn't wait.
func (r *Recorder) Add(report *suspicious.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.closed || r.busy || !r.begun.IsZero() && now.Sub(r.begun) < r.config.Cooldown {
		return
	}
	r.begun, r.busy = now, true
	path := fmt.Sprintf("%s.%s.trace", r.config.Path, report.ID)
	r.writing.Go(func() {
		err := r.write(path)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.busy = false
		if err != nil {
			r.err = err
			return
		}
		r.files = append(r.files, path)
		for len(r.files) > max(r.config.Keep, 1) {
			if err := os.Remove(r.files[0]); err != nil && !errors.Is(err, os.ErrNotExist) {
				r.err = err
			}
			r.files = r.files[1:]
		}
	})
}

// write writes the window to a file, whole or not at all.
func (r *Recorder) write(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = r.recorder.WriteTo(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// Files returns the files that were written and are kept, oldest first.
func (r *Recorder) Files() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.files)
}

// Close waits for what is being written and ends the recording. It returns the last
// error of writing, if there was one.
func (r *Recorder) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.writing.Wait()
	r.recorder.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
