package cause

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pmdperf/pmdperf/history"
)

// ms makes times of the tests below readable.
const ms = int64(time.Millisecond)

// onCore is the evidence of a thread that had its core for 2 ms, all probes running.
func onCore() Evidence {
	return Evidence{
		From: 10 * ms, To: 12 * ms, Own: true, Switches: true, Named: true, States: true, Timed: true, Ticking: true,
		FaultPrice: time.Microsecond,
		Thread:     &ThreadCounts{Over: 4 * time.Millisecond, CPU: 4 * time.Millisecond},
		System:     &SystemCounts{Over: 12 * time.Millisecond},
		Go:         &GoCounts{Over: 4 * time.Millisecond},
	}
}

// off is onCore with a spell off the core from 10.5 to 12 ms.
func off(s Spell) Evidence {
	ev := onCore()
	s.Out, s.In = 10*ms+ms/2, 12*ms
	ev.Spells = []Spell{s}
	ev.Thread.CPU -= 1500 * time.Microsecond
	ev.Thread.Off = 1500 * time.Microsecond
	return ev
}

// user takes away what only root sees.
func user(ev Evidence) Evidence {
	ev.Named, ev.States, ev.Timed, ev.Ticking, ev.Interrupts = false, false, false, false, nil
	for i := range ev.Spells {
		ev.Spells[i].Ran, ev.Spells[i].Call = nil, ""
		if ev.Spells[i].State != "runnable" {
			ev.Spells[i].State = ""
		}
	}
	return ev
}

func TestAttribute(t *testing.T) {
	pass := Iteration{Start: 10 * ms, End: 12 * ms, Hz: 1e9, Record: history.Record{Cycles: uint64(2 * ms), Rx: 32}, Queue: "p0 1"}
	with := func(change func(*Iteration)) Iteration {
		it := pass
		change(&it)
		return it
	}
	change := func(ev Evidence, change func(*Evidence)) Evidence {
		change(&ev)
		return ev
	}
	ran := func(pid int, name string) []Ran { return []Ran{{10*ms + ms/2, 12 * ms, pid, name}} }
	hog := Spell{State: "runnable", Ran: ran(7, "sh")}
	idle := Spell{State: "runnable", Ran: ran(0, "idle")}

	stopPass := Iteration{Start: 22 * ms, End: 32 * ms, Hz: 1e9}
	stop := Evidence{Own: true, Switches: true, Spells: []Spell{{Out: 22 * ms, In: 32 * ms, State: "stopped"}}}

	for _, tt := range []struct {
		name string
		it   Iteration
		ev   Evidence
		want []string // title, share in percent, exactness
	}{
		{"own work", pass, onCore(), []string{"the loop's own work: queue p0 1, 32 packets 100 exact"}},
		{"own work as a user", pass, user(onCore()), []string{"the loop's own work: queue p0 1, 32 packets 100 inferred"}},
		{"no probe", pass, Evidence{}, []string{"unknown 100 inferred"}},
		{"no probe, upcalls", with(func(it *Iteration) { it.Record.Upcalls, it.Record.UpcallCycles = 3, uint64(ms) }), Evidence{},
			[]string{"upcalls: 3 upcalls 50 exact", "unknown 50 inferred"}},
		{"timer", with(func(it *Iteration) { it.Timers = []Timer{{"age", 1800000}, {"tx", 5}} }), onCore(), []string{"the loop's own work: timer age 100 exact"}},
		{"small timer", with(func(it *Iteration) { it.Timers = []Timer{{"age", 5}} }), onCore(), []string{"the loop's own work: queue p0 1, 32 packets 100 exact"}},
		{"queue by its index", with(func(it *Iteration) { it.Queue, it.Record.Flags = "", history.Flags(0).WithQueue(3) }), onCore(),
			[]string{"the loop's own work: queue 3, 32 packets 100 exact"}},
		{"upcalls", with(func(it *Iteration) { it.Record.Upcalls, it.Record.UpcallCycles = 1, 1500000 }), onCore(),
			[]string{"upcalls: 1 upcall 75 exact", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"hog", pass, off(hog), []string{"preempted by sh 75 exact", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"hog as a user", pass, user(off(hog)), []string{"preempted by another task 75 exact", "the loop's own work: queue p0 1, 32 packets 25 inferred"}},
		{"two hogs", pass, off(Spell{State: "runnable", Ran: []Ran{{10*ms + ms/2, 11 * ms, 7, "sh"}, {11 * ms, 12 * ms, 8, "cc"}}}),
			[]string{"preempted by cc 50 exact", "preempted by sh 25 exact", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"so many that the list ends early", pass, off(Spell{State: "runnable", More: true, Ran: []Ran{{10*ms + ms/2, 11 * ms, 7, "sh"}}}),
			[]string{"preempted by another task 50 exact", "preempted by sh 25 exact", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"its end is missing", pass, change(off(Spell{State: "runnable", Ran: ran(7, "sh")}), func(ev *Evidence) {
			ev.Spells[0].In, ev.Spells[0].Ran[0].To = 11*ms, 11*ms
			ev.Gaps = []Gap{{11 * ms, 11*ms + ms/2}}
			ev.Thread.Off = -1
		}), []string{"the loop's own work: queue p0 1, 32 packets 50 exact", "preempted by sh 25 exact", "unknown 25 inferred"}},
		{"runnable, core idle", pass, off(idle), []string{"unknown 75 inferred", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"quota", pass, change(off(idle), func(ev *Evidence) {
			ev.System.Throttled, ev.System.ThrottleCount = 2*time.Millisecond, 1
		}), []string{"throttled by a cgroup's CPU quota 75 sampled", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"quota of a moment, and a hog", pass, change(off(hog), func(ev *Evidence) {
			ev.System.Throttled, ev.System.ThrottleCount = 100*time.Microsecond, 1
		}), []string{"preempted by sh 75 exact", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"stop", pass, off(Spell{State: "stopped", Call: "none"}), []string{"stopped by a signal 75 exact", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"debugger", pass, off(Spell{State: "traced"}), []string{"stopped by a debugger 75 exact", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"freezer", pass, off(Spell{State: "frozen"}), []string{"stopped by a freezer 75 exact", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"stop found as a user", pass, change(user(off(Spell{State: "stopped"})), func(ev *Evidence) { ev.Samples = []Sample{{Time: 11 * ms, State: "T"}} }),
			[]string{"stopped by a signal 75 sampled", "the loop's own work: queue p0 1, 32 packets 25 inferred"}},
		{"read", pass, off(Spell{State: "sleeping", Call: "read"}), []string{"blocked in system call read 75 exact", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"read, then a hog", pass, off(Spell{State: "sleeping", Call: "read", Woken: 11 * ms, Ran: []Ran{{10*ms + ms/2, 11 * ms, 0, "idle"}, {11 * ms, 12 * ms, 7, "sh"}}}),
			[]string{"preempted by sh 50 exact", "blocked in system call read 25 exact", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"read as a user", pass, change(user(off(Spell{State: "sleeping"})), func(ev *Evidence) { ev.Samples = []Sample{{Time: 11 * ms, State: "S", Call: "read"}} }),
			[]string{"blocked in system call read 75 sampled", "the loop's own work: queue p0 1, 32 packets 25 inferred"}},
		{"read as a user, then a hog", pass, change(user(off(Spell{State: "sleeping"})), func(ev *Evidence) {
			ev.Samples = []Sample{{Time: 10*ms + 600_000, State: "S", Call: "read"}}
			ev.Thread.Wait, ev.Thread.Asleep, ev.Thread.Sleeps = time.Millisecond, ev.Thread.Off, 1
		}), []string{"preempted by another task 50 sampled", "blocked in system call read 25 sampled", "the loop's own work: queue p0 1, 32 packets 25 inferred"}},
		{"preempted, then read as a user", pass, change(user(off(Spell{State: "sleeping"})), func(ev *Evidence) {
			ev.Samples = []Sample{{Time: 11 * ms, State: "S", Call: "read"}}
			ev.Thread.Wait, ev.Thread.Asleep, ev.Thread.Sleeps = time.Millisecond, ev.Thread.Off, 1
			ev.Thread.Preempted = time.Millisecond // before
		}), []string{"blocked in system call read 75 sampled", "the loop's own work: queue p0 1, 32 packets 25 inferred"}},
		{"stop as a user", stopPass, change(user(stop), func(ev *Evidence) {
			ev.Silences, ev.Continued = []Gap{{21 * ms, 33 * ms}, {34 * ms, 80 * ms}}, []int64{32*ms + ms/2}
		}), []string{"stopped by a signal 100 sampled"}},
		{"stop as a user in a collection", stopPass, change(user(stop), func(ev *Evidence) {
			ev.Silences, ev.Continued = []Gap{{21 * ms, 33 * ms}, {34 * ms, 80 * ms}}, []int64{32*ms + ms/2}
			ev.Go = &GoCounts{Marking: true}
		}), []string{"stopped by a signal 100 sampled"}},
		{"silent, but not continued", stopPass, change(user(stop), func(ev *Evidence) { ev.Silences = []Gap{{21 * ms, 33 * ms}} }),
			[]string{"asleep in the kernel 100 inferred"}},
		{"continued at another time", stopPass, change(user(stop), func(ev *Evidence) {
			ev.Silences, ev.Continued = []Gap{{21 * ms, 33 * ms}, {34 * ms, 80 * ms}}, []int64{25 * ms}
		}), []string{"asleep in the kernel 100 inferred"}},
		{"reader silent at another time", stopPass, change(user(stop), func(ev *Evidence) {
			ev.Silences, ev.Continued = []Gap{{10 * ms, 25 * ms}}, []int64{32*ms + ms/2}
		}), []string{"asleep in the kernel 100 inferred"}},
		{"counters: stop", stopPass, Evidence{Own: true, Silences: []Gap{{21 * ms, 33 * ms}}, Continued: []int64{33 * ms},
			Thread: &ThreadCounts{Over: 13 * time.Millisecond, CPU: 3 * time.Millisecond, Off: -1}}, []string{"stopped by a signal 100 sampled"}},
		{"a sample before it slept", pass, change(user(off(Spell{State: "sleeping"})), func(ev *Evidence) { ev.Samples = []Sample{{Time: 10 * ms, State: "S", Call: "read"}} }),
			[]string{"asleep in the kernel 75 inferred", "the loop's own work: queue p0 1, 32 packets 25 inferred"}},
		{"its own sleep and more", with(func(it *Iteration) { it.Record.Sleep = 500000 }), off(Spell{State: "sleeping", Call: "clock_nanosleep"}),
			[]string{"blocked in system call clock_nanosleep 50 exact", "the loop's own sleep 25 exact", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"scheduler", pass, off(Spell{State: "sleeping", Call: "futex"}), []string{"parked by the Go runtime: scheduler 75 exact", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"collection", pass, change(off(Spell{State: "sleeping", Call: "futex"}), func(ev *Evidence) { ev.Go.Pauses = 1 }),
			[]string{"parked by the Go runtime: garbage collection, stop at its start 75 exact", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"marking", pass, change(off(Spell{State: "sleeping", Call: "futex"}), func(ev *Evidence) { ev.Go.Marking = true }),
			[]string{"parked by the Go runtime: garbage collection, marking 75 exact", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"futex of another program", pass, change(off(Spell{State: "sleeping", Call: "futex"}), func(ev *Evidence) { ev.Own, ev.Go = false, nil }),
			[]string{"blocked in system call futex 75 exact", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"faults", pass, change(onCore(), func(ev *Evidence) { ev.Thread.Faults = 1500 }), []string{"page faults 75 inferred", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"interrupt", pass, change(onCore(), func(ev *Evidence) { ev.Interrupts = []Interrupt{{9 * ms, 11 * ms, "softirq NET_RX"}} }),
			[]string{"interrupts: softirq NET_RX 50 exact", "the loop's own work: queue p0 1, 32 packets 50 exact"}},
		{"interrupt while it was away", pass, change(off(hog), func(ev *Evidence) { ev.Interrupts = []Interrupt{{11 * ms, 12 * ms, "timer interrupt"}} }),
			[]string{"preempted by sh 75 exact", "the loop's own work: queue p0 1, 32 packets 25 exact"}},
		{"pause in part", pass, change(onCore(), func(ev *Evidence) { ev.Pauses = []Pause{{10*ms + ms/2, 20 * ms, 2}} }),
			[]string{"the loop's own work: queue p0 1, 32 packets 100 exact"}},
		{"pause", pass, change(onCore(), func(ev *Evidence) { ev.Pauses = []Pause{{10*ms + ms/2, 12 * ms, 2}} }),
			[]string{"the hypervisor ran something else: pause 75 sampled", "the loop's own work: queue p0 1, 32 packets 25 inferred"}},
		{"one timer interrupt late", pass, change(onCore(), func(ev *Evidence) { ev.Pauses = []Pause{{10*ms + ms/2, 12 * ms, 1}} }),
			[]string{"the hypervisor ran something else: pause 75 inferred", "the loop's own work: queue p0 1, 32 packets 25 inferred"}},
		{"faults in a pause", pass, change(onCore(), func(ev *Evidence) {
			ev.Pauses, ev.Thread.Faults = []Pause{{10*ms + ms/2, 12 * ms, 2}}, 1900
		}), []string{"page faults 95 inferred", "the hypervisor ran something else: pause 5 sampled"}},
		{"steal", pass, change(onCore(), func(ev *Evidence) {
			ev.Thread.CPU -= time.Millisecond
			ev.System.Steal = tick
		}), []string{"the hypervisor ran something else: steal 50 sampled", "the loop's own work: queue p0 1, 32 packets 50 inferred"}},
		{"CPU time lacks something, as a user", pass, change(user(onCore()), func(ev *Evidence) { ev.Thread.CPU -= time.Millisecond }),
			[]string{"unknown 50 inferred", "the loop's own work: queue p0 1, 32 packets 50 inferred"}},
		{"reload", with(func(it *Iteration) { it.Gap, it.GapKind = true, history.Reload }), off(Spell{State: "sleeping", Call: "futex"}), []string{"reload 100 exact"}},
		{"accounting", with(func(it *Iteration) { it.Gap, it.GapKind = true, history.Accounting }), onCore(), []string{"the loop's own work: the recorder's accounting 100 exact"}},
		{"counters: waited", pass, Evidence{Own: true, Thread: &ThreadCounts{Over: 4 * time.Millisecond, CPU: 2500 * time.Microsecond, Wait: 1500 * time.Microsecond, Off: -1}},
			[]string{"preempted by another task 75 inferred", "the loop's own work: queue p0 1, 32 packets 25 inferred"}},
		{"counters: slept", pass, Evidence{Own: true, Thread: &ThreadCounts{Over: 4 * time.Millisecond, CPU: 2500 * time.Microsecond, Off: -1}, Samples: []Sample{{Time: 11 * ms, State: "S", Call: "read"}}},
			[]string{"blocked in system call read 75 sampled", "the loop's own work: queue p0 1, 32 packets 25 inferred"}},
		{"counters: found in a call for a moment", pass, Evidence{Own: true, Thread: &ThreadCounts{Over: 6 * time.Millisecond, CPU: 500 * time.Microsecond, Off: -1}, Samples: []Sample{{Time: 11 * ms, State: "S", Call: "read"}}},
			[]string{"blocked in system call read 100 sampled"}},
		{"counters: found in a call for a moment of many", stopPass, Evidence{Own: true, Thread: &ThreadCounts{Over: 11 * time.Millisecond, CPU: time.Millisecond, Off: -1}, Samples: []Sample{{Time: 23 * ms, State: "S", Call: "read"}}},
			[]string{"blocked in system call read 100 inferred"}},
		{"counters: too far apart", pass, Evidence{Own: true, Thread: &ThreadCounts{Over: 40 * time.Millisecond, CPU: 20 * time.Millisecond, Wait: 20 * time.Millisecond, Off: -1}},
			[]string{"unknown 100 inferred"}},
		{"backwards", with(func(it *Iteration) { it.Start = 20 * ms }), onCore(), []string{"unknown 0 inferred"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			sum := time.Duration(0)
			for _, c := range Attribute(tt.it, tt.ev) {
				got = append(got, fmt.Sprintf("%s %.0f %s", c.Title(), 100*c.Share, c.How))
				sum += c.Part
				if c.Evidence == "" {
					t.Errorf("%s has no evidence", c.Title())
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if sum > tt.it.Duration() {
				t.Errorf("the parts add up to %v of %v", sum, tt.it.Duration())
			}
		})
	}
}

func TestNames(t *testing.T) {
	for k := Unknown; k < NumKinds; k++ {
		text, _ := k.MarshalText()
		var back Kind
		if err := back.UnmarshalText(text); err != nil || back != k {
			t.Errorf("%s came back as %s: %v", k, back, err)
		}
		if c := (Cause{Kind: k}); k != Unknown && c.Title() == "unknown" {
			t.Errorf("%s has no title", k)
		}
	}
	for e := Inferred; e <= Exact; e++ {
		text, _ := e.MarshalText()
		var back Exactness
		if err := back.UnmarshalText(text); err != nil || back != e {
			t.Errorf("%s came back as %s: %v", e, back, err)
		}
	}
	if NumKinds.String() != "kind 13" || new(Kind).UnmarshalText([]byte("x")) == nil {
		t.Error("a kind that doesn't exist has a name")
	}
	c := Cause{Kind: Preempted, Name: "sh", Part: 1900 * time.Microsecond, Share: 0.95, How: Exact, Evidence: "seen"}
	if got, want := c.String(), "preempted by sh: 1.9ms, 95 %, exact (seen)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
