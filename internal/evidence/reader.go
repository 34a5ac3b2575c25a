package evidence

import (
	"context"
	"io"
)

// AddReader reads what comes from elsewhere than a file, under a name for people. An
// error means that the context is done; what could not be read is in Failed.
func (c *Collector) AddReader(ctx context.Context, name string, r io.Reader) error {
	return c.file(ctx, name, r, false)
}
