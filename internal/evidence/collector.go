package evidence

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/pmdperf/pmdperf/suspicious/investigate"
	"github.com/pmdperf/pmdperf/suspicious/ovslog"
)

const (
	maxFiles = 10_000 // of a directory and all below
	headSize = 1 << 16
	// A compressed file that unpacks to more than bombSize, and bombRatio times its size,
	// without anything of interest is a bomb, or as good as one.
	bombSize  = 16 << 20
	bombRatio = 100
)

// ErrNothing is returned for a file in which nothing was recognised.
var ErrNothing = errors.New("nothing recognisable")

// Looked is what is recognised, for people.
func Looked() []string {
	return []string{
		"logs of ovs-vswitchd with suspicious iterations (pmd_perf), also from syslog, journal, console, or pasted",
		"logs and flight records of pmdperf",
		"output of pmd-perf-show, pmd-stats-show, pmd-rxq-show, pmd-sleep-show and coverage/show",
		"any of these compressed with gzip, or in UTF-16",
	}
}

// A Collector reads files into a case. It belongs to one goroutine.
type Collector struct {
	Case  *investigate.Case
	Stdin io.Reader
	// Failed are the files that could not be read, or not to their end, or had nothing in
	// them, with their errors; of those in directories only what could not be read.
	Failed []error
	Read   int // files in which something was recognised
	Passed int // files of directories in which nothing was
}

// Add reads a file, "-" for standard input, or a directory with all below it. An error
// means that the context is done; what could not be read is in Failed.
func (c *Collector) Add(ctx context.Context, name string) error {
	if name == "-" {
		return c.file(ctx, name, c.Stdin, false)
	}
	info, err := os.Stat(name)
	if err != nil {
		c.fail(name, err)
		return nil
	}
	if !info.IsDir() {
		return c.open(ctx, name, false)
	}
	files, err := list(name)
	if err != nil {
		c.fail(name, err)
	}
	for _, f := range files {
		if err := c.open(ctx, f, true); err != nil {
			return err
		}
	}
	return nil
}

func (c *Collector) fail(name string, err error) {
	if perr := (*fs.PathError)(nil); errors.As(err, &perr) {
		err = perr.Err // it has the name once more
	}
	c.Failed = append(c.Failed, fmt.Errorf("%s: %w", name, err))
}

// list returns the regular files of a directory, those that were rotated away before
// those that came after them.
func list(dir string) ([]string, error) {
	var files []string
	var skipped error
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			skipped = errors.Join(skipped, err)
			return nil
		case len(files) >= maxFiles:
			return fmt.Errorf("more than %d files: only the first were read", maxFiles)
		case d.Type().IsRegular():
			files = append(files, path)
		case d.Type()&fs.ModeSymlink != 0:
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				files = append(files, path)
			}
		}
		return nil
	})
	slices.SortStableFunc(files, func(a, b string) int {
		nameA, ageA := rotated(a)
		nameB, ageB := rotated(b)
		if nameA != nameB {
			return strings.Compare(nameA, nameB)
		}
		return ageB - ageA
	})
	return files, errors.Join(err, skipped)
}

// rotated returns the name that a rotated file had, and how often it was rotated.
func rotated(name string) (base string, age int) {
	name = strings.TrimSuffix(name, ".gz")
	ext := filepath.Ext(name)
	n := 0
	for _, c := range strings.TrimPrefix(ext, ".") {
		if c < '0' || c > '9' || n > 1e8 {
			return name, 0
		}
		n = n*10 + int(c-'0')
	}
	if len(ext) < 2 {
		return name, 0
	}
	return strings.TrimSuffix(name, ext), n
}

func (c *Collector) open(ctx context.Context, name string, one bool) error {
	// A pipe that nobody writes to is empty rather than waited for.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		c.fail(name, err)
		return nil
	}
	defer f.Close()
	return c.file(ctx, name, f, one)
}

// file reads one file. Of many in a directory, those with nothing in them are passed over.
func (c *Collector) file(ctx context.Context, name string, r io.Reader, ofMany bool) error {
	src := c.Case.AddSource(name)
	stop := &guard{r: r, ctx: ctx}
	err := c.read(src, stop)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s := c.Case.Source(src)
	found := len(s.Kinds) > 0
	switch {
	case found:
		c.Read++
	case ofMany && (err == nil || errors.Is(err, ErrNothing)):
		c.Passed++
		c.Case.DropSource(src)
		return nil
	case err == nil:
		err = ErrNothing
	}
	if err != nil {
		s.Error = err.Error()
		c.fail(name, err)
	}
	return nil
}

func (c *Collector) read(src int, r *guard) error {
	plain, err := ovslog.Decode(r)
	if err != nil {
		return err
	}
	watched := &bomb{r: plain, packed: r}
	b := bufio.NewReaderSize(watched, headSize)
	head, err := b.Peek(headSize)
	if err != nil && err != io.EOF && len(head) == 0 {
		return err
	}
	switch {
	case len(head) == 0:
		return fmt.Errorf("%w: it is empty", ErrNothing)
	case binary(head):
		return fmt.Errorf("%w: it is binary", ErrNothing)
	case isJSON(head):
		watched.found.Store(true)
		return c.json(src, b)
	}
	return c.text(src, b, &watched.found)
}

// binary reports whether a file begins with what no text has.
func binary(head []byte) bool {
	odd := 0
	for _, b := range head {
		if b == 0 || b < 0x20 && b != '\n' && b != '\r' && b != '\t' && b != 0x1b && b != '\f' && b != '\b' {
			odd++
		}
	}
	return odd*20 > len(head)
}

// A guard stops reading when the context is done, and counts.
type guard struct {
	r   io.Reader
	ctx context.Context
	n   int64
}

func (g *guard) Read(p []byte) (int, error) {
	if err := g.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := g.r.Read(p)
	g.n += int64(n)
	return n, err
}

// A bomb stops reading what unpacks to much and has nothing in it.
type bomb struct {
	r      io.Reader
	packed *guard
	n      int64
	found  atomic.Bool // something of interest
}

func (b *bomb) Read(p []byte) (int, error) {
	if b.n > bombSize && b.n > bombRatio*b.packed.n && !b.found.Load() {
		return 0, fmt.Errorf("%w in the first %d MB that it unpacks to", ErrNothing, b.n>>20)
	}
	n, err := b.r.Read(p)
	b.n += int64(n)
	return n, err
}

// text reads a log, and what show commands printed in it.
func (c *Collector) text(src int, r io.Reader, found *atomic.Bool) error {
	shows := newShows(r)
	log := ovslog.NewReader(shows)
	eachRecord(log, func(rec ovslog.Record) {
		c.Case.AddRecord(src, rec)
		found.Store(true)
	})
	stats := log.Stats()
	s := c.Case.Source(src)
	s.Lines += stats.Lines
	for i := range shows.sections {
		c.show(src, &shows.sections[i])
		shows.sections[i].text = nil
	}
	s.Unread += stats.Unread + shows.cut
	if len(s.Kinds) == 0 {
		// Every line was one that could not be read.
		s.Unread, s.Lost = 0, nil
		return log.Err()
	}
	for _, l := range stats.Lost {
		s.Lost = append(s.Lost, investigate.Lost{Line: l.Line, Text: l.Text})
	}
	return log.Err()
}

func isJSON(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n\ufeff")
	if len(head) == 0 || head[0] != '{' && head[0] != '[' {
		return false
	}
	return bytes.Contains(head, []byte(`"iteration"`)) && bytes.Contains(head, []byte(`"reasons"`))
}
