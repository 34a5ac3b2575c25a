package suspicious

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/pmdperf/pmdperf/history"
)

// FlightVersion is the version of the flight record's schema. It changes when what
// readers know changes its meaning or goes away, not when there is more.
const FlightVersion = 1

// A FlightRecord is a report as a line of the flight record, and as JSON everywhere
// else. docs/flight-record.md explains every member.
type FlightRecord struct {
	Version     int            `json:"version"`
	ID          string         `json:"id"`
	Sequence    uint64         `json:"sequence"`
	Name        string         `json:"name"`
	Core        int            `json:"core"`
	NUMA        int            `json:"numa"`
	Hz          float64        `json:"tsc_hz"`
	Anchor      FlightAnchor   `json:"anchor"`
	Level       string         `json:"level"`
	Iteration   uint64         `json:"iteration"`
	Time        time.Time      `json:"time"`
	Micros      float64        `json:"us"`
	SleepMicros float64        `json:"sleep_us"`
	Reasons     []FlightReason `json:"reasons"`
	Causes      []Cause        `json:"causes"`
	Merged      []FlightMark   `json:"merged,omitempty"`
	MergedCount uint64         `json:"merged_count"`
	HeldBack    uint64         `json:"held_back"`
	Lost        uint64         `json:"lost"`
	Polled      []FlightPolled `json:"polled"`
	Records     []FlightRow    `json:"records"`
}

// FlightAnchor is one instant on both clocks.
type FlightAnchor struct {
	Tick uint64    `json:"tick"`
	Time time.Time `json:"time"`
}

// FlightReason is a reason that holds.
type FlightReason struct {
	Reason    string `json:"reason"`
	Value     uint64 `json:"value"`
	Threshold uint64 `json:"threshold"`
}

// FlightMark is a merged iteration.
type FlightMark struct {
	Iteration uint64   `json:"iteration"`
	Reasons   []string `json:"reasons"`
	Causes    []Cause  `json:"causes,omitempty"`
}

// FlightPolled is a list of rx queues that were polled.
type FlightPolled struct {
	From   uint64        `json:"from"`
	Queues []FlightQueue `json:"queues"`
}

// FlightQueue is an rx queue.
type FlightQueue struct {
	Port string `json:"port"`
	ID   int    `json:"id"`
	Size int    `json:"size,omitempty"`
}

// FlightRow is an iteration of the neighborhood.
type FlightRow struct {
	Iteration    uint64   `json:"iteration"`
	End          uint64   `json:"end"`
	Offset       float64  `json:"offset_us"`
	Cycles       uint64   `json:"cycles"`
	Sleep        uint64   `json:"sleep"`
	UpcallCycles uint64   `json:"upcall_cycles"`
	Rx           uint32   `json:"rx"`
	Tx           uint32   `json:"tx"`
	Batches      uint32   `json:"batches"`
	Upcalls      uint32   `json:"upcalls"`
	Fill         uint32   `json:"fill"`
	Drops        uint32   `json:"drops"`
	Full         uint32   `json:"full"`
	InRow        uint32   `json:"full_in_row"`
	RxDrops      bool     `json:"rx_drops,omitempty"`
	Queue        *int     `json:"queue,omitempty"`
	Timer        string   `json:"timer,omitempty"`
	After        []string `json:"after,omitempty"`
	Detailed     bool     `json:"detailed"`
	Suspicious   bool     `json:"suspicious,omitempty"`
	ClockBack    bool     `json:"clock_back,omitempty"`
}

// Flight returns the report as it is in the flight record.
func (r *Report) Flight() *FlightRecord {
	c := r.Culprit()
	us := func(ticks uint64) float64 { return math.Round(float64(ticks)/r.Hz*1e9) / 1e3 }
	f := &FlightRecord{
		Version: FlightVersion, ID: r.ID, Sequence: r.Sequence, Name: r.Name, Core: r.Core, NUMA: r.NUMA, Hz: r.Hz,
		Anchor: FlightAnchor{r.AnchorTicks, r.Anchor.UTC()}, Level: "basic",
		Iteration: r.Iteration, Time: r.Time.UTC(), Micros: us(c.Cycles), SleepMicros: us(c.Sleep),
		MergedCount: r.MergedCount, HeldBack: r.HeldBack,
		Reasons: []FlightReason{}, Causes: []Cause{}, Polled: []FlightPolled{}, Records: []FlightRow{},
	}
	if c.Flags&history.Detailed != 0 {
		f.Level = "detailed"
	}
	for reason := range r.Reasons.All() {
		f.Reasons = append(f.Reasons, FlightReason{reason.String(), r.Values[reason], r.Thresholds[reason]})
	}
	f.Causes = append(f.Causes, flightCauses(r.Causes)...)
	for _, m := range r.Merged {
		f.Merged = append(f.Merged, FlightMark{m.Iteration, flightReasons(m.Reasons), flightCauses(r.MergedCauses[m.Iteration])})
	}
	for _, p := range r.Polled {
		queues := make([]FlightQueue, len(p.Queues))
		for i, q := range p.Queues {
			queues[i] = FlightQueue(q)
		}
		f.Polled = append(f.Polled, FlightPolled{p.From, queues})
	}
	for i := range r.Records {
		row := flightRow(&r.Records[i])
		row.Timer = r.timer(r.Records[i].Flags)
		row.Iteration = r.First + uint64(i)
		row.Offset = us(row.End - c.End)
		if row.End < c.End {
			row.Offset = -us(c.End - row.End)
		}
		f.Records = append(f.Records, row)
	}
	return f
}

// flightCauses returns causes without digits that mean nothing.
func flightCauses(causes []Cause) []Cause {
	causes = slices.Clone(causes)
	for i := range causes {
		causes[i].Share = math.Round(causes[i].Share*1e4) / 1e4
	}
	return causes
}

func flightReasons(s Reasons) []string {
	names := []string{}
	for reason := range s.All() {
		names = append(names, reason.String())
	}
	return names
}

func flightRow(rec *history.Record) FlightRow {
	row := FlightRow{
		End: rec.End, Cycles: rec.Cycles, Sleep: rec.Sleep, UpcallCycles: rec.UpcallCycles,
		Rx: rec.Rx, Tx: rec.Tx, Batches: rec.Batches, Upcalls: rec.Upcalls, Fill: rec.Fill, Drops: rec.Drops, Full: uint32(rec.Full), InRow: uint32(rec.InRow),
		RxDrops:    rec.Flags&history.RxDropped != 0,
		Detailed:   rec.Flags&history.Detailed != 0,
		Suspicious: rec.Flags&history.Suspicious != 0,
		ClockBack:  rec.Flags&history.ClockBack != 0,
	}
	if q, ok := rec.Flags.Queue(); ok {
		row.Queue = &q
	}
	for gap := range history.NumGaps {
		if rec.Flags.After(gap) {
			row.After = append(row.After, gap.String())
		}
	}
	return row
}

// ToFlightRecord returns a Sink that appends a line for every report to f.
func ToFlightRecord(f *File) Sink {
	return func(r *Report) {
		record := r.Flight()
		f.Append(func(lost uint64) []byte {
			record.Lost = lost
			line, err := json.Marshal(record)
			if err != nil {
				// Only numbers that are none could do that, and there are none.
				return nil
			}
			return append(line, '\n')
		})
	}
}
