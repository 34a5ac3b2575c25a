package pmd

import (
	"context"
	"io"
	"strconv"

	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/perf"
)

// sizesAnswer is what pmdperf/packet-sizes answers.
type sizesAnswer struct {
	Threads []sizesThread `json:"threads"`
	remarks
}

type sizesThread struct {
	identity
	Rx   []ovs.QueueData `json:"rx_queues"`
	Tx   []ovs.QueueData `json:"tx_queues"`
	Gone *ovs.QueueData  `json:"rx_queues_gone,omitempty"` // sum of queues no longer polled
}

func packetSizes(ctx context.Context, c *call) (answer, error) {
	if err := c.look(ctx, perf.Want{}); err != nil {
		return nil, err
	}
	return newSizes(c.document(ovs.Options{}), c.remarks), nil
}

func newSizes(d *ovs.Document, r remarks) *sizesAnswer {
	a := &sizesAnswer{[]sizesThread{}, r}
	for i := range d.Threads {
		t := &d.Threads[i]
		a.Threads = append(a.Threads, sizesThread{identityOf(t),
			append([]ovs.QueueData{}, t.RxQueues...), append([]ovs.QueueData{}, t.TxQueues...), t.Gone})
	}
	return a
}

func (a *sizesAnswer) json() any { return a }

func (a *sizesAnswer) write(w io.Writer) {
	columns := []string{"core", "-port", "-queue", "packets"}
	columns = append(columns, perf.SizeNames[:]...)
	tab := newTable(append(columns, "multicast", "broadcast")...)
	row := func(t *sizesThread, direction string, q *ovs.QueueData) {
		port, queue := q.Port, direction
		if q.Queue == nil {
			port, queue = "(gone)", direction+" all"
		} else {
			queue += " " + strconv.Itoa(*q.Queue)
		}
		cells := []string{count(uint64(t.Core)), port, queue, count(q.Packets)}
		if q.Sizes == nil { // the program doesn't record them, or there was no packet
			for range len(perf.SizeNames) + 2 {
				cells = append(cells, absent)
			}
		} else {
			for _, class := range q.Sizes.Classes {
				cells = append(cells, count(class.Count))
			}
			cells = append(cells, count(q.Sizes.Multicast), count(q.Sizes.Broadcast))
		}
		tab.row(cells...)
	}
	for i := range a.Threads {
		t := &a.Threads[i]
		for j := range t.Rx {
			row(t, "rx", &t.Rx[j])
		}
		if t.Gone != nil {
			row(t, "rx", t.Gone)
		}
		for j := range t.Tx {
			row(t, "tx", &t.Tx[j])
		}
	}
	io.WriteString(w, tab.String()+a.lines())
}
