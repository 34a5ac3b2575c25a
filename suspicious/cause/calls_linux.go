package cause

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// callName returns the name of a system call by its number: those that a thread can
// sleep in, the number for others, "none" and "" for noCall and unknownCall.
func callName(n int) string {
	switch n {
	case noCall:
		return "none"
	case unknownCall:
		return ""
	case unix.SYS_FUTEX:
		return "futex"
	case unix.SYS_READ:
		return "read"
	case unix.SYS_READV:
		return "readv"
	case unix.SYS_PREAD64:
		return "pread64"
	case unix.SYS_WRITE:
		return "write"
	case unix.SYS_WRITEV:
		return "writev"
	case unix.SYS_PWRITE64:
		return "pwrite64"
	case unix.SYS_OPENAT:
		return "openat"
	case unix.SYS_CLOSE:
		return "close"
	case unix.SYS_IOCTL:
		return "ioctl"
	case unix.SYS_FCNTL:
		return "fcntl"
	case unix.SYS_FLOCK:
		return "flock"
	case unix.SYS_FSYNC:
		return "fsync"
	case unix.SYS_FDATASYNC:
		return "fdatasync"
	case unix.SYS_PPOLL:
		return "ppoll"
	case unix.SYS_PSELECT6:
		return "pselect6"
	case unix.SYS_EPOLL_PWAIT:
		return "epoll_pwait"
	case unix.SYS_NANOSLEEP:
		return "nanosleep"
	case unix.SYS_CLOCK_NANOSLEEP:
		return "clock_nanosleep"
	case unix.SYS_SCHED_YIELD:
		return "sched_yield"
	case unix.SYS_SCHED_SETAFFINITY:
		return "sched_setaffinity"
	case unix.SYS_RECVFROM:
		return "recvfrom"
	case unix.SYS_RECVMSG:
		return "recvmsg"
	case unix.SYS_RECVMMSG:
		return "recvmmsg"
	case unix.SYS_SENDTO:
		return "sendto"
	case unix.SYS_SENDMSG:
		return "sendmsg"
	case unix.SYS_SENDMMSG:
		return "sendmmsg"
	case unix.SYS_ACCEPT4:
		return "accept4"
	case unix.SYS_CONNECT:
		return "connect"
	case unix.SYS_MMAP:
		return "mmap"
	case unix.SYS_MUNMAP:
		return "munmap"
	case unix.SYS_MADVISE:
		return "madvise"
	case unix.SYS_MPROTECT:
		return "mprotect"
	case unix.SYS_BRK:
		return "brk"
	case unix.SYS_EXIT:
		return "exit"
	case unix.SYS_CLONE:
		return "clone"
	case unix.SYS_WAIT4:
		return "wait4"
	case unix.SYS_WAITID:
		return "waitid"
	case unix.SYS_RT_SIGTIMEDWAIT:
		return "rt_sigtimedwait"
	case unix.SYS_RT_SIGSUSPEND:
		return "rt_sigsuspend"
	case unix.SYS_IO_URING_ENTER:
		return "io_uring_enter"
	case unix.SYS_MEMBARRIER:
		return "membarrier"
	case unix.SYS_BPF:
		return "bpf"
	}
	if name := oldCallName(n); name != "" {
		return name
	}
	return "number " + strconv.Itoa(n)
}
