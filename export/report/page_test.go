package report

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// sample is a page with something of everything: n stalls of two threads.
func sample(n int) *Page {
	rng := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2026, 2, 1, 14, 49, 50, 0, time.UTC)
	p := &Page{
		Title:   "Drop investigation: ovs-vswitchd.log",
		Lead:    "Two poll-mode threads were looked at from 14:49:50 to 14:50:10 on 1 February 2026. Most of the time was lost because pmd-c01/id:8 did not have its CPU.",
		Program: "pmdperf v0.1", Made: start.Add(time.Hour),
		Facts: []Fact{{"Stalls", "512"}, {"Longest", "509 ms"}, {"Time lost", "14.2 s"}, {"Share of time", "71 %"}, {"Packets lost, at most", "41,900"}},
		Warnings: []string{
			"The log's rate limit dropped 1,204 messages: there were more stalls than these.",
		},
		Findings: []Finding{
			{
				Title: "pmd-c01/id:8 lost its CPU, again and again", Confidence: "high",
				Text:  []string{"Iterations of millions of cycles with no packet and no upcall were not packet work: another task or the kernel had the core. They come in slices of about 8 ms, as a scheduler hands them out."},
				Facts: []Fact{{"Time lost", "12.9 s"}, {"Of the time", "64 %"}, {"Stalls", "402"}},
				Evidence: []Line{
					{"ovs-vswitchd.log", 17, "2026-02-01T14:49:54.194Z|00425|pmd_perf(pmd-c01/id:8)|WARN|Suspicious iteration (Excessive total cycles): iter=420424205 duration=6833 us", -1},
					{"ovs-vswitchd.log", 34, "   420424205           15716010     0            0            0            0            0", -1},
				},
				Steps: []Step{
					{"See who else runs on the core, and how often the PMD is put aside:", "pidstat -wt -p $(pidof ovs-vswitchd) 1 5 | grep pmd"},
					{"Keep everything else off the core:", "systemctl set-property --runtime system.slice AllowedCPUs=0"},
					{"Record the cause of every stall from now on:", "pmdperf observe -t ovs-vswitchd --core 1 --threshold 100us"},
				},
			},
			{
				Title: "pmd-c02/id:9 works off bursts of upcalls", Confidence: "medium",
				Text:  []string{"These iterations had 4 to 310 upcalls each. Their flows were not installed, their packets were forwarded."},
				Facts: []Fact{{"Time lost", "1.1 s"}, {"Stalls", "61"}},
				Steps: []Step{{"", "ovs-appctl upcall/show"}},
			},
			{Title: "The threshold of 100 µs is within what is usual here", Confidence: "low", Text: []string{"A quarter of the iterations reported is no longer than 120 µs."}},
		},
		Threads: []Thread{
			{Name: "pmd-c01/id:8", Hz: 2.3e9, Facts: []Fact{{"Iterations", "24,899,863"}, {"Received", "184 M packets, 9.2 M/s"}, {"Cycles a packet", "212"}}, Shares: []Share{{"busy", 61.2}, {"idle", 24.1}, {"asleep", 3.3}, {"between passes", 11.4}}},
			{Name: "pmd-c02/id:9", Hz: 2.3e9},
		},
		Sources: []Source{{"ovs-vswitchd.log", "Open vSwitch log", "1,204 lines, 2 of them unread: 17, 18"}, {"ethtool.csv", "counters", ""}},
	}
	for t := range p.Threads {
		h := Histogram{Title: "length of an iteration", Micros: true}
		from := 0.0
		for i := range 32 {
			to := .2 * math.Pow(1.5, float64(i))
			if i == 31 {
				to = math.Inf(1)
			}
			h.Bins = append(h.Bins, Bin{from, to, uint64(1e6 * math.Exp(-math.Pow(float64(i)-6, 2)/18))})
			from = to
		}
		h.Percentiles = []Percentile{{50, 2.1, "~"}, {90, 9.1, "~"}, {99, 31.2, "~"}, {99.9, 88, "~"}, {99.99, 310, "~"}, {100, 5090, "≤"}}
		p.Threads[t].Histograms = append(p.Threads[t].Histograms, h)
		b := Histogram{Title: "packets of a batch", Unit: "packets"}
		for i := range 33 {
			b.Bins = append(b.Bins, Bin{float64(i) - 1, float64(i), rng.Uint64N(100000)})
		}
		b.Percentiles = []Percentile{{50, 7, ""}, {99, 32, ""}, {100, 32, ""}}
		p.Threads[t].Histograms = append(p.Threads[t].Histograms, b)
	}
	busy := [2]time.Time{start, start}
	for i := range n {
		t := rng.IntN(4) / 3
		us := 100 * math.Exp(rng.NormFloat64()*1.3)
		if t == 0 && rng.IntN(3) == 0 {
			us = 7800 + 900*rng.NormFloat64()
		}
		gap := 20e6 / float64(n) * rng.ExpFloat64() * 1.3
		end := busy[t].Add(time.Duration((us + gap) * 1e3))
		busy[t] = end
		s := Stall{Thread: t, End: end, Micros: us, Iteration: 420424205 + uint64(i)*1000, Reasons: []string{"Excessive total cycles"}, Source: "ovs-vswitchd.log:" + string(rune('1'+i%9)), Culprit: 5}
		for k := range 11 {
			c := uint64(2000 + rng.IntN(800))
			if k == 5 {
				c = uint64(us * 2300)
			}
			rx := uint64(rng.IntN(33))
			if k == 5 && us > 6000 {
				rx = 0
			}
			row := Row{Iteration: s.Iteration - 5 + uint64(k), Cycles: c, Rx: rx, Fill: uint64(rng.IntN(40))}
			if rx > 0 {
				row.CyclesPerPacket, row.PacketsPerBatch = c/rx, rx
			}
			s.Rows = append(s.Rows, row)
		}
		switch {
		case us > 6000 && t == 0:
			p.Findings[0].Stalls = append(p.Findings[0].Stalls, i)
			s.Causes = []Cause{{"preempted by sh", us * .95, 95, "exact", "sched_switch: sh[4711] ran on core 1"}, {"interrupts: timer", us * .01, 1, "sampled", ""}}
		case t == 1 && us > 150:
			p.Findings[1].Stalls = append(p.Findings[1].Stalls, i)
		}
		p.Stalls = append(p.Stalls, s)
	}
	rises := Series{Name: "rx_missed_errors of dpdk0", Unit: "packets", Thread: -1, Alarm: true}
	for i := range 20 {
		v := 0.0
		if i%6 == 4 {
			v = float64(rng.IntN(5000))
		}
		rises.Points = append(rises.Points, Point{start.Add(time.Duration(i) * time.Second), start.Add(time.Duration(i+1) * time.Second), v})
	}
	p.Series = append(p.Series, rises)
	return p
}

func TestSample(t *testing.T) {
	var b bytes.Buffer
	if err := sample(500).Write(&b); err != nil {
		t.Fatal(err)
	}
}
