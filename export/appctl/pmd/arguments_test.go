package pmd

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// grammars are those of the commands.
func grammars() map[string]grammar {
	gs := make(map[string]grammar)
	for _, c := range new(service).commands() {
		gs[c.name] = c.grammar
	}
	return gs
}

// words writes the arguments in the order of the grammar's options, the word last.
func (a *arguments) words(g grammar) []string {
	var words []string
	for _, o := range g.options {
		if n, ok := a.numbers[o.name]; ok {
			words = append(words, o.name, strconv.FormatUint(n, 10))
		} else if a.flags[o.name] {
			words = append(words, o.name)
		}
	}
	if a.hasWord {
		words = append(words, a.word)
	}
	return words
}

func TestParseArguments(t *testing.T) {
	show := grammars()["dpif-netdev/pmd-perf-show"]
	all := &arguments{map[string]bool{"-nh": true}, map[string]uint64{"-it": 5, "-ms": 0, "-pmd": 3}, "dp", true}
	for _, test := range []struct {
		args string // by blanks
		want *arguments
		err  string
	}{
		{"", &arguments{map[string]bool{}, map[string]uint64{}, "", false}, ""},
		{"-nh -it 5 -ms 0 -pmd 3 dp", all, ""},
		{"dp -pmd 3 -ms 0 -it 5 -nh", all, ""},
		{"-pmd 3 -it 5 dp -nh -ms 0", all, ""},
		{"-pmd 3 -it 5 dp -nh -ms +0", nil, `-ms "+0" is not a number from 0 to 4294967295`},
		{"-it 4294967296", nil, `-it "4294967296" is not a number from 0 to 4294967295`},
		{"-it 0x10", nil, `-it "0x10" is not a number from 0 to 4294967295`},
		{"-nh -nh", nil, "-nh is given twice"},
		{"-it 1 -it 1", nil, "-it is given twice"},
		{"-it -nh", nil, `-it "-nh" is not a number from 0 to 4294967295`},
		{"-pmd", nil, "-pmd needs a number"},
		{"a b", nil, `"a" and "b" are more than one dp`},
		{"-", nil, `unknown option "-"`},
		{"-it=5", nil, `unknown option "-it=5"`},
		{"-secs 5", nil, `unknown option "-secs"`},
	} {
		got, err := show.parse(strings.Fields(test.args))
		if test.err != "" {
			if err == nil || err.Error() != test.err {
				t.Errorf("%q: error %v, want %s", test.args, err, test.err)
			}
			continue
		}
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(arguments{})); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", test.args, err, diff)
		}
	}
	if got, err := show.parse([]string{"", "-nh"}); err != nil || !got.hasWord {
		t.Errorf("an empty word: %+v, %v", got, err)
	}
}

// FuzzArguments checks that what is read keeps within its bounds and doesn't depend on
// the order of the options, and that what is refused is refused with a reason.
func FuzzArguments(f *testing.F) {
	for _, c := range calls {
		name, args, _ := strings.Cut(c.command, " ")
		f.Add(name, strings.ReplaceAll(args, " ", "\x00"))
	}
	gs := grammars()
	f.Fuzz(func(t *testing.T, name, joined string) {
		g, ok := gs[name]
		if !ok {
			return
		}
		var args []string
		if joined != "" {
			args = strings.Split(joined, "\x00")
		}
		a, err := g.parse(args)
		if err != nil {
			if e, ok := errors.AsType[*argumentError](err); !ok || e.text == "" {
				t.Fatalf("%q: %#v", args, err)
			}
			return
		}
		for _, o := range g.options {
			if n, ok := a.numbers[o.name]; ok && (n < o.min || n > o.max) {
				t.Errorf("%q: %s %d", args, o.name, n)
			}
		}
		words := a.words(g)
		if len(words) != len(args) {
			t.Errorf("%q: read as %q", args, words)
		}
		// The word first.
		if n := len(words) - 1; a.hasWord {
			words = slices.Concat(words[n:], words[:n])
		}
		b, err := g.parse(words)
		if diff := cmp.Diff(a, b, cmp.AllowUnexported(arguments{})); err != nil || diff != "" {
			t.Errorf("%q and %q: %v (-one +other):\n%s", args, words, err, diff)
		}
	})
}
