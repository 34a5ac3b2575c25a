package suspicious

import "strings"

// A Reason is why an iteration is suspicious.
type Reason uint8

// The reasons.
const (
	Cycles          Reason = iota // the iteration took long
	PollGap                       // iteration and sleep together: no queue was polled for long
	QueueFill                     // an rx queue was filled up to the threshold
	CyclesPerPacket               // packets took long
	Upcalls                       // many upcalls
	CyclesPerUpcall               // upcalls took long
	FullBatches                   // an rx queue gave full batches in a row: its ring is not being emptied
	Drops                         // the loop or a tx queue dropped packets
	Gap                           // the time before the iteration that belongs to none was long
	Adaptive                      // the iteration took long compared with those before
	RxDrops                       // rings of rx queues dropped packets
	NumReasons
)

// reasonTexts are in the words of the log; the first two are Open vSwitch's.
var reasonTexts = [NumReasons]string{
	Cycles:          "Excessive total cycles",
	PollGap:         "Excessive time between polls",
	QueueFill:       "Vhost RX queue full",
	CyclesPerPacket: "Excessive cycles per packet",
	Upcalls:         "Excessive upcalls",
	CyclesPerUpcall: "Excessive cycles per upcall",
	FullBatches:     "Full RX batches in a row",
	Drops:           "Packets dropped",
	Gap:             "Excessive gap before",
	Adaptive:        "Unusual total cycles",
	RxDrops:         "RX ring dropped packets",
}

var reasonNames = [NumReasons]string{"cycles", "poll_gap", "queue_fill", "cycles_per_packet", "upcalls",
	"cycles_per_upcall", "full_batches", "drops", "gap", "adaptive", "rx_drops"}

// String returns the reason's name in JSON and metrics.
func (r Reason) String() string { return reasonNames[r] }

// Text returns the reason in the words of the log.
func (r Reason) Text() string { return reasonTexts[r] }

// Reasons is a set of reasons.
type Reasons uint16

// Has reports whether r is in the set.
func (s Reasons) Has(r Reason) bool { return s&(1<<r) != 0 }

// All calls yield for the reasons in the set.
func (s Reasons) All() func(yield func(Reason) bool) {
	return func(yield func(Reason) bool) {
		for r := range NumReasons {
			if s.Has(r) && !yield(r) {
				return
			}
		}
	}
}

// String returns the reasons' names, with commas.
func (s Reasons) String() string {
	var names []string
	for r := range s.All() {
		names = append(names, r.String())
	}
	return strings.Join(names, ",")
}
