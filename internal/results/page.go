package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/pmdperf/pmdperf/internal/experiment"
)

const head = `# Results

Made by ` + "`make results`" + ` out of the JSON that ` + "`pmdperf bench`" + ` printed, which lies in
docs/results. Every figure is one of those, but for those that are called published: others
measured these, with hardware of their own. Brackets hold the interval in which the median
lies with 95 % confidence. docs/experiments.md tells how it is measured.
`

// write writes the page.
func (p *page) write(w io.Writer) {
	io.WriteString(w, head)
	for _, section := range []struct {
		r     *experiment.Report
		write func(io.Writer, *experiment.Report)
	}{{p.overhead, overhead}, {p.reload, reload}, {p.profiles, profiles}, {p.vhost, vhost}, {p.self, self}} {
		if section.r == nil {
			continue
		}
		section.write(w, section.r)
	}
	if p.causes != nil {
		p.causes.write(w)
	}
}

// intro writes a section's title and what was run where.
func intro(w io.Writer, r *experiment.Report, title, text string) {
	fmt.Fprintf(w, "\n## %s\n\n%s\n", title, strings.TrimSpace(text))
	fmt.Fprintf(w, "\nRun on %s for %.0f s: %s.", r.Began.Format("2006-01-02"), r.Seconds, r.Machine)
	if r.Interrupted {
		fmt.Fprint(w, " It was interrupted.")
	}
	fmt.Fprintln(w)
	var parameters []string
	for _, p := range r.Parameters {
		parameters = append(parameters, p.Name+" "+p.Value)
	}
	fmt.Fprintf(w, "With: %s.\n\n", strings.Join(parameters, "; "))
}

// notes writes what the report notes.
func notes(w io.Writer, r *experiment.Report) {
	if len(r.Notes) > 0 {
		fmt.Fprintln(w)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "- %s\n", n)
	}
}

// table writes a table; the first labels columns are text.
func table(w io.Writer, labels int, rows [][]string) {
	for i, cells := range rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			for j := range cells {
				if j < labels {
					io.WriteString(w, "|---")
				} else {
					io.WriteString(w, "|--:")
				}
			}
			io.WriteString(w, "|\n")
		}
	}
}

// cell returns a row's figure as text, "" if it has none.
func cell(row *experiment.Row, name string) string {
	f, ok := row.Figure(name)
	if !ok {
		return ""
	}
	return f.Cell()
}

func overhead(w io.Writer, r *experiment.Report) {
	intro(w, r, "What recording costs", `
How much less a forwarder does that has more to do than it can, by level, against level
off in the same round. "Off again" is level off a second time: what the method makes of no
difference, and so the spread of all others. "Everything" is level detailed, with a
supervisor of suspicious iterations and the probes of causes. The published changes are of
detailed metrics in Open vSwitch.

What differs: the published ones compare two builds by hand, a run each, on a network card with
a hardware generator; ours switch one process between slices. Our forwarder is in Go, its
packets are made in its receive bursts, and its cycles include that.`)
	published := overheadPublished()
	rows := [][]string{{"flows", "subtables", "level", "Mpps", "cycles/packet", "change %", "cost, cycles/packet", "published change %"}}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Label("level") == "probes" {
			continue
		}
		beside := ""
		if row.Label("level") == "detailed" {
			beside = published[[2]string{row.Label("flows"), row.Label("subtables")}]
		}
		rows = append(rows, []string{row.Label("flows"), row.Label("subtables"), row.Label("level"),
			cell(row, "Mpps"), cell(row, "cycles"), cell(row, "change"), cell(row, "cost"), beside})
	}
	table(w, 3, rows)
	if row := r.Find("level", "probes"); row != nil {
		fmt.Fprintf(w, "\nThe probes alone, over all cells: %s %%.\n", cell(row, "change"))
	}
	notes(w, r)
}

func reload(w io.Writer, r *experiment.Report) {
	intro(w, r, "What a reload costs", `
Cycles between the last pass under the old polling configuration and the first one under
the new, of the PMDs' threads and of the queues that move between them. "Handover": every PMD
changes by itself, with everything prepared, and polls a queue that moves as soon as the PMD that
had it has let go of it; this is what the forwarder uses. "Busy": the PMDs, with everything
prepared, wait for each other busily. "Blocking": they sleep until the control thread has
prepared everything and wakes them. Reloads in which a thread was off its core for another
reason are apart.

What differs: the published figures are of rebalances of Open vSwitch, between probes in its
own code, and of its threads only.`)
	rows := [][]string{{"PMDs", "scheme", "gap of the", "threads", "gaps", "min", "average", "max", "median", "p99"}}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Label("scheme") == "" {
			continue
		}
		rows = append(rows, []string{row.Label("PMDs"), row.Label("scheme"), row.Label("gap of the"), row.Label("threads"),
			cell(row, "gaps"), cell(row, "min"), cell(row, "average"), cell(row, "max"), cell(row, "median"), cell(row, "p99")})
	}
	for _, p := range reloadPublished {
		rows = append(rows, []string{"", p.scheme, "thread", "published: " + p.what, "1000", p.min, p.average, p.max, "", ""})
	}
	table(w, 4, rows)
	fmt.Fprint(w, "\nPackets lost in windows that begin with a reload, and in windows without:\n\n")
	rows = [][]string{{"PMDs", "reload", "threads", "windows", "length, ms", "lost", "most in a window", "windows with loss"}}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Label("reload") == "" {
			continue
		}
		rows = append(rows, []string{row.Label("PMDs"), row.Label("reload"), row.Label("threads"),
			cell(row, "windows"), cell(row, "length"), cell(row, "lost"), cell(row, "most"), cell(row, "with loss")})
	}
	table(w, 3, rows)
	notes(w, r)
}

func profiles(w io.Writer, r *experiment.Report) {
	intro(w, r, "Transmit paths under burst and scatter traffic", `
The highest rate that is forwarded without more loss than allowed, found by bisection as in
RFC 2544, for packets sent at once, flow by flow, and in a batch for each port that is sent
when full or due. "Batching" is by how much batches change the rate, "metrics" by how much
recording does. The published changes are of a reworked transmit path against the one before.

What differs: ours compares two transmit paths of one forwarder; the published one compares
two versions of Open vSwitch, with virtual machines behind it. Our ports in memory take a
burst for nothing, where a card has a doorbell to be rung.`)
	published := profilesPublished()
	rows := [][]string{{"traffic", "packets", "metrics", "path", "Mpps", "packets/batch", "batching %", "metrics %", "repeated trials", "published change %"}}
	for i := range r.Rows {
		row := &r.Rows[i]
		beside := ""
		if row.Label("packets") == "VXLAN" && row.Label("metrics") == "off" && row.Label("path") != "at once" {
			beside = published[row.Label("traffic")]
		}
		rows = append(rows, []string{row.Label("traffic"), row.Label("packets"), row.Label("metrics"), row.Label("path"),
			cell(row, "Mpps"), cell(row, "batch"), cell(row, "batching"), cell(row, "metrics"), cell(row, "repeated"), beside})
	}
	table(w, 4, rows)
	notes(w, r)
}

func vhost(w io.Writer, r *experiment.Report) {
	intro(w, r, "Statistics of shared queues", `
Two PMDs receive from and send to the same two ports. Every packet is counted by port,
direction and size: by nobody, by each PMD for itself, or for all behind one lock a port.
"Off again" is nobody a second time. "Against own" is what the lock makes of it, contention
above all.

What differs: the published changes are of DPDK's vhost library between two guests; where
traffic goes both ways they are against code that counted too. In ours the guests'
sides are inside the ports and cost next to nothing, so that the same counting is a larger
share.`)
	published := vhostPublished()
	rows := [][]string{{"direction", "forwarding", "statistics", "Mpps", "cycles/packet", "change %", "cost, cycles/packet", "against own %", "published change %"}}
	for i := range r.Rows {
		row := &r.Rows[i]
		beside, contention := "", ""
		if row.Label("statistics") == "shared lock" {
			contention = cell(row, "against own")
		}
		if row.Label("statistics") == "own" {
			beside = published[[2]string{row.Label("direction"), row.Label("forwarding")}]
		}
		rows = append(rows, []string{row.Label("direction"), row.Label("forwarding"), row.Label("statistics"),
			cell(row, "Mpps"), cell(row, "cycles"), cell(row, "change"), cell(row, "cost"), contention, beside})
	}
	table(w, 3, rows)
	notes(w, r)
}

func self(w io.Writer, r *experiment.Report) {
	intro(w, r, "The recorder alone", `
What the recorder costs a loop, against its budgets: the fastest of many slices.`)
	rows := [][]string{{"what", "unit", "cost", "budget", "met"}}
	for i := range r.Rows {
		row := &r.Rows[i]
		rows = append(rows, []string{row.Label("what"), row.Label("unit"), cell(row, "cost"), cell(row, "budget"), row.Label("met")})
	}
	table(w, 2, rows)
	notes(w, r)
}

func (c *causes) write(w io.Writer) {
	who := "root"
	if c.User {
		who = "an ordinary user"
	}
	fmt.Fprintf(w, "\n## Causes of slow iterations\n\nHow often the cause of an iteration that was made slow was named, with the probes of %s.\n\n", who)
	rows := [][]string{{"provocation", "made", "named", "named first", "wrong", "share explained %"}}
	for _, r := range c.Rows {
		if r.Skipped != "" {
			rows = append(rows, []string{r.Provocation + " (not tried: " + r.Skipped + ")", "", "", "", "", ""})
			continue
		}
		rows = append(rows, []string{r.Provocation, fmt.Sprint(r.Made), fmt.Sprint(r.Named), fmt.Sprint(r.First), fmt.Sprint(r.Wrong), fmt.Sprintf("%.1f", 100*r.Share)})
	}
	table(w, 1, rows)
}
