package prom

import "time"

// oldName is a metric of openstack-network-exporter.
type oldName struct {
	name   string
	kind   kind
	from   Metric  // of which it is made
	unit   float64 // of which its values are multiples
	values [][]string
	queue  bool // it has the labels of receive queues, and values are ignored
}

// plain is the value without labels.
var plain = [][]string{nil}

func of(labels ...string) (values [][]string) {
	for _, l := range labels {
		values = append(values, []string{l})
	}
	return values
}

const percent = 0.01

// oldNames are its metrics; the sum of the values is what they count. It leaves two out
// that have the same name and meaning here, ovs_pmd_cpu_isolated and ovs_pmd_rxq_enabled.
var oldNames = [...]oldName{
	{"ovs_pmd_total_iterations", counter, Iterations, 1, of("busy", "idle"), false},
	{"ovs_pmd_idle_iterations", counter, Iterations, 1, of("idle"), false},
	{"ovs_pmd_busy_iterations", counter, Iterations, 1, of("busy"), false},
	{"ovs_pmd_sleep_iterations", counter, Iterations, 1, of("sleep"), false},
	{"ovs_pmd_sleep_microseconds", counter, SleepSeconds, time.Microsecond.Seconds(), plain, false},
	{"ovs_pmd_rx_packets", counter, RxPackets, 1, plain, false},
	{"ovs_pmd_tx_packets", counter, TxPackets, 1, plain, false},
	{"ovs_pmd_total_upcalls", counter, Upcalls, 1, plain, false},
	{"ovs_pmd_lost_upcalls", counter, LostUpcalls, 1, plain, false},
	{"ovs_pmd_context_switches", counter, ContextSwitches, 1, of("voluntary"), false},
	{"ovs_pmd_nonvol_context_switches", counter, ContextSwitches, 1, of("involuntary"), false},
	{"ovs_pmd_datapath_passes", counter, DatapathPasses, 1, plain, false},
	{"ovs_pmd_phwol_hits", counter, LookupHits, 1, of("phwol"), false},
	{"ovs_pmd_mfex_opt_hits", counter, LookupHits, 1, of("mfex_opt"), false},
	{"ovs_pmd_simple_match_hits", counter, LookupHits, 1, of("simple_match"), false},
	{"ovs_pmd_emc_hits", counter, LookupHits, 1, of("emc"), false},
	{"ovs_pmd_smc_hits", counter, LookupHits, 1, of("smc"), false},
	{"ovs_pmd_megaflow_hits", counter, LookupHits, 1, of("megaflow"), false},
	{"ovs_pmd_tx_batches", gauge, TxBatches, 1, plain, false},
	{"ovs_pmd_cpu_overhead", gauge, Overhead, percent, plain, false},
	{"ovs_pmd_rxq_usage", gauge, RxqUsage, percent, nil, true},
}

func (o *oldName) help() string {
	return "The name of before of " + prefixPMD + families[o.from].name + "."
}

func (o *oldName) labels() []string {
	if o.queue {
		return families[o.from].labels
	}
	return nil
}

// collect calls send for every value of a PMD.
func (o *oldName) collect(t *Thread, send func(v float64, labels ...string)) {
	if t.Main {
		return
	}
	if o.queue {
		for i := range t.samples {
			if s := &t.samples[i]; s.metric == o.from {
				send(s.value/o.unit, s.labels...)
			}
		}
		return
	}
	sum := 0.0
	for _, labels := range o.values {
		v, ok := t.Value(o.from, labels...)
		if !ok {
			return
		}
		sum += v
	}
	send(sum / o.unit)
}
