package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pmdperf/pmdperf/internal/dataplane"
	"github.com/pmdperf/pmdperf/internal/experiment"
)

func newBenchReloadCmd(args []string) *cobra.Command {
	var f benchFlags
	var c experiment.ReloadConfig
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "How long a change of what PMDs poll keeps them from polling",
		Long: `Reload changes under traffic which PMD polls which queue, again and again, and measures
the cycles between the last pass under the old configuration and the first one under the
new: for the threads, and for the queues, which is what they must have room for where
they move to another thread.

Three schemes and windows without a reload take turns in random order. With "handover"
every PMD changes by itself, with everything prepared, and a queue that moves is polled as
soon as the PMD that had it has let go of it. With "busy" the PMDs, with everything
prepared, stop polling and wait busily until all have. With "blocking" they sleep until
the control thread has prepared everything and wakes them. Packets that were lost in a
window that begins with the reload are shown beside those of windows without.
Reloads in which a PMD's thread was off its core are shown apart. On a real port it is
what arrives there that may be lost, as its driver counts it.`,
		Example: `  pmdperf bench reload
  pmdperf bench reload --pmds 2 --cores 2-3 --rate 5M --ring 512
  pmdperf bench reload --port afpacket:eth1 --queues 1
  pmdperf bench reload --format json | jq '.rows[].histogram'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("pmds") {
				c.PMDs = []int{1}
				if n := len(f.common.Cores); n > 1 || n == 0 && len(dataplane.Cores()) > 1 {
					c.PMDs = []int{1, 2}
				}
			}
			if f.quick && !cmd.Flags().Changed("reloads") {
				c.Reloads = 100
			}
			c.Common = f.common
			return f.run(cmd, args, c.Validate, func(ctx context.Context) (*experiment.Report, error) {
				c.Common = f.common
				return experiment.Reload(ctx, c)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	addFlag(flags, &c.PMDs, "pmds", "list", "", "numbers of PMDs, each with tables of its own (default 1, and 2 where there are the cores)", parseCounts)
	addFlag(flags, &c.Reloads, "reloads", "count", "1000", "reloads with each scheme", parseCount)
	addFlag(flags, &c.Rate, "rate", "pps", "1M", "packets a second from a port in memory", parseRate)
	addFlag(flags, &c.RingSize, "ring", "packets", "1024", "packets that a receive queue holds, a power of two", parseCount)
	addFlag(flags, &c.Queues, "queues", "count", "2", "receive queues", parseCount)
	addFlag(flags, &c.Window, "window", "duration", "2ms", "how long lost packets are counted", parseDuration)
	f.addPorts(cmd)
	f.add(cmd, "100 reloads")
	return cmd
}
