package confusion

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/suspicious/cause"
)

// childEnv turns the test binary into the process that is made slow: it holds how
// often, with which probes, and as whom.
const childEnv = "PMDPERF_CONFUSION_CHILD"

func TestMain(m *testing.M) {
	if arg := os.Getenv(childEnv); arg != "" {
		if err := child(arg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(arg string) error {
	o := Options{Core: -1}
	if _, err := fmt.Sscan(arg, &o.Rounds, &o.Probes.Most, &o.User); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return Serve(ctx, os.Stdout, o)
}

// run makes the table in a process of its own.
func run(t *testing.T, rounds int, most cause.Source, user bool, progress func(*os.Process, Progress)) *Table {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %v", childEnv, rounds, most, user))
	table, err := Supervise(cmd, func(p Progress) {
		if progress != nil {
			progress(cmd.Process, p)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", b.String())
	return table
}

// blind is what no more than sums of counters can't tell.
var blind = []string{"garbage collections"}

// TestConfusion makes a loop slow in every way and wants the cause to be named, with
// every set of probes that an embedder may end up with. What is right is judged by the
// thread's own counters, so that other load on the machine does no harm. Few rounds say
// little: the rates that are promised take many, and a machine that is quiet. Those are
// asserted with PMDPERF_CONFUSION=1 ('make confusion'), which takes a quarter of an hour.
func TestConfusion(t *testing.T) {
	need.Root(t)
	rounds, slack := 2, 0.25
	switch {
	case os.Getenv("PMDPERF_CONFUSION") == "1":
		rounds, slack = 100, 0
	case need.Long():
		rounds, slack = 10, 0.1
	}
	for _, tt := range []struct {
		name  string
		most  cause.Source
		user  bool
		named float64
		blind []string
	}{
		{name: "root", most: cause.BPF, named: 0.95},
		{name: "core", most: cause.PerfCore, named: 0.90},
		{name: "user", most: cause.BPF, user: true, named: 0.90},
		// Sums tell as much as the readings are close to each other, which is up to who
		// else uses the other cores.
		{name: "counters", most: cause.Counters, user: true, blind: blind},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if rounds < 100 && tt.name != "root" && tt.name != "user" {
				t.Skip("only with PMDPERF_CONFUSION=1")
			}
			table := run(t, rounds, tt.most, tt.user, nil)
			if tt.name == "root" && !table.Probes[0].Runs {
				need.Skip(t, "BPF: "+table.Probes[0].Why)
			}
			if table.User != tt.user {
				t.Errorf("the probes ran with other privileges: user %v", table.User)
			}
			var all Row
			for _, r := range table.Rows {
				if r.Skipped != "" || slices.Contains(tt.blind, r.Provocation) {
					continue
				}
				all.Made, all.Named, all.Wrong = all.Made+r.Made, all.Named+r.Named, all.Wrong+r.Wrong
				if rounds >= 100 && table.Quiet() && r.Made >= rounds/2 {
					check(t, r.Provocation, r, tt.named, 0.01)
				}
			}
			if all.Made < rounds*len(table.Rows)/3 {
				t.Errorf("only %d provocations of %d made a difference", all.Made, rounds*len(table.Rows))
			}
			least := tt.named
			if !table.Quiet() {
				t.Log("others use the machine: no rate is asserted for each provocation, but for all")
				least -= 0.1
			}
			check(t, "all", all, min(0.85, least)-slack, 0.01+slack/2)
		})
	}
}

// check wants a part of the provocations to be named, and no more than a part to be
// taken for something else with confidence.
func check(t *testing.T, what string, r Row, named, wrong float64) {
	t.Helper()
	if got := r.NamedShare(); got < named {
		t.Errorf("%s: the cause was named in %.0f %%, want %.0f %%", what, 100*got, 100*named)
	}
	if got := r.WrongShare(); got > wrong {
		t.Errorf("%s: something that was not so was named with confidence in %.0f %%, want at most %.0f %%", what, 100*got, 100*wrong)
	}
}

// TestInterrupt ends a run early and wants what there is.
func TestInterrupt(t *testing.T) {
	table := run(t, 1000, cause.Counters, false, func(p *os.Process, got Progress) {
		if got.Made >= 3 {
			_ = p.Signal(unix.SIGINT)
		}
	})
	if len(table.Rows) != 1 || table.Rows[0].Made < 3 || table.Rows[0].Made >= 1000 {
		t.Errorf("%d rows: %+v", len(table.Rows), table.Rows)
	}
}

func TestProvocations(t *testing.T) {
	names := Provocations()
	if len(names) != 10 || names[0] != "hog on the core" {
		t.Errorf("%q", names)
	}
}
