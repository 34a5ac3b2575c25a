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

func newBenchProfilesCmd(args []string) *cobra.Command {
	var f benchFlags
	var c experiment.ProfilesConfig
	cmd := &cobra.Command{
		Use:   "profiles",
		Short: "How fast traffic is forwarded without loss, by transmit path",
		Long: `Profiles searches by bisection, as RFC 2544 has it, for the highest rate at which no
packet is lost: for bursts (32 packets of a flow, then of the next) and scattered traffic
(every packet of another flow), plain and in VXLAN (taking it off is a second pass through
the pipeline), for packets sent at once, flow by flow, and for batches, one a port, which
are sent when full or due, with metrics off and on.

The four ways to forward the same traffic are searched for side by side, trial by trial
in random order. A trial in which somebody took the core from the PMD's thread is repeated
and counted. A rate is too high when two trials in a row lose packets.`,
		Example: `  pmdperf bench profiles --quick
  pmdperf bench profiles --trial 1s --resolution 0.1% --loss 0.001%
  pmdperf bench profiles --outputs 1 --flows 10000 --ring 512`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.quick {
				for name, use := range map[string]func(){
					"flows": func() { c.Flows = 100_000 }, "searches": func() { c.Searches = 2 },
					"trial": func() { c.Trial = 10 * time.Millisecond }, "resolution": func() { c.Resolution = 0.02 },
				} {
					if !cmd.Flags().Changed(name) {
						use()
					}
				}
			}
			c.Common = f.common
			return f.run(cmd, args, c.Validate, func(ctx context.Context) (*experiment.Report, error) {
				c.Common = f.common
				return experiment.Profiles(ctx, c)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	addFlag(flags, &c.Flows, "flows", "count", "1000000", "flows", parseCount)
	addFlag(flags, &c.Outputs, "outputs", "count", "32", "output ports that the flows are spread over", parseCount)
	addFlag(flags, &c.RingSize, "ring", "packets", "1024", "packets that a receive queue holds, a power of two", parseCount)
	addFlag(flags, &c.Flush, "flush-interval", "duration", "50us", "how long a packet may wait in a batch", parseDuration)
	addFlag(flags, &c.Searches, "searches", "count", "10", "searches for each rate", parseCount)
	addFlag(flags, &c.Trial, "trial", "duration", "200ms", "how long a rate is tried", parseDuration)
	addFlag(flags, &c.Resolution, "resolution", "share", "0.5%", "how exactly a rate is searched for", parseShare)
	addFlag(flags, &c.Loss, "loss", "share", "0", "share of the packets that may be lost", parseShare)
	f.add(cmd, "100,000 flows, 2 searches with short trials")
	return cmd
}

// parseShare reads a share, as 0.005 or 0.5%.
func parseShare(s string) (float64, error) {
	number, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, fmt.Errorf("%q is no share: write 0.005 or 0.5%%, from 0 to 100%%", s)
	}
	return v, nil
}
