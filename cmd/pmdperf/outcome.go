package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/internal/dataplane"
	"github.com/pmdperf/pmdperf/perf"
)

// outcome is what a run left behind.
type outcome struct {
	result dataplane.Result
	inject []dataplane.Injection // Result.Injected counts them
	snaps  []*perf.Snapshot
	causes []causeCount
}

// runDocument is the JSON of an outcome: the document of the recorders, with more.
type runDocument struct {
	*ovs.Document
	Seconds  float64         `json:"elapsed_seconds"`
	Ports    []portCounts    `json:"ports"`
	Injected []injectedCount `json:"injected,omitempty"`
	Causes   []causeCount    `json:"causes,omitempty"` // of suspicious iterations
	Reloads  uint64          `json:"reloads"`
}

// portCounts counts packets: Rx = Tx + Drops.
type portCounts struct {
	Name   string `json:"name"`
	Rx     uint64 `json:"rx"`     // received on this port
	Tx     uint64 `json:"tx"`     // of those, sent on whichever port
	Drops  uint64 `json:"drops"`  // of those, not sent
	Out    uint64 `json:"out"`    // sent on this port, wherever they came from
	Missed uint64 `json:"missed"` // found the receive queue full; not in rx
}

// injectedCount is how often the PMDs together had trouble made for them.
type injectedCount struct {
	Injection string `json:"injection"`
	Count     uint64 `json:"count"`
}

// print writes everything in one go, or returns why it could not. An error also says
// if packets got lost: what the forwarder counted doesn't add up then.
func (o *outcome) print(w io.Writer, as format) error {
	write := o.text
	if as == formatJSON {
		write = o.json
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return o.result.Unbalanced()
}

func (o *outcome) document() *runDocument {
	d := &runDocument{
		Document: ovs.NewDocument(o.snaps, ovs.Options{}),
		Seconds:  o.result.Elapsed.Seconds(),
		Reloads:  o.result.Reloads,
		Ports:    []portCounts{},
		Causes:   o.causes,
	}
	for _, p := range o.result.Ports {
		d.Ports = append(d.Ports, portCounts{p.Name, p.Rx, p.Tx, p.Drops, p.Out, p.Missed})
	}
	for i, in := range o.inject {
		d.Injected = append(d.Injected, injectedCount{in.String(), o.result.Injected[i]})
	}
	return d
}

func (o *outcome) json(b *bytes.Buffer) error {
	enc := json.NewEncoder(b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(o.document())
}

func (o *outcome) text(b *bytes.Buffer) error {
	d := o.document()
	b.WriteString(ovs.BuildPerf(o.snaps, ovs.Options{}).String())
	for i := range d.Threads {
		b.WriteByte('\n')
		summarize(b, &d.Threads[i])
	}
	b.WriteByte('\n')
	showSuspicious(b, o.snaps)
	showCauses(b, d.Causes)
	for _, in := range d.Injected {
		fmt.Fprintf(b, "injected %s: %d times\n", in.Injection, in.Count)
	}
	for _, p := range d.Ports {
		fmt.Fprintf(b, "port %s: rx %d = tx %d + drops %d, missed %d\n", p.Name, p.Rx, p.Tx, p.Drops, p.Missed)
	}
	return nil
}
