package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/pmdperf/pmdperf/internal/dataplane"
	"github.com/pmdperf/pmdperf/perf"
)

// TestConfig: what flags make of the forwarder's configuration.
func TestConfig(t *testing.T) {
	stall := []dataplane.Injection{{Kind: dataplane.InjectCompute, Duration: 2 * time.Millisecond, Every: time.Second}}
	base := func(change func(*dataplane.Config)) dataplane.Config {
		c := dataplane.Config{
			Ports: []string{"mem"}, Queues: 1, Duration: 10 * time.Second,
			Rate: 1e6, Flows: 1000, Profile: dataplane.ProfileBurst, PacketSize: 60,
			Subtables: 4, Inject: stall, Level: perf.Detailed,
		}
		change(&c)
		return c
	}
	for _, c := range []struct {
		name string
		args []string
		want dataplane.Config
	}{
		{"defaults", nil, base(func(*dataplane.Config) {})},
		{"everything", []string{
			"--duration=1m", "--cores=0,2-3", "--port=mem", "--port=afpacket:eth0", "--queues=2",
			"--rate=0", "--flows=7", "--profile=scatter", "--packet-size=1500", "--subtables=9", "--recirc",
			"--pmd-maxsleep=50us", "--inject=gc=1ms@1s", "--inject=reload=2ms@3s", "--level=basic",
		}, dataplane.Config{
			Duration: time.Minute, Cores: []int{0, 2, 3}, Ports: []string{"mem", "afpacket:eth0"}, Queues: 2,
			Flows: 7, Profile: dataplane.ProfileScatter, PacketSize: 1500, Subtables: 9, Recirculate: true,
			MaxSleep: 50 * time.Microsecond, Level: perf.Basic,
			Inject: []dataplane.Injection{
				{Kind: dataplane.InjectGC, Duration: time.Millisecond, Every: time.Second},
				{Kind: dataplane.InjectReload, Duration: 2 * time.Millisecond, Every: 3 * time.Second},
			},
		}},
		{"no trouble", []string{"--inject=none"}, base(func(c *dataplane.Config) { c.Inject = nil })},
		{"no trouble with an interface", []string{"--port=mem", "--port=afpacket:eth0"}, base(func(c *dataplane.Config) {
			c.Ports, c.Inject = []string{"mem", "afpacket:eth0"}, nil
		})},
		{"wanted trouble with an interface", []string{"--port=afpacket:eth0", "--inject=compute=2ms@1s"}, base(func(c *dataplane.Config) {
			c.Ports = []string{"afpacket:eth0"}
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f runFlags
			cmd := new(cobra.Command)
			f.add(cmd)
			if err := cmd.ParseFlags(c.args); err != nil {
				t.Fatal(err)
			}
			got, err := f.check(cmd.Flags())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(perf.Registry{})); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}
