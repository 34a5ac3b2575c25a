package perf

import "fmt"

// A Counter is one of the counters that a loop adds to with Recorder.Count: those
// below, and those that the embedder registers by name in Config.Counters.
type Counter uint8

// The counters that every recorder has, named after Open vSwitch's rows. Packets
// and batches received and sent, and upcalls, are counted by Batch, Tx and Upcall.
const (
	PHWOLHit      Counter = iota // partial hardware offload hits
	MFEXOptHit                   // optimized miniflow extraction hits
	SimpleHit                    // simple match hits
	EMCHit                       // exact match cache hits
	SMCHit                       // signature match cache hits
	MegaflowHit                  // megaflow (tuple space) hits
	SubtableLooks                // subtables looked up for megaflow hits
	Recirc                       // packets that took a further pass through the pipeline

	// The recorder's own methods count these.
	UpcallsOK   // upcalls whose flow was installed
	UpcallsLost // upcalls whose flow was not installed; the packets may well have been forwarded
	TxBatches

	// NumBuiltin is the number of builtin counters.
	NumBuiltin = iota
)

// String returns a builtin counter's name, as JSON and metrics have it.
func (c Counter) String() string {
	if int(c) < NumBuiltin {
		return builtinNames[c]
	}
	return fmt.Sprintf("counter(%d)", uint8(c))
}

var builtinNames = [NumBuiltin]string{"phwol_hits", "mfex_opt_hits", "simple_match_hits",
	"emc_hits", "smc_hits", "megaflow_hits", "subtable_lookups", "recirculations",
	"upcalls", "lost_upcalls", "tx_batches"}

// MaxCounters is how many counters a recorder can have besides the builtin ones.
const MaxCounters = 256 - NumBuiltin - 1

// unknown is counted by nobody: what is asked for a counter of no such name.
const unknown Counter = 255

// A NamedCount is a counter of the embedder's own.
type NamedCount struct {
	Name  string
	Count uint64
}
