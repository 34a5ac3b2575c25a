// Package cause tells why an iteration of a poll loop took long: what the loop's
// thread was doing, or who kept it from running.
//
// [Open] starts the probes for one thread, as many as the privileges allow: everybody
// gets the thread's CPU time, its time waiting for a core, its state, system call and
// page faults, the quota of its cgroup, the hypervisor's steal, and the Go runtime's
// stops. perf_event_open adds exact times off the core, for an ordinary user's own
// threads too where kernel.perf_event_paranoid is 2 or less. As root, BPF programs on
// the scheduler's tracepoints name the task that ran instead, the state and system call
// in which the thread left, and time the interrupts of its core.
//
// [Probes.Between] returns what they saw of a stretch of time, and [Attribute] turns
// that, with what the loop itself recorded, into causes, each with the part of the time
// that it explains, its evidence, and how exact it is.
//
// A stop of the whole process by a signal is one that nobody in it can see. Without BPF
// it is told by the signal that ends it, for which there is a handler while probes for a
// thread of this process run (the process goes on with or without one).
//
// The loop has no part in any of this. Counters that only the kernel's files tell are
// read every millisecond from a goroutine of the probes, so that a slow iteration lies
// between two readings; where its thread stays on its core, nothing is sent there and
// nothing is woken. The programs cost
// 100 to 200 ns in every context switch and wake-up of the machine, and twice that in
// every interrupt of the core: so the kernel's statistics of BPF had it, which count
// their own clock with them.
package cause
