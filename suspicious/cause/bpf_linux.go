package cause

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// The programs write events into the one value of an array map, which is mapped
// into this process: reading them takes no system call and wakes nobody. The value
// is a head of 64 bytes and a ring of slots of 64 bytes.
const (
	bpfSlots = 4096
	bpfSlot  = 64
	bpfHead  = 64
	bpfSize  = bpfHead + bpfSlots*bpfSlot

	// Offsets in the head.
	headNext   = 0  // number of events begun
	headOut    = 8  // 1 while the thread is off its core
	headCore   = 12 // the core that it left
	headOthers = 16 // how many tasks were noted since
	headDepth  = 20 // nesting of interrupts
	headBegun  = 24 // when the outermost began

	// Offsets in a slot.
	slotSeq   = 0 // number of the event + 1, written last
	slotTime  = 8
	slotKind  = 16
	slotPID   = 20
	slotState = 24
	slotCall  = 32
	slotName  = 40 // 16 bytes, for interrupts 8 bytes duration
	slotSince = 56

	// maxOthers bounds the tasks noted while the thread is away, so that a long
	// sleep on a busy core doesn't flush the ring.
	maxOthers = 256

	// minIRQ is the shortest interrupt that gets an event. Timer interrupts always get
	// one: that they come shows that the machine runs.
	minIRQ = 5_000 // ns
)

// bpfProbe tells when the thread left its core, why, who ran instead, when it was
// woken, and the interrupts of the core, each with its exact time.
type bpfProbe struct {
	m     *ebpf.Map
	mem   []byte
	progs []*ebpf.Program
	links []link.Link
	next  uint64
	stuck int // times that the next event was not there
	irqs  bool
}

// interrupts are the pairs of tracepoints around interrupt work. Those below the
// first two are of amd64.
var interruptPoints = [...]struct{ entry, exit, name string }{
	{"irq_handler_entry", "irq_handler_exit", "interrupt line"},
	{"softirq_entry", "softirq_exit", "softirq"},
	{"local_timer_entry", "local_timer_exit", "timer interrupt"},
	{"reschedule_entry", "reschedule_exit", "reschedule interrupt"},
	{"call_function_entry", "call_function_exit", "function call from another core"},
	{"call_function_single_entry", "call_function_single_exit", "function call from another core"},
	{"irq_work_entry", "irq_work_exit", "interrupt for deferred work"},
}

// timerPoint is the index of the timer interrupt there.
const timerPoint = 2

// layout holds where the kernel that runs keeps what the programs read.
type layout struct {
	pid, comm int32
	regs      int32 // offset of the number of the system call in pt_regs
	regsSize  asm.Size
}

// openBPF loads and attaches the programs for one thread. core may be -1: then
// interrupts are not watched.
func openBPF(tid, core int) (_ *bpfProbe, err error) {
	// The programs compare thread ids of the machine, not of a container.
	if ns, err := os.Readlink("/proc/self/ns/pid"); err != nil || ns != initPIDNamespace {
		return nil, errors.New("the process is in a PID namespace of its own, where thread ids differ from the kernel's")
	}
	_ = rlimit.RemoveMemlock() // old kernels only; loading says what is wrong
	at, err := readLayout()
	if err != nil {
		return nil, err
	}
	b := new(bpfProbe)
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	b.m, err = ebpf.NewMap(&ebpf.MapSpec{
		Name: "pmdperf_cause", Type: ebpf.Array, KeySize: 4, ValueSize: bpfSize, MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE,
	})
	if err != nil {
		return nil, err
	}
	// The kernel rounds the value up to whole pages.
	b.mem, err = unix.Mmap(b.m.FD(), 0, bpfSize, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the events: %w", err)
	}
	if err := b.trace("sched_switch", switchProgram(at, b.m.FD(), tid)); err != nil {
		return nil, err
	}
	if err := b.trace("sched_wakeup", wakeupProgram(at, b.m.FD(), tid)); err != nil {
		return nil, err
	}
	if core < 0 {
		return b, nil
	}
	for i, p := range interruptPoints {
		// The exit first: an entry without its exit would never end.
		if err := b.raw(p.exit, interruptExit(b.m.FD(), core, i)); err != nil {
			continue // not of this machine
		}
		if err := b.raw(p.entry, interruptEntry(b.m.FD(), core)); err == nil {
			b.irqs = true
		}
	}
	return b, nil
}

// initPIDNamespace is the machine's own (PROC_PID_INIT_INO in the kernel's proc_ns.h).
const initPIDNamespace = "pid:[4026531836]"

func (b *bpfProbe) trace(point string, code asm.Instructions) error {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "pmdperf_cause", Type: ebpf.Tracing, AttachType: ebpf.AttachTraceRawTp, AttachTo: point,
		Instructions: code, License: programLicense,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", point, err)
	}
	b.progs = append(b.progs, prog)
	l, err := link.AttachTracing(link.TracingOptions{Program: prog})
	if err != nil {
		return fmt.Errorf("%s: %w", point, err)
	}
	b.links = append(b.links, l)
	return nil
}

func (b *bpfProbe) raw(point string, code asm.Instructions) error {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "pmdperf_cause", Type: ebpf.RawTracepoint, Instructions: code, License: programLicense,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", point, err)
	}
	l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: point, Program: prog})
	if err != nil {
		_ = prog.Close()
		return fmt.Errorf("%s: %w", point, err)
	}
	b.progs, b.links = append(b.progs, prog), append(b.links, l)
	return nil
}

// programLicense is what the kernel wants to hear before a program may read its
// memory (bpf-helpers(7), bpf_probe_read_kernel).
const programLicense = "Dual MIT/GPL"

func (b *bpfProbe) close() {
	for _, l := range b.links {
		_ = l.Close()
	}
	for _, p := range b.progs {
		_ = p.Close()
	}
	if b.mem != nil {
		_ = unix.Munmap(b.mem)
	}
	if b.m != nil {
		_ = b.m.Close()
	}
}

func (b *bpfProbe) word(offset int) *uint64 { return (*uint64)(unsafe.Pointer(&b.mem[offset])) }

// drain hands on the events since the last call, in order of their numbers. It returns
// false if one is still being written.
func (b *bpfProbe) drain(add func(event)) bool {
	end := atomic.LoadUint64(b.word(headNext))
	if end-b.next > bpfSlots {
		b.next = end - bpfSlots
		add(event{kind: evLost})
	}
	for ; b.next < end; b.next++ {
		at := bpfHead + int(b.next%bpfSlots)*bpfSlot
		var raw [bpfSlot]byte
		seq := b.word(at + slotSeq)
		switch was := atomic.LoadUint64(seq); {
		case was > b.next+1: // overwritten
			add(event{kind: evLost})
			continue
		case was != b.next+1:
			// Still being written. The next call finds it, unless its writer was cut off.
			if b.stuck++; b.stuck < drains {
				return false
			}
			b.stuck = 0
			add(event{kind: evLost})
			continue
		}
		b.stuck = 0
		copy(raw[:], b.mem[at:at+bpfSlot])
		if atomic.LoadUint64(seq) != b.next+1 {
			add(event{kind: evLost})
			continue
		}
		add(decodeSlot(&raw))
	}
	return true
}

func decodeSlot(raw *[bpfSlot]byte) event {
	e := event{
		time:  int64(native.Uint64(raw[slotTime:])),
		kind:  eventKind(native.Uint32(raw[slotKind:])),
		pid:   int(int32(native.Uint32(raw[slotPID:]))),
		state: native.Uint32(raw[slotState:]),
		call:  int(int64(native.Uint64(raw[slotCall:]))),
	}
	if e.kind == evIRQ {
		e.span = int64(native.Uint64(raw[slotName:]))
		e.comm = interruptName(int(e.state), e.call)
		if e.state == timerPoint {
			e.kind = evTick
		}
		return e
	}
	e.comm = cString(raw[slotName : slotName+16])
	return e
}

// interruptName names an interrupt by its index in interruptPoints and its number.
func interruptName(kind, number int) string {
	switch {
	case kind < 0 || kind >= len(interruptPoints):
		return "interrupt"
	case kind == 0:
		return interruptPoints[kind].name + " " + strconv.Itoa(number)
	case kind == 1 && number >= 0 && number < len(softirqs):
		return interruptPoints[kind].name + " " + softirqs[number]
	default:
		return interruptPoints[kind].name
	}
}

// softirqs are the names in /proc/softirqs, in the order of their numbers.
var softirqs = [...]string{"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"}

// readLayout looks into the kernel's own type information.
func readLayout() (at layout, err error) {
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return at, fmt.Errorf("the kernel's type information: %w", err)
	}
	call, size := "orig_ax", asm.DWord
	switch runtime.GOARCH {
	case "amd64":
	case "arm64":
		call, size = "syscallno", asm.Word
	default:
		return at, fmt.Errorf("not written for %s", runtime.GOARCH)
	}
	at.regsSize = size
	for _, f := range []struct {
		typ, member string
		offset      *int32
	}{{"task_struct", "pid", &at.pid}, {"task_struct", "comm", &at.comm}, {"pt_regs", call, &at.regs}} {
		if *f.offset, err = memberOffset(spec, f.typ, f.member); err != nil {
			return at, err
		}
	}
	return at, nil
}

func memberOffset(spec *btf.Spec, typ, member string) (int32, error) {
	var s *btf.Struct
	if err := spec.TypeByName(typ, &s); err != nil {
		return 0, fmt.Errorf("the kernel's struct %s: %w", typ, err)
	}
	for _, m := range s.Members {
		if m.Name == member {
			return int32(m.Offset.Bytes()), nil
		}
	}
	return 0, fmt.Errorf("the kernel's struct %s has no member %s", typ, member)
}

// Where the programs keep on their stack what goes into the next event.
const (
	stackKind  = -8
	stackState = -16
	stackCall  = -24
	stackIndex = -32
)

// switchProgram runs in every context switch of the machine, with the arguments
// preempt, previous task, next task, state of the previous task.
//
// R6 arguments, R7 the task that the event names, R8 the slot, R9 the head.
func switchProgram(at layout, fd, tid int) asm.Instructions {
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMapValue(asm.R9, fd, 0),
		asm.LoadMem(asm.R7, asm.R6, 8, asm.DWord),
		asm.LoadMem(asm.R1, asm.R7, int16(at.pid), asm.Word),
		asm.JEq.Imm(asm.R1, int32(tid), "out"),
		asm.LoadMem(asm.R8, asm.R6, 16, asm.DWord),
		asm.LoadMem(asm.R1, asm.R8, int16(at.pid), asm.Word),
		asm.JEq.Imm(asm.R1, int32(tid), "in"),

		// Somebody else: of interest on the core that the thread left.
		asm.LoadMem(asm.R1, asm.R9, headOut, asm.Word),
		asm.JEq.Imm(asm.R1, 0, "exit"),
		asm.FnGetSmpProcessorId.Call(),
		asm.LoadMem(asm.R1, asm.R9, headCore, asm.Word),
		asm.JNE.Reg(asm.R0, asm.R1, "exit"),
		asm.LoadMem(asm.R1, asm.R9, headOthers, asm.Word),
		asm.JGE.Imm(asm.R1, maxOthers, "exit"),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R9, headOthers, asm.R1, asm.Word),
		asm.Mov.Imm(asm.R1, int32(evOther)),
		asm.StoreMem(asm.RFP, stackKind, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, stackState, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, -1),
		asm.StoreMem(asm.RFP, stackCall, asm.R1, asm.DWord),
		asm.Mov.Reg(asm.R7, asm.R8),
		asm.Ja.Label("emit"),

		asm.StoreImm(asm.R9, headOut, 0, asm.Word).WithSymbol("in"),
		asm.Mov.Imm(asm.R1, int32(evIn)),
		asm.StoreMem(asm.RFP, stackKind, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, stackState, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, -1),
		asm.StoreMem(asm.RFP, stackCall, asm.R1, asm.DWord),
		asm.Ja.Label("emit"), // names the previous task

		asm.FnGetSmpProcessorId.Call().WithSymbol("out"),
		asm.StoreMem(asm.R9, headCore, asm.R0, asm.Word),
		asm.StoreImm(asm.R9, headOthers, 0, asm.Word),
		asm.StoreImm(asm.R9, headOut, 1, asm.Word),
		asm.Mov.Imm(asm.R1, int32(evOut)),
		asm.StoreMem(asm.RFP, stackKind, asm.R1, asm.DWord),
		// A task that is preempted while it is about to sleep still wants to run.
		asm.Mov.Imm(asm.R1, 0),
		asm.LoadMem(asm.R2, asm.R6, 0, asm.DWord),
		asm.And.Imm(asm.R2, 1),
		asm.JNE.Imm(asm.R2, 0, "state"),
		asm.LoadMem(asm.R1, asm.R6, 24, asm.DWord),
		asm.StoreMem(asm.RFP, stackState, asm.R1, asm.DWord).WithSymbol("state"),
		asm.Mov.Reg(asm.R1, asm.R7),
		asm.FnTaskPtRegs.Call(),
	}
	if at.regsSize == asm.Word {
		code = append(code,
			asm.LoadMem(asm.R1, asm.R0, int16(at.regs), asm.Word),
			asm.LSh.Imm(asm.R1, 32), asm.ArSh.Imm(asm.R1, 32))
	} else {
		code = append(code, asm.LoadMem(asm.R1, asm.R0, int16(at.regs), asm.DWord))
	}
	code = append(code,
		asm.StoreMem(asm.RFP, stackCall, asm.R1, asm.DWord),
		asm.LoadMem(asm.R7, asm.R6, 16, asm.DWord),
	)
	return append(code, emit("emit", at)...)
}

// wakeupProgram runs whenever a task becomes runnable.
func wakeupProgram(at layout, fd, tid int) asm.Instructions {
	return append(asm.Instructions{
		asm.LoadMem(asm.R7, asm.R1, 0, asm.DWord),
		asm.LoadMapValue(asm.R9, fd, 0),
		asm.LoadMem(asm.R1, asm.R7, int16(at.pid), asm.Word),
		asm.JNE.Imm(asm.R1, int32(tid), "exit"),
		asm.Mov.Imm(asm.R1, int32(evWake)),
		asm.StoreMem(asm.RFP, stackKind, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, 0),
		asm.StoreMem(asm.RFP, stackState, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, -1),
		asm.StoreMem(asm.RFP, stackCall, asm.R1, asm.DWord),
	}, emit("emit", at)...)
}

// emit writes an event that names the task in R7 and returns.
func emit(label string, at layout) asm.Instructions {
	code := reserve(label)
	code = append(code,
		asm.LoadMem(asm.R1, asm.R7, int16(at.pid), asm.Word),
		asm.StoreMem(asm.R8, bpfHead+slotPID, asm.R1, asm.Word),
		asm.Mov.Reg(asm.R1, asm.R8),
		asm.Add.Imm(asm.R1, bpfHead+slotName),
		asm.Mov.Imm(asm.R2, 16),
		asm.Mov.Reg(asm.R3, asm.R7),
		asm.Add.Imm(asm.R3, at.comm),
		asm.FnProbeReadKernel.Call(),
	)
	return append(code, publish()...)
}

// reserve takes the next slot into R8 and fills in what is on the stack and the time.
func reserve(label string) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Imm(asm.R1, 1).WithSymbol(label),
		atomically(asm.FetchAdd, asm.R9, asm.R1, headNext),
		asm.StoreMem(asm.RFP, stackIndex, asm.R1, asm.DWord),
		asm.And.Imm(asm.R1, bpfSlots-1),
		asm.Mul.Imm(asm.R1, bpfSlot),
		asm.Mov.Reg(asm.R8, asm.R9),
		asm.Add.Reg(asm.R8, asm.R1),
		asm.Mov.Imm(asm.R1, 0),
		atomically(asm.Xchg, asm.R8, asm.R1, bpfHead+slotSeq),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.R8, bpfHead+slotTime, asm.R0, asm.DWord),
		asm.LoadMem(asm.R1, asm.RFP, stackKind, asm.DWord),
		asm.StoreMem(asm.R8, bpfHead+slotKind, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, stackState, asm.DWord),
		asm.StoreMem(asm.R8, bpfHead+slotState, asm.R1, asm.Word),
		asm.LoadMem(asm.R1, asm.RFP, stackCall, asm.DWord),
		asm.StoreMem(asm.R8, bpfHead+slotCall, asm.R1, asm.DWord),
	}
}

// atomically returns an atomic operation on 8 bytes of memory. The operation goes into the
// constant by hand: version 0.22 of the assembler leaves it at 0 there, which is a
// plain addition.
func atomically(op asm.AtomicOp, dst, src asm.Register, offset int16) asm.Instruction {
	i := op.Mem(dst, src, asm.DWord, offset)
	i.Constant = int64(op >> 8)
	return i
}

// publish makes the event in R8 visible and returns. The exchange orders it after the
// fields, on every processor.
func publish() asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R1, asm.RFP, stackIndex, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		atomically(asm.Xchg, asm.R8, asm.R1, bpfHead+slotSeq),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
		asm.Return(),
	}
}

// interruptEntry notes when the outermost interrupt of the core begins. Only one core
// gets beyond the first test, so that plain stores do.
func interruptEntry(fd, core int) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapValue(asm.R9, fd, 0),
		asm.FnGetSmpProcessorId.Call(),
		asm.JNE.Imm(asm.R0, int32(core), "exit"),
		asm.LoadMem(asm.R1, asm.R9, headDepth, asm.Word),
		asm.Mov.Reg(asm.R2, asm.R1),
		asm.Add.Imm(asm.R2, 1),
		asm.StoreMem(asm.R9, headDepth, asm.R2, asm.Word),
		asm.JNE.Imm(asm.R1, 0, "exit"),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.R9, headBegun, asm.R0, asm.DWord),
		asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
		asm.Return(),
	}
}

// interruptExit writes an event when the outermost interrupt ends, of the kind with index
// kind in interruptPoints, if it was a long one.
func interruptExit(fd, core, kind int) asm.Instructions {
	shortest := int32(minIRQ)
	if kind == timerPoint {
		shortest = 0
	}
	code := asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadMapValue(asm.R9, fd, 0),
		asm.FnGetSmpProcessorId.Call(),
		asm.JNE.Imm(asm.R0, int32(core), "exit"),
		asm.LoadMem(asm.R1, asm.R9, headDepth, asm.Word),
		asm.JEq.Imm(asm.R1, 0, "exit"), // it began before the program was there
		asm.Sub.Imm(asm.R1, 1),
		asm.StoreMem(asm.R9, headDepth, asm.R1, asm.Word),
		asm.JNE.Imm(asm.R1, 0, "exit"),
		asm.FnKtimeGetNs.Call(),
		asm.LoadMem(asm.R1, asm.R9, headBegun, asm.DWord),
		asm.Sub.Reg(asm.R0, asm.R1),
		asm.Mov.Reg(asm.R7, asm.R0),
		asm.JLT.Imm(asm.R7, shortest, "exit"),
		asm.Mov.Imm(asm.R1, int32(evIRQ)),
		asm.StoreMem(asm.RFP, stackKind, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R1, int32(kind)),
		asm.StoreMem(asm.RFP, stackState, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R6, 0, asm.DWord), // number of the line, vector or softirq
		asm.StoreMem(asm.RFP, stackCall, asm.R1, asm.DWord),
	}
	code = append(code, reserve("emit")...)
	code = append(code, asm.StoreMem(asm.R8, bpfHead+slotName, asm.R7, asm.DWord))
	return append(code, publish()...)
}
