package observe

import (
	"bytes"
	"io"
	"os"
	"time"
)

// follower reads what is appended to a log, from its end on, and goes on with the next
// file when the log is rotated. Its methods are for one goroutine.
type follower struct {
	path  string
	file  *os.File // nil while there is none
	buf   []byte   // read, but not handed out
	first time.Time
	last  time.Time // when buf grew
}

const (
	// quiet is how long nothing must have been added before what is there is taken for
	// whole: a table is written at once.
	quiet = 250 * time.Millisecond

	// busy is how long a log that keeps growing is waited for.
	busy = time.Second

	// maxUnread bounds what is kept.
	maxUnread = 4 << 20
)

// follow opens the log. What it holds already is left out.
func follow(path string) (*follower, error) {
	f := &follower{path: path}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		_ = file.Close()
		return nil, err
	}
	f.file = file
	return f, nil
}

func (f *follower) close() {
	if f.file != nil {
		_ = f.file.Close()
	}
}

// poll reads what is there, and returns whole lines when it is time to look at them.
func (f *follower) poll(now time.Time, last bool) []byte {
	grown := f.grow()
	if f.rotate() || grown {
		if f.first.IsZero() {
			f.first = now
		}
		f.last = now
	}
	end := bytes.LastIndexByte(f.buf, '\n') + 1
	if last {
		end = len(f.buf)
	}
	if end == 0 || !last && len(f.buf) < maxUnread && now.Sub(f.last) < quiet && now.Sub(f.first) < busy {
		return nil
	}
	lines := f.buf[:end:end]
	f.buf = append([]byte(nil), f.buf[end:]...)
	f.first = time.Time{}
	return lines
}

// grow reads on, and reports whether there was more.
func (f *follower) grow() bool {
	if f.file == nil {
		return false
	}
	grown := false
	for len(f.buf) < maxUnread {
		chunk := make([]byte, 64<<10)
		n, err := f.file.Read(chunk)
		f.buf = append(f.buf, chunk[:n]...)
		grown = grown || n > 0
		if n == 0 || err != nil {
			break
		}
	}
	return grown
}

// rotate goes on with the file that has the log's name now, if that is another, or from
// the start if it was cut off. It reports whether there was more in it.
func (f *follower) rotate() (grown bool) {
	there, err := os.Stat(f.path)
	if err != nil {
		return false // between two files
	}
	if f.file != nil {
		here, err := f.file.Stat()
		if err == nil && os.SameFile(here, there) {
			if at, err := f.file.Seek(0, io.SeekCurrent); err == nil && here.Size() < at {
				_, _ = f.file.Seek(0, io.SeekStart)
			}
			return false
		}
		// The rest of the old one was written before it was renamed, or just now.
		grown = f.grow()
		_ = f.file.Close()
	}
	f.file, _ = os.Open(f.path) // or tried again
	return f.grow() || grown
}
