package dataplane

// Port is what the forwarder receives from and sends to. A receive queue is
// polled by one PMD at a time and each PMD sends on a transmit queue of its own,
// so that RxBurst and TxBurst need no lock; none of the methods may be called by
// two goroutines for the same queue at the same time.
type Port interface {
	// Name returns the port's name.
	Name() string

	// RxQueues returns the number of receive queues.
	RxQueues() int

	// RxSize returns how many packets a receive queue holds, or 0 where that depends
	// on their sizes.
	RxSize() int

	// RxBurst appends up to Burst packets of receive queue q to b. It returns
	// how many packets were in the queue, those appended included.
	RxBurst(q int, b *Batch) (fill int)

	// TxBurst sends the packets of b on transmit queue q and returns how many
	// were sent. Those come first in b afterwards. The caller keeps all packets.
	TxBurst(q int, b *Batch) (sent int)

	// Missed returns how many packets found receive queue q full, or were too
	// long for a packet, since the port was opened. They are in no batch.
	Missed(q int) uint64

	// Quiesce lets no more packets arrive at receive queue q, so that what is
	// in it can be drained. Drained reports whether it is empty for good.
	Quiesce(q int)
	Drained(q int) bool

	// Close gives back what the port holds.
	Close() error
}
