package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

// untilInterrupted returns a context that ends with the first Ctrl-C or SIGTERM, which
// are as before after restore.
func untilInterrupted(cmd *cobra.Command) (ctx context.Context, restore context.CancelFunc) {
	return signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
}

// deliver writes what was made to the named file, or prints it where that is "". what
// says in an error what it is.
func deliver(stdout io.Writer, name, what string, made []byte) error {
	if name == "" {
		if _, err := stdout.Write(made); err != nil {
			return fmt.Errorf("print %s: %w", what, err)
		}
		return nil
	}
	return writeFile(name, func(w io.Writer) error {
		_, err := w.Write(made)
		return err
	})
}

// writeFile writes a file whole or not at all.
func writeFile(name string, write func(io.Writer) error) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		// A device or a pipe can't be replaced.
		file, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(file), file.Close())
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // unless it was renamed
	if err := errors.Join(write(file), file.Chmod(0o644), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return os.Rename(file.Name(), name)
}
