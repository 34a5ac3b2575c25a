package observe

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestAside keeps this process off a core, and back on.
func TestAside(t *testing.T) {
	var before, none, one, now unix.CPUSet
	get := func(set *unix.CPUSet) {
		t.Helper()
		set.Zero()
		if err := unix.SchedGetaffinity(unix.Getpid(), set); err != nil {
			t.Fatal(err)
		}
	}
	get(&before)
	if before.Count() < 2 {
		t.Skip("there is one core only, which nobody is kept off")
	}
	core := 0
	for !before.IsSet(core) {
		core++
	}
	one.Set(core)
	var a aside
	a.keepOff(none)
	if get(&now); now != before {
		t.Error("it was moved for no core")
	}
	a.keepOff(one)
	if get(&now); now.IsSet(core) || now.Count() != before.Count()-1 {
		t.Errorf("it may run on %d cores, core %d among them: %v", now.Count(), core, now.IsSet(core))
	}
	a.keepOff(before) // no core would be left
	if get(&now); now.Count() == 0 || now.IsSet(core) {
		t.Errorf("it may run on %d cores", now.Count())
	}
	a.keepOff(none)
	if get(&now); now != before {
		t.Error("it stays away from a core that nobody has any more")
	}
	a.keepOff(one)
	a.back()
	if get(&now); now != before {
		t.Error("it isn't back")
	}
}
