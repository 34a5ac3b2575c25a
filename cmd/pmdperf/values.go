package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// value is a flag's value of any type. Its parse function returns errors that say
// what to write instead.
type value[T any] struct {
	to    *T
	parse func(string) (T, error)
	kind  string // how the help calls it
	text  string
}

func (v *value[T]) Set(s string) error {
	x, err := v.parse(s)
	if err != nil {
		return err
	}
	*v.to, v.text = x, s
	return nil
}

func (v *value[T]) String() string { return v.text }
func (v *value[T]) Type() string   { return v.kind }

// list is the value of a flag that may be given several times. The first time
// replaces the default.
type list[T any] struct {
	to    *[]T
	parse func(string) (T, error)
	kind  string
	text  []string
	given bool
}

func (l *list[T]) Set(s string) error {
	x, err := l.parse(s)
	if err != nil {
		return err
	}
	if !l.given {
		*l.to, l.text, l.given = nil, nil, true
	}
	*l.to, l.text = append(*l.to, x), append(l.text, s)
	return nil
}

func (l *list[T]) String() string { return strings.Join(l.text, " ") }
func (l *list[T]) Type() string   { return l.kind }

// addFlag adds a flag with a default, which must be right; an empty one leaves *to
// as it is.
func addFlag[T any](flags *pflag.FlagSet, to *T, name, kind, def, usage string, parse func(string) (T, error)) {
	v := &value[T]{to: to, parse: parse, kind: kind}
	if def != "" {
		must(v.Set(def))
	}
	flags.Var(v, name, usage)
}

// addList adds a flag that may be given several times.
func addList[T any](flags *pflag.FlagSet, to *[]T, name, kind, def, usage string, parse func(string) (T, error)) {
	l := &list[T]{to: to, parse: parse, kind: kind}
	if def != "" {
		must(l.Set(def))
	}
	l.given = false
	flags.Var(l, name, usage)
}

// must is for what only a mistake in this program can make fail.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// oneOf returns a parse function for a choice of words.
func oneOf[T ~string](choices ...T) func(string) (T, error) {
	return func(s string) (T, error) {
		if !slices.Contains(choices, T(s)) {
			return "", fmt.Errorf("unknown %q: choose %s", s, orList(choices))
		}
		return T(s), nil
	}
}

func anyText(s string) (string, error) { return s, nil }

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration: write a number with its unit, say 10s or 50us", s)
	}
	return d, nil
}

func parseCount(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is no count: write a whole number from 1 up", s)
	}
	return n, nil
}

// parseRate reads packets a second, with k or M for thousands or millions.
func parseRate(s string) (float64, error) {
	number, scale := s, 1.0
	if t, ok := strings.CutSuffix(s, "k"); ok {
		number, scale = t, 1e3
	} else if t, ok := strings.CutSuffix(s, "M"); ok {
		number, scale = t, 1e6
	}
	rate, err := strconv.ParseFloat(number, 64)
	rate *= scale
	if err != nil || !(rate >= 0) || math.IsInf(rate, 0) {
		return 0, fmt.Errorf("%q is no rate: write packets a second, say 1M or 500k, or 0 for as many as the loop takes", s)
	}
	return rate, nil
}

// maxCore is the highest core number that Linux's scheduling calls take as Go's
// system call package makes them: a CPUSet is 1024 bits.
const maxCore = 1023

// parseCores reads core numbers and ranges, say 0,2-3.
func parseCores(s string) ([]int, error) {
	wrong := func() ([]int, error) {
		return nil, fmt.Errorf("%q is no list of cores: write numbers up to %d and ranges, say 0,2-3", s, maxCore)
	}
	number := func(s string) (int, bool) {
		n, err := strconv.ParseUint(s, 10, 16)
		return int(n), err == nil && n <= maxCore
	}
	var cores []int
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		lo, ok := number(from)
		if !ok {
			return wrong()
		}
		hi := lo
		if isRange {
			if hi, ok = number(to); !ok || hi < lo {
				return wrong()
			}
		}
		for core := lo; core <= hi; core++ {
			if slices.Contains(cores, core) {
				return nil, fmt.Errorf("core %d is listed twice in %q: list it once, one PMD runs on a core", core, s)
			}
			cores = append(cores, core)
		}
	}
	return cores, nil
}
