package appctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// NoMax as Command.MaxArgs lets a command take any number of arguments.
const NoMax = -1

// Command is one thing that a server can be asked for. Its functions are called
// concurrently, one call for each connection that asks.
type Command struct {
	// Name is what clients ask for, say "dpif-netdev/pmd-perf-show".
	Name string

	// Usage describes the arguments in list-commands, say "[-nh] [dp]".
	Usage string

	// MinArgs and MaxArgs are how few and how many arguments the command takes.
	// The server refuses other numbers itself. The zero values mean none at all.
	MinArgs, MaxArgs int

	// Text runs the command and writes its result to w, or returns the error that
	// the client is told in its stead. Writing doesn't fail; w is not to be used by
	// several goroutines or after the return. A missing newline at the end is added.
	// Arguments hold the client's bytes and may not be UTF-8. The context ends when
	// the server is closed; Close waits for the function to return. It must not be nil.
	Text func(ctx context.Context, w io.Writer, args []string) error

	// JSON runs the command for a client that asked for JSON, and returns what
	// encoding/json can marshal. If it is nil such a client is given the text,
	// wrapped in an object that says so.
	JSON func(ctx context.Context, args []string) (any, error)
}

// commandSet is the commands of one server, by name. It doesn't change while
// the server runs.
type commandSet map[string]Command

func (s commandSet) add(c Command) error {
	switch {
	case c.Name == "" || strings.ContainsAny(c.Name, " \t\n\x00"):
		return fmt.Errorf("appctl: command name %q is empty or has white space in it", c.Name)
	case c.Text == nil:
		return fmt.Errorf("appctl: command %q has no text form", c.Name)
	case c.MinArgs < 0 || c.MaxArgs < NoMax || c.MaxArgs != NoMax && c.MaxArgs < c.MinArgs:
		return fmt.Errorf("appctl: command %q takes %d to %d arguments, which can't be", c.Name, c.MinArgs, c.MaxArgs)
	}
	if _, twice := s[c.Name]; twice {
		return fmt.Errorf("appctl: command %q is there twice", c.Name)
	}
	s[c.Name] = c
	return nil
}

// find returns the command that a request wants and its arguments, or the error
// that the client is told. The texts and their order are Open vSwitch's, which
// scripts compare with (lib/unixctl.c, process_command).
func (s commandSet) find(r request) (Command, []string, error) {
	c, ok := s[r.method]
	switch {
	case !ok:
		return Command{}, nil, fmt.Errorf(`"%s" is not a valid command (use "list-commands" to see a list of valid commands)`, r.method)
	case len(r.params) < c.MinArgs:
		return Command{}, nil, fmt.Errorf(`"%s" command requires at least %d arguments`, r.method, c.MinArgs)
	case c.MaxArgs != NoMax && len(r.params) > c.MaxArgs:
		return Command{}, nil, fmt.Errorf(`"%s" command takes at most %d arguments`, r.method, c.MaxArgs)
	}
	args := make([]string, len(r.params))
	for i, p := range r.params {
		if p[0] != '"' {
			return Command{}, nil, fmt.Errorf(`"%s" command has non-string argument`, r.method)
		}
		args[i] = unquote(p)
	}
	return c, args, nil
}

// list is the text of list-commands, in the format of Open vSwitch.
func (s commandSet) list() string {
	var b strings.Builder
	b.WriteString("The available commands are:\n")
	for _, name := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&b, "  %-23s %s\n", name, s[name].Usage)
	}
	return b.String()
}

// Names of the built-in commands that connections treat specially.
const (
	setOptions = "set-options"
	exit       = "exit"
)

// builtin returns the commands that every server has. set-options and exit are
// there for their names and numbers of arguments; the connection carries them
// out.
func (s commandSet) builtin(version string, withExit bool) []Command {
	constant := func(text func() string) func(context.Context, io.Writer, []string) error {
		return func(_ context.Context, w io.Writer, _ []string) error {
			_, err := io.WriteString(w, text())
			return err
		}
	}
	empty := constant(func() string { return "" })
	cs := []Command{
		{Name: "list-commands", Text: constant(s.list)},
		{Name: "version", Text: constant(func() string { return version })},
		{Name: setOptions, Usage: "[--format text|json]", MinArgs: 1, MaxArgs: 2, Text: empty},
	}
	if withExit {
		cs = append(cs, Command{Name: exit, Text: empty})
	}
	return cs
}

// parseFormat reads the arguments of set-options and reports whether they ask
// for JSON.
func parseFormat(args []string) (bool, error) {
	format, joined := strings.CutPrefix(args[0], "--format=")
	switch {
	case joined && len(args) == 1:
	case args[0] == "--format" && len(args) == 2:
		format = args[1]
	case args[0] == "--format" && len(args) == 1:
		return false, errors.New("option '--format' requires an argument")
	default:
		return false, fmt.Errorf("invalid options %q, want --format text or --format json", args)
	}
	switch format {
	case "json":
		return true, nil
	case "text":
		return false, nil
	}
	return false, fmt.Errorf("invalid output format %q, want text or json", format)
}
