package investigate

import (
	"fmt"
	"math"
)

// What to do next, by what was found. Commands are meant to be typed as they are.

func liftRateLimit() Step {
	return Step{"ovs-appctl vlog/disable-rate-limit pmd_perf", "logs every suspicious iteration; without it messages are dropped from 600 a minute on"}
}

func logFrom(us uint64) Step {
	return Step{fmt.Sprintf("ovs-appctl dpif-netdev/pmd-perf-log-set on -us %d", us), "logs only iterations that are far from usual"}
}

func observe(core int) Step {
	return Step{"pmdperf observe --pid $(pidof ovs-vswitchd)", "names what ran instead of the PMD thread" + on(core)}
}

func on(core int) string {
	if core < 0 {
		return ""
	}
	return fmt.Sprintf(" on core %d", core)
}

// offCPU are the steps for a thread that doesn't have its core for itself.
func offCPU(core int) []Step {
	steps := []Step{observe(core)}
	if core < 0 {
		return append(steps,
			Step{"cat /sys/devices/system/cpu/isolated", "the PMDs' cores should be among these: isolcpus= or a cpuset keeps other tasks off"})
	}
	cpu := fmt.Sprintf("/sys/devices/system/cpu/cpu%d", core)
	return append(steps,
		Step{fmt.Sprintf("ps -eLo psr,cls,rtprio,pcpu,comm --sort=-pcpu | awk '$1 == %d'", core), "lists what else runs there"},
		Step{"cat /sys/devices/system/cpu/isolated", fmt.Sprintf("core %d should be among these: isolcpus=%d nohz_full=%d rcu_nocbs=%d, or a cpuset, keeps other tasks off", core, core, core, core)},
		Step{fmt.Sprintf("cat %s/topology/thread_siblings_list", cpu), "a busy SMT sibling takes half of the core"},
		Step{fmt.Sprintf("cat %s/cpufreq/scaling_governor", cpu), "should be performance"},
	)
}

func stoppedSteps(core int) []Step {
	return []Step{
		observe(core),
		{"grep -E 'State|ctxt' /proc/$(pidof ovs-vswitchd)/task/*/status", "T or t is stopped, by a signal or a debugger; many involuntary switches say that others ran"},
		{"cat /sys/fs/cgroup/$(cut -d: -f3 /proc/$(pidof ovs-vswitchd)/cgroup | tail -1)/cpu.stat", "nr_throttled rises where a CPU quota is used up"},
		{"grep -E '^cpu' /proc/stat", "the eighth number is time stolen by the hypervisor"},
	}
}

// tidy returns a length that is good to be typed: 1, 2 or 5 with zeros.
func tidy(us float64) uint64 {
	if us <= 1 {
		return 1
	}
	p := math.Pow(10, math.Floor(math.Log10(us)))
	for _, m := range [...]float64{1, 2, 5, 10} {
		if m*p >= us {
			return uint64(m * p)
		}
	}
	return uint64(us)
}
