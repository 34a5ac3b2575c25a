package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pmdperf/pmdperf/internal/experiment"
)

func newBenchVhostCmd(args []string) *cobra.Command {
	var f benchFlags
	var c experiment.VhostConfig
	cmd := &cobra.Command{
		Use:   "vhost",
		Short: "What statistics of queues cost where two PMDs share two ports",
		Long: `Vhost lets two PMDs receive from and send to the same two ports, as between two guests,
with the guests' sides inside the ports. Every packet is counted by its port, direction
and size: by nobody, by each PMD for itself, or for all behind one lock a port. Traffic
flows one way or both; it is dropped, sent from port to port, or to where its destination's
address was seen last (NORMAL).

It needs two cores, and better a third one for what else the process does.`,
		Example: `  pmdperf bench vhost --quick
  pmdperf bench vhost --cores 2,3 --rounds 5000`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.quick && !cmd.Flags().Changed("rounds") {
				c.Rounds = 60
			}
			c.Common = f.common
			return f.run(cmd, args, c.Validate, func(ctx context.Context) (*experiment.Report, error) {
				c.Common = f.common
				return experiment.Vhost(ctx, c)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	addFlag(flags, &c.Flows, "flows", "count", "64", "flows of each port", parseCount)
	addFlag(flags, &c.Slice, "slice", "duration", "2ms", "how long a way of counting is measured at a time", parseDuration)
	addFlag(flags, &c.Rounds, "rounds", "count", "2000", "rounds for each direction and way of forwarding", parseCount)
	f.add(cmd, "few rounds")
	return cmd
}
