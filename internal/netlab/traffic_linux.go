package netlab

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batch is how many frames a system call sends.
const batch = 32

// maxFrame is the longest frame in bytes that a Sender sends.
const maxFrame = 4096

// Sender sends frames on an interface. One goroutine at a time may use it.
type Sender struct {
	fd     int
	frames [batch][maxFrame]byte
	iov    [batch]unix.Iovec
	msg    [batch]mmsghdr
}

// mmsghdr is struct mmsghdr of sendmmsg(2).
type mmsghdr struct {
	unix.Msghdr
	n uint32
	_ [4]byte
}

// Sender returns a sender on an interface.
func (l *Lab) Sender(name string) *Sender {
	l.t.Helper()
	s := &Sender{fd: l.socket(name, 0)}
	for i := range s.msg {
		s.iov[i].Base = &s.frames[i][0]
		s.msg[i].Iov = &s.iov[i]
		s.msg[i].SetIovlen(1)
	}
	return s
}

// Send sends n frames, pps a second in bursts of up to 32. frame writes frame number i
// into a buffer and returns its length. It returns how many the kernel took.
func (s *Sender) Send(n int, pps float64, frame func(i int, buf []byte) int) (sent int, err error) {
	begun := time.Now()
	for sent < n {
		burst := min(batch, n-sent)
		due := begun.Add(time.Duration(float64(sent+burst) / pps * float64(time.Second)))
		if wait := time.Until(due); wait > 0 {
			time.Sleep(wait)
		}
		for i := range burst {
			s.iov[i].SetLen(frame(sent+i, s.frames[i][:]))
		}
		for first := 0; first < burst; {
			k, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.msg[first])), uintptr(burst-first), 0, 0, 0)
			switch errno {
			case 0:
				first += int(k)
				sent += int(k)
			case unix.EINTR:
			case unix.EAGAIN, unix.ENOBUFS:
				time.Sleep(time.Millisecond)
			default:
				return sent, fmt.Errorf("send frame %d: %w", sent, errno)
			}
		}
	}
	return sent, nil
}

// Receiver counts the frames that arrive at an interface, and keeps the first ones.
// One goroutine at a time may use it.
type Receiver struct {
	fd    int
	count uint64
}

// etherAll is ETH_P_ALL: frames of every type.
const etherAll = unix.ETH_P_ALL

// Receiver returns a receiver on an interface that counts from now on.
func (l *Lab) Receiver(name string) *Receiver {
	l.t.Helper()
	return &Receiver{fd: l.socket(name, etherAll)}
}

// Count returns how many frames have arrived. The kernel counts those too that it
// had no room to keep, so nobody has to read along.
func (r *Receiver) Count() (uint64, error) {
	s, err := unix.GetsockoptTpacketStats(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0, fmt.Errorf("packet statistics: %w", err)
	}
	r.count += uint64(s.Packets) // starts anew at each reading, drops included
	return r.count, nil
}

// Next copies the next frame that was kept to buf and returns its length, or 0 when
// there is none.
func (r *Receiver) Next(buf []byte) int {
	n, _, err := unix.Recvfrom(r.fd, buf, 0)
	if err != nil {
		return 0
	}
	return n
}
