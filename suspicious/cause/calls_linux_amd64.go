package cause

import "golang.org/x/sys/unix"

// oldCallName names the calls that newer architectures have not.
func oldCallName(n int) string {
	switch n {
	case unix.SYS_OPEN:
		return "open"
	case unix.SYS_POLL:
		return "poll"
	case unix.SYS_SELECT:
		return "select"
	case unix.SYS_EPOLL_WAIT:
		return "epoll_wait"
	case unix.SYS_PAUSE:
		return "pause"
	case unix.SYS_ACCEPT:
		return "accept"
	case unix.SYS_FORK:
		return "fork"
	case unix.SYS_VFORK:
		return "vfork"
	}
	return ""
}
