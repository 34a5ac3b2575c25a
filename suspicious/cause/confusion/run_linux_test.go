package confusion

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/suspicious/cause"
)

// childEnv turns the test binary into the process that is made slow: it holds how
// often, and as whom.
const childEnv = "PMDPERF_CONFUSION"

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
	var o Options
	var user bool
	if _, err := fmt.Sscan(arg, &o.Each, &o.Probes.Most, &user); err != nil {
		return err
	}
	o.Core = -1
	if user {
		o.Ready = becomeNobody
	}
	t, err := Run(context.Background(), o)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(t)
}

// becomeNobody gives up all privileges for good. The process may still look at itself:
// a change of user makes it unreadable for its own new user otherwise.
func becomeNobody() error {
	const nobody = 65534
	if err := unix.Setgroups(nil); err != nil {
		return err
	}
	if err := unix.Setresgid(nobody, nobody, nobody); err != nil {
		return err
	}
	if err := unix.Setresuid(nobody, nobody, nobody); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
}

// run makes the table in a process of its own.
func run(t *testing.T, each int, most cause.Source, user bool) *Table {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1", fmt.Sprintf("%s=%d %d %v", childEnv, each, most, user))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	// A process that has given up its privileges can't remove its cgroup.
	if cmd.Process != nil {
		left, _ := filepath.Glob("/sys/fs/cgroup/cpu*/pmdperf-quota-" + strconv.Itoa(cmd.Process.Pid))
		for _, dir := range left {
			_ = os.Remove(dir)
		}
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	table := new(Table)
	if err := json.Unmarshal(out, table); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", b.String())
	return table
}

// TestConfusion makes a loop slow in every way and wants the cause to be named, with
// every set of probes that an embedder may end up with. It is an experiment that other
// load on the machine spoils, and so runs by itself: make confusion.
func TestConfusion(t *testing.T) {
	if os.Getenv("PMDPERF_CONFUSION") != "1" {
		t.Skip("an experiment: run it with 'make confusion' on a quiet machine")
	}
	need.Root(t)
	for _, tt := range []struct {
		name  string
		most  cause.Source
		user  bool
		named float64
		blind []string // what these probes can't tell
	}{
		{name: "root", most: cause.BPF, named: 0.95},
		{name: "core", most: cause.PerfCore, named: 0.90},
		{name: "user", most: cause.BPF, user: true, named: 0.90},
		// Sums tell as much as the readings are close to each other, which is up to who
		// else uses the other cores.
		{name: "counters", most: cause.Counters, user: true, blind: []string{"garbage collections"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const each = 100
			table := run(t, each, tt.most, tt.user)
			if tt.name == "root" && !table.Probes[0].Runs {
				t.Skipf("this machine has no BPF: %s", table.Probes[0].Why)
			}
			var all Row
			for _, r := range table.Rows {
				if r.Skipped != "" || slices.Contains(tt.blind, r.Provocation) {
					continue
				}
				all.Made, all.Named, all.Wrong = all.Made+r.Made, all.Named+r.Named, all.Wrong+r.Wrong
				// Few say little, and with others on the machine fewer count.
				if r.Made >= each/2 {
					check(t, r.Provocation, r, tt.named, 0.01)
				}
			}
			if all.Made < each*len(table.Rows)/3 {
				t.Errorf("only %d provocations of %d made a difference", all.Made, each*len(table.Rows))
			}
			check(t, "all", all, min(0.7, tt.named), 0.2)
		})
	}
}

// check wants a part of the provocations to be named, and no more than a part to be
// taken for something else with confidence.
func check(t *testing.T, what string, r Row, named, wrong float64) {
	t.Helper()
	if got := float64(r.Named) / float64(r.Made); got < named {
		t.Errorf("%s: the cause was named in %.0f %%, want %.0f %%", what, 100*got, 100*named)
	}
	if got := float64(r.Wrong) / float64(r.Made); got > wrong {
		t.Errorf("%s: something else was named with confidence in %.0f %%, want at most %.0f %%", what, 100*got, 100*wrong)
	}
}
