package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pmdperf/pmdperf/internal/experiment"
)

func newBenchSelfCmd(args []string) *cobra.Command {
	var f benchFlags
	var c experiment.SelfConfig
	cmd := &cobra.Command{
		Use:   "self",
		Short: "What the recorder itself costs, against its budgets",
		Long: `Self measures the recorder alone, without a forwarder: what a pass of a loop costs it,
in clock readings or cycles, and what readers cost the loop. What is compared takes turns
in slices of some tens of microseconds, and the fastest slice of each counts: what it costs
when nothing disturbs it. Each figure is beside its budget.`,
		Example: `  pmdperf bench self`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.quick && !cmd.Flags().Changed("rounds") {
				c.Rounds = 400
			}
			c.Common = f.common
			return f.run(cmd, args, c.Validate, func(ctx context.Context) (*experiment.Report, error) {
				c.Common = f.common
				return experiment.Self(ctx, c)
			})
		},
	}
	addFlag(cmd.Flags(), &c.Rounds, "rounds", "count", "5000", "rounds of slices", parseCount)
	f.add(cmd, "few rounds")
	return cmd
}
