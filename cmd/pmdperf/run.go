package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pmdperf/pmdperf/internal/dataplane"
	"github.com/pmdperf/pmdperf/perf"
)

// runFlags is what the flags of the verb run say.
type runFlags struct {
	config    dataplane.Config
	inject    []dataplane.Injection // with the zero value for "none"
	format    format
	supervise superviseFlags
	serve     serveFlags
	listen    listenFlags
}

// format is how the verb run shows what it found.
type format string

const (
	formatText format = "text"
	formatJSON format = "json"
)

// What --inject says beside trouble, and without having been given.
const (
	noInjection     = "none"
	injectByDefault = "compute=2ms@1s"
)

func newRunCmd(args []string) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Forward packets with a recorded poll loop and show the recording",
		Long: `Run forwards packets in poll-mode (PMD) threads, as Open vSwitch's userspace
datapath does: one thread on each core polls its receive queues, looks the packets up
in an exact-match cache and then among megaflows, asks a slow path about the rest, and
sends in batches. Packets of one port leave by the next, those of the last by the first.

Every pass of the loop is recorded. At the end, after --duration or at an interrupt,
pmd-perf-show of each PMD is printed, what it doesn't show (the slowest iteration,
percentiles, the recorder's own work) and rx = tx + drops of each port.

Suspicious iterations are kept with their neighborhood: --log-file and --flight-record
write them down, with their causes: probes of the PMDs' threads see who or what kept
one from its work, as far as the privileges allow (root sees most).

With --rundir or --name it answers ovs-appctl and the other verbs of pmdperf meanwhile,
and with --listen Prometheus.

Ports are "mem", in memory with a packet generator behind it, or the network interface
IF of Linux: "afpacket:IF" by packet sockets, which take root or CAP_NET_RAW, or
"afxdp:IF" by AF_XDP sockets past the network stack, which take root. Its program runs
in the driver where that can and else in the kernel's generic receive path;
"afxdp:IF/native" and "afxdp:IF/generic" say where.

Trouble is KIND=DURATION@EVERY, where KIND is compute (the loop's own code takes long),
fault (page faults in the loop), block (a system call in the loop that waits), gc
(garbage collections beside the loop) or reload (the PMDs change their queues).`,
		Example: `  pmdperf run
  pmdperf run --duration 1m --cores 2-3 --port mem --port mem --queues 2
  pmdperf run --port afpacket:eth0 --port afpacket:eth1 --pmd-maxsleep 50us
  pmdperf run --port afxdp:eth0 --port afxdp:eth1 --queues 4 --cores 2-5
  pmdperf run --profile scatter --flows 100000 --subtables 20 --rate 0
  pmdperf run --inject block=500us@100ms --inject reload=1ms@2s
  pmdperf run --inject compute=2ms@500ms --log-file slow.log --flight-record slow.jsonl
  pmdperf run --duration 1m --rundir /tmp/run --name demo &
  OVS_RUNDIR=/tmp/run ovs-appctl -t demo dpif-netdev/pmd-perf-show -it 5 -ms 5
  pmdperf run --duration 1m --listen 127.0.0.1:9200 & curl 127.0.0.1:9200/metrics
  pmdperf run --duration 3s --format json | jq '.threads[].slowest_iteration'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := f.check(cmd.Flags())
			if err != nil {
				return err
			}
			execUninterrupted(args)
			return f.forward(cmd, cfg)
		},
	}
	f.add(cmd)
	return cmd
}

// add adds the flags to the command, with their completions.
func (f *runFlags) add(cmd *cobra.Command) {
	flags, c := cmd.Flags(), &f.config
	flags.SortFlags = false
	addFlag(flags, &c.Duration, "duration", "duration", "10s", "how long to run, 0 for until interrupted", parseDuration)
	addFlag(flags, &c.Cores, "cores", "list", "", "cores to run a PMD on, say 0,2-3 (default the last one)", parseCores)
	addList(flags, &c.Ports, "port", "port", "mem", "port to forward from: mem, afpacket:IF or afxdp:IF; repeat it for several", anyText)
	addFlag(flags, &c.Queues, "queues", "count", "1", "receive queues of each port", parseCount)

	addFlag(flags, &c.Rate, "rate", "pps", "1M", "packets a second that each port in memory gets, 0 for as many as the loop takes", parseRate)
	addFlag(flags, &c.Flows, "flows", "count", "1000", "flows that they belong to", parseCount)
	addFlag(flags, &c.Profile, "profile", "profile", string(dataplane.ProfileBurst), "order of the flows: burst (32 packets of one, then of the next), scatter (every packet another) or idle (no packets)",
		oneOf(dataplane.ProfileBurst, dataplane.ProfileScatter, dataplane.ProfileIdle))
	addFlag(flags, &c.PacketSize, "packet-size", "bytes", "60", "size of the packets, without frame check sequence", parseCount)

	addFlag(flags, &c.Subtables, "subtables", "count", "4", "subtables that the megaflows are spread over", parseCount)
	flags.BoolVar(&c.Recirculate, "recirc", false, "let every packet take a second pass through the pipeline")
	addFlag(flags, &c.MaxSleep, "pmd-maxsleep", "duration", "0", "longest sleep of a PMD with little to do, 0 for never", parseDuration)
	addList(flags, &f.inject, "inject", "trouble", injectByDefault, "trouble to make, so that there is something to find, or none; repeat it for several; with ports on network interfaces the default is none", parseInjection)

	addFlag(flags, &c.Level, "level", "level", perf.Detailed.String(), "how much to record: off, basic or detailed", perf.ParseLevel)
	addFlag(flags, &f.format, "format", "format", string(formatText), "how to show it: text or json", oneOf(formatText, formatJSON))

	f.supervise.add(flags)

	addFlag(flags, &f.serve.runDir, "rundir", "directory", "", "answer ovs-appctl, with the socket in this directory", anyText)
	addFlag(flags, &f.serve.name, "name", "name", "", "name to answer ovs-appctl by (default "+defaultName+", where --rundir is given)", anyText)
	addFlag(flags, &f.serve.group, "group", "group", "", "group whose members may use the socket too", anyText)

	f.listen.add(flags, "", "metrics of the PMDs")

	words := map[string][]string{
		"profile": {string(dataplane.ProfileBurst), string(dataplane.ProfileScatter), string(dataplane.ProfileIdle)},
		"level":   {perf.Off.String(), perf.Basic.String(), perf.Detailed.String()},
		"format":  {string(formatText), string(formatJSON)},
		"inject":  {noInjection, injectByDefault, "fault=2ms@1s", "block=2ms@1s", "gc=100ms@1s", "reload=1ms@1s"},
	}
	must(cmd.RegisterFlagCompletionFunc("port", completePort))
	must(cmd.MarkFlagDirname("rundir"))
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "port" && flag.Name != "rundir" && flag.Value.Type() != "file" && flag.Value.Type() != "bool" {
			must(cmd.RegisterFlagCompletionFunc(flag.Name, cobra.FixedCompletions(words[flag.Name], cobra.ShellCompDirectiveNoFileComp)))
		}
	})
}

// completePort offers memory and the network interfaces of this machine.
func completePort(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	ports := []string{"mem"}
	interfaces, err := net.Interfaces()
	if err != nil {
		return ports, cobra.ShellCompDirectiveNoFileComp
	}
	for _, i := range interfaces {
		ports = append(ports, "afpacket:"+i.Name, "afxdp:"+i.Name)
	}
	return ports, cobra.ShellCompDirectiveNoFileComp
}

// parseInjection reads an injection, or none as the zero value.
func parseInjection(s string) (dataplane.Injection, error) {
	if s == noInjection {
		return dataplane.Injection{}, nil
	}
	return dataplane.ParseInjection(s)
}

// check returns the configuration that the flags describe. What is wrong with it on
// any machine is a usage error.
func (f *runFlags) check(flags *pflag.FlagSet) (dataplane.Config, error) {
	cfg := f.config
	inMemory := slices.Contains(cfg.Ports, "mem")
	for _, name := range []string{"rate", "profile", "packet-size"} {
		if !flags.Changed(name) {
			continue
		}
		if !inMemory {
			return cfg, usagef("--%s is for ports in memory and there is none: drop it or add --port mem", name)
		}
		if cfg.Profile == dataplane.ProfileIdle && name != "profile" {
			return cfg, usagef("--%s and --profile idle, which makes no packets, contradict each other: drop one", name)
		}
	}

	if err := f.serve.check(); err != nil {
		return cfg, err
	}
	if err := f.listen.check(); err != nil {
		return cfg, err
	}
	if err := f.supervise.check(); err != nil {
		return cfg, err
	}
	none := slices.Contains(f.inject, dataplane.Injection{})
	switch {
	case none && len(f.inject) > 1:
		return cfg, usagef("--inject none and other trouble contradict each other: drop one")
	case none:
	case flags.Changed("inject") || !slices.ContainsFunc(cfg.Ports, func(p string) bool { return p != "mem" }):
		cfg.Inject = f.inject
	}

	// Which cores there are is up to the machine: Open looks at that.
	anywhere := cfg
	anywhere.Cores = nil
	return cfg, asUsage(anywhere.Validate())
}

// forward runs the forwarder and prints what it did.
func (f *runFlags) forward(cmd *cobra.Command, cfg dataplane.Config) (err error) {
	ctx, restore := untilInterrupted(cmd)
	defer restore()
	context.AfterFunc(ctx, restore) // a second signal kills
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	defer fixProcs(max(len(cfg.Cores), 1) + 1)()
	cfg.Registry = new(perf.Registry)
	stderr := &console{w: cmd.ErrOrStderr()}
	cfg.Warn = func(what string) { fmt.Fprintf(stderr, "pmdperf: warning: %s\n", what) }
	say := func(what string) { fmt.Fprintf(stderr, "pmdperf: %s\n", what) }
	watch, err := f.supervise.supervise(cfg.Registry, say, cfg.Warn)
	if err != nil {
		return err
	}
	watching := true
	finish := func() error {
		if !watching {
			return nil
		}
		watching = false
		return watch.finish()
	}
	defer func() { err = errors.Join(err, finish()) }()
	// Nobody is answered before there are PMDs to show.
	var ends []func() error
	defer func() {
		for _, end := range slices.Backward(ends) {
			err = errors.Join(err, end())
		}
	}()
	cfg.Opened = func() error {
		end, err := f.serve.serve(cfg, watch, stop)
		if err != nil {
			return err
		}
		ends = append(ends, end)
		end, err = f.listen.serveRegistry(cfg.Registry, watch, say, cfg.Warn)
		if err != nil {
			return err
		}
		ends = append(ends, end)
		return nil
	}
	progress := newProgress(stderr, cfg.Duration)
	cfg.Progress = progress.show
	result, err := dataplane.Run(ctx, cfg)
	progress.end()
	if err := errors.Join(err, finish()); err != nil {
		return err
	}
	o := outcome{result: result, inject: cfg.Inject, causes: watch.counts.list()}
	for _, r := range cfg.Registry.Recorders() {
		s := new(perf.Snapshot)
		if err := r.Snapshot(context.Background(), perf.Want{}, s); err != nil {
			return err
		}
		o.snaps = append(o.snaps, s)
	}
	return o.print(cmd.OutOrStdout(), f.format)
}

// fixProcs makes GOMAXPROCS at least n, as long as the function that it returns isn't
// called, unless the environment says what it is to be. A call also where it is large
// enough keeps the Go runtime from lowering it (since Go 1.25) to the number of cores
// that a thread may run on, which for those beside the PMDs are few.
func fixProcs(n int) (restore func()) {
	if os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(max(before, n))
	return func() { runtime.GOMAXPROCS(before) }
}
