package suspicious

import (
	"errors"
	"fmt"
	"os"
	"sync"
)

// A File is what entries are appended to, whole or not at all: what can't be written
// is counted, and the entry after it says so. When it is full it gives way to a new
// one. Any goroutine may use it.
type File struct {
	mu      sync.Mutex
	cfg     FileConfig
	file    *os.File // nil while there is none
	regular bool     // it is no device or pipe, which are never moved away
	size    int64    // if regular
	lost    uint64   // entries since the last that was written
	all     uint64
	err     error // why the last was lost
}

// FileConfig describes a File.
type FileConfig struct {
	Path string
	// MaxBytes is how large the file may get, 0 for 64 MiB. A single entry may be larger.
	MaxBytes int64
	// Keep is how many files before it are kept, as Path.1 (the newest), Path.2 and so
	// on; 0 for 3, negative for none.
	Keep int
}

const (
	defaultMaxBytes = 64 << 20
	defaultKeep     = 3
)

// NewFile returns a file that is created or appended to with the first entry, or by
// Open.
func NewFile(cfg FileConfig) *File {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = defaultMaxBytes
	}
	if cfg.Keep == 0 {
		cfg.Keep = defaultKeep
	}
	return &File{cfg: cfg}
}

// Open opens the file, to find out early whether that can be done.
func (f *File) Open() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open()
}

func (f *File) open() error {
	if f.file != nil {
		return nil
	}
	file, err := os.OpenFile(f.cfg.Path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil {
		f.file, f.regular, f.size = file, info.Mode().IsRegular(), 0
		if f.regular {
			f.size = info.Size()
			err = f.endLine()
		}
	}
	if err != nil {
		f.file = nil
		return errors.Join(err, file.Close())
	}
	return nil
}

// endLine ends the last line of the file if a program was killed in it.
func (f *File) endLine() error {
	if f.size == 0 {
		return nil
	}
	r, err := os.Open(f.cfg.Path)
	if err != nil {
		return err
	}
	defer r.Close()
	var last [1]byte
	if _, err := r.ReadAt(last[:], f.size-1); err != nil || last[0] == '\n' {
		return err
	}
	n, err := f.file.Write([]byte{'\n'})
	f.size += int64(n)
	return err
}

// Append appends what entry returns, which is told how many entries were lost since
// the last that was written. Nothing is lost with an entry of no bytes.
func (f *File) Append(entry func(lost uint64) []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := entry(f.lost)
	if len(b) == 0 {
		return
	}
	if err := f.write(b); err != nil {
		f.lost++
		f.all++
		f.err = err
		return
	}
	f.lost = 0
}

func (f *File) write(b []byte) error {
	if err := f.open(); err != nil {
		return err
	}
	if f.size > 0 && f.size+int64(len(b)) > f.cfg.MaxBytes {
		if err := f.rotate(); err != nil {
			return err
		}
	}
	n, err := f.file.Write(b)
	if err == nil {
		if f.regular {
			f.size += int64(n)
		}
		return nil
	}
	if n > 0 && f.regular {
		// No half an entry stays: where it can't be cut off, the file's next opening ends
		// its line.
		err = errors.Join(err, f.file.Truncate(f.size))
	}
	f.close()
	return err
}

// rotate makes room with a new file. If that fails, the file stays as it is.
func (f *File) rotate() error {
	name := func(n int) string {
		if n == 0 {
			return f.cfg.Path
		}
		return fmt.Sprintf("%s.%d", f.cfg.Path, n)
	}
	if f.cfg.Keep < 0 {
		if err := os.Remove(name(0)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	for n := f.cfg.Keep; n > 0; n-- {
		if err := os.Rename(name(n-1), name(n)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	f.close()
	return f.open()
}

func (f *File) close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file, f.size = nil, 0
	return err
}

// Lost returns how many entries were lost altogether, and why the last of them was.
func (f *File) Lost() (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all, f.err
}

// Close closes the file. A later entry opens it again.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.close()
}
