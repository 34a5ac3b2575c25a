package main

// Figures that others published, on the ovs-dev mailing list. Each is shown beside
// ours; they were measured with network cards and traffic generators of their own.

// overheadPublished are the changes in percent by detailed metrics that the thread
// "dpif-netdev: Detailed PMD performance metrics and supervision" (December 2017) has,
// by flows and subtables.
func overheadPublished() map[[2]string]string {
	m := make(map[[2]string]string)
	subtables := []string{"1", "3", "5", "10", "20"}
	for flows, changes := range map[string][]string{
		"10000":   {"-3.51", "-3.33", "-2.84", "-2.30", "-3.32"},
		"100000":  {"-3.02", "-2.83", "-2.11", "-1.33", "-3.81"},
		"1000000": {"-3.25", "-2.75", "-1.98", "-1.78", "-0.60"},
	} {
		for i, c := range changes {
			m[[2]string{flows, subtables[i]}] = c
		}
	}
	return m
}

// reloadPublished are cycles between the last poll under the old and the first under
// the new configuration, of 1000 rebalances: thread "Quicker pmd threads reloads"
// (April 2019).
var reloadPublished = []struct{ scheme, what, min, average, max string }{
	{"blocking", "the thread's, before its patches", "140000", "330000", "3000000"},
	{"busy", "the thread's, after its patches", "13000", "20000", "43000"},
}

// profilesPublished are changes in percent by the first version of the thread
// "netdev-dpdk: Refactor the DPDK transmit path" (January 2021): a million flows in VXLAN.
func profilesPublished() map[string]string { return map[string]string{"burst": "+1", "scatter": "-4"} }

// vhostPublished are changes in percent by statistics of virtqueues, by direction and
// way of forwarding: thread "netdev-dpdk: Use DPDK vhost-user per queue statistics"
// (January 2023). One way is the series with the library's statistics against the same
// without: 12.226 against 12.453 Mpps, 7.795 against 7.967. Both ways is the series
// against what was before, which counted itself.
func vhostPublished() map[[2]string]string {
	return map[[2]string]string{
		{"one way", "drop"}:           "-1.8",
		{"one way", "port to port"}:   "-2.2",
		{"both ways", "port to port"}: "-2.7",
		{"both ways", "NORMAL"}:       "-1.5",
	}
}
