package pmd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// grammar says what arguments a command takes: options in any order, and at most
// one word that is not an option, anywhere among them.
type grammar struct {
	options []option
	word    string // what the word is, as in the usage; empty if there is none
}

// option is an option of a command, with or without a number after it.
type option struct {
	name     string // "-it"
	number   bool
	min, max uint64
	off      bool // "off" is a number too: 0
}

func plain(name string) option { return option{name: name} }

func number(name string, min, max uint64) option {
	return option{name: name, number: true, min: min, max: max}
}

// orOff lets an option with a number take "off" for 0.
func orOff(o option) option {
	o.off = true
	return o
}

// arguments are what a client gave.
type arguments struct {
	flags   map[string]bool
	numbers map[string]uint64
	word    string
	hasWord bool
}

// argumentError is an argument that makes no sense.
type argumentError struct {
	option string // that it is about, if any
	text   string
}

func (e *argumentError) Error() string { return e.text }

// parse reads the arguments. The error is an *argumentError.
func (g *grammar) parse(args []string) (*arguments, error) {
	a := &arguments{flags: map[string]bool{}, numbers: map[string]uint64{}}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if !strings.HasPrefix(arg, "-") {
			if err := a.setWord(arg, g.word); err != nil {
				return nil, err
			}
			continue
		}
		i := slices.IndexFunc(g.options, func(o option) bool { return o.name == arg })
		if i < 0 {
			return nil, &argumentError{text: fmt.Sprintf("unknown option %q", arg)}
		}
		o := &g.options[i]
		if a.given(o.name) {
			return nil, &argumentError{o.name, o.name + " is given twice"}
		}
		if !o.number {
			a.flags[o.name] = true
			continue
		}
		if len(args) == 0 {
			return nil, &argumentError{o.name, o.name + " needs a number"}
		}
		n, err := strconv.ParseUint(args[0], 10, 64)
		switch {
		case o.off && args[0] == "off":
			n = 0
		case err != nil || n < o.min || n > o.max:
			orOff := ""
			if o.off {
				orOff = " or off"
			}
			return nil, &argumentError{o.name, fmt.Sprintf("%s %q is not a number from %d to %d%s", o.name, args[0], o.min, o.max, orOff)}
		}
		a.numbers[o.name] = n
		args = args[1:]
	}
	return a, nil
}

func (a *arguments) setWord(word, what string) error {
	switch {
	case what == "":
		return &argumentError{text: fmt.Sprintf("unexpected argument %q", word)}
	case a.hasWord:
		return &argumentError{text: fmt.Sprintf("%q and %q are more than one %s", a.word, word, what)}
	}
	a.word, a.hasWord = word, true
	return nil
}

// given reports whether the option is there.
func (a *arguments) given(name string) bool {
	_, number := a.numbers[name]
	return number || a.flags[name]
}
