package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pmdperf/pmdperf/internal/experiment"
)

func newBenchOverheadCmd(args []string) *cobra.Command {
	var f benchFlags
	var c experiment.OverheadConfig
	cmd := &cobra.Command{
		Use:   "overhead",
		Short: "What recording costs a forwarder that has more to do than it can",
		Long: `Overhead measures one forwarder at level off, once more at level off (which shows what
the method makes of no difference), basic, detailed, and with everything: detailed, with
suspicious iterations looked for and the probes of causes running. In every round each
level is measured for a slice of time, in random order, and compared with level off of
the same round.

For each number of flows and subtables the table has the throughput, the cycles a packet
takes, by how many percent the level changes the throughput, how many cycles a packet it
costs, and how many more rounds it takes until the interval of the change is no wider
than 0.5 points. All takes some 25 minutes; --quick makes few rounds, so that its
intervals are wide.`,
		Example: `  pmdperf bench overhead --quick
  pmdperf bench overhead --format json >overhead.json
  pmdperf bench overhead --flows 1000 --subtables 1 --until 0.2`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.quick {
				c.Budget = 45 * time.Second
				if !cmd.Flags().Changed("rounds") {
					c.Rounds = 60
				}
			}
			c.Common = f.common
			return f.run(cmd, args, c.Validate, func(ctx context.Context) (*experiment.Report, error) {
				c.Common = f.common
				return experiment.Overhead(ctx, c)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	addFlag(flags, &c.Flows, "flows", "list", "10000,100000,1000000", "numbers of flows", parseCounts)
	addFlag(flags, &c.Subtables, "subtables", "list", "1,3,5,10,20", "numbers of subtables that the flows are spread over", parseCounts)
	addFlag(flags, &c.Slice, "slice", "duration", "2ms", "how long a level is measured at a time", parseDuration)
	addFlag(flags, &c.Rounds, "rounds", "count", "5000", "rounds for each number of flows and subtables", parseCount)
	addFlag(flags, &c.Until, "until", "points", "0", "go on until every change has an interval no wider than that, 0 for only the rounds", parsePoints)
	f.addPorts(cmd)
	f.add(cmd, "few rounds, less than a minute in all")
	return cmd
}

// parseCounts reads whole numbers from 1 up with commas between them.
func parseCounts(s string) (counts []int, err error) {
	for part := range strings.SplitSeq(s, ",") {
		n, err := parseCount(part)
		if err != nil {
			return nil, err
		}
		counts = append(counts, n)
	}
	return counts, nil
}

// parsePoints reads a width in points of percent.
func parsePoints(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0) {
		return 0, fmt.Errorf("%q is no width: write points of percent, say 0.5, or 0 for none", s)
	}
	return v, nil
}
