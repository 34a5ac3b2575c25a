package main

import (
	"fmt"
	"io"
	"sync"
)

// A console is what several goroutines write whole lines to. On a terminal one line may be
// rewritten in place below them; it makes room for what is written.
type console struct {
	mu    sync.Mutex
	w     io.Writer
	shown int // characters of the line in place
}

// Write writes lines.
func (c *console) Write(lines []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	return c.w.Write(lines)
}

// replace shows a line in place of the one there.
func (c *console) replace(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.w, "\r%-*s", c.shown, line)
	c.shown = len(line)
}

// blank takes the line in place away.
func (c *console) blank() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
}

func (c *console) clear() {
	if c.shown > 0 {
		fmt.Fprintf(c.w, "\r%*s\r", c.shown, "")
		c.shown = 0
	}
}
