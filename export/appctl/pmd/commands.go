package pmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/perf"
	"github.com/pmdperf/pmdperf/suspicious"
)

// Options say how the commands answer. The zero value is usable.
type Options struct {
	// Datapath is the name by which commands may call the one datapath that there
	// is, alone or as netdev@NAME. The default is that of Open vSwitch, ovs-netdev.
	Datapath string

	// MainThread adds the block of the main thread to pmd-perf-show, as Open vSwitch
	// does since 4.0. Known exporters book it onto the last PMD.
	MainThread bool

	// MaxSleep is what pmd-sleep-show names as the longest sleep of PMDs that have
	// no value of their own.
	MaxSleep time.Duration

	// Events are what pmdperf/events shows. Without it there are none.
	Events *suspicious.Reports

	// Reports tells what became of the reports of the PMD of that name, as
	// suspicious.Supervisor.Counts does. Without it nothing is said of them.
	Reports func(name string) suspicious.ReportCounts

	// Probes says what looks for the causes of slow iterations, in a line each, and what
	// doesn't and why, for pmdperf/clock. It may be nil.
	Probes func() []string

	// Log gets a line when pmd-perf-log-set changes something, as in Open vSwitch. It
	// may be nil.
	Log *slog.Logger

	// Timeout is how long a command waits for a PMD to answer. The default is that
	// of perf.Recorder, a second.
	Timeout time.Duration
}

// Commands returns the commands for the recorders of a registry, to be given to
// appctl.Listen. What they keep, which is memory for snapshots, belongs to what is
// returned by one call.
func Commands(g *perf.Registry, o Options) []appctl.Command {
	if o.Datapath == "" {
		o.Datapath = "ovs-netdev"
	}
	s := &service{registry: g, Options: o}
	s.snapshots.New = func() any { return new(perf.Snapshot) }
	s.printouts.New = func() any { return new(printout) }
	var cs []appctl.Command
	for _, c := range s.commands() {
		cs = append(cs, appctl.Command{
			Name:    c.name,
			Usage:   c.usage,
			MaxArgs: appctl.NoMax, // the parser says better what is too much
			Text: func(ctx context.Context, w io.Writer, args []string) error {
				return s.run(ctx, &c, args, func(a answer) { a.write(w) })
			},
			JSON: func(ctx context.Context, args []string) (v any, err error) {
				err = s.run(ctx, &c, args, func(a answer) { v = a.json() })
				return v, err
			},
		})
	}
	return cs
}

// service is what the commands of one registry share. Connections use it
// concurrently.
type service struct {
	Options
	registry  *perf.Registry
	snapshots sync.Pool  // of *perf.Snapshot: fresh ones would keep the collector busy
	printouts sync.Pool  // of *printout, for the same reason
	logSet    sync.Mutex // taken by pmd-perf-log-set
}

// command is one command.
type command struct {
	name  string
	usage string // as list-commands of Open vSwitch has it
	own   string // options of our own, where the command is Open vSwitch's
	grammar
	run func(context.Context, *call) (answer, error)
}

// answer is what a command found out. It is asked for one of its forms, once, before
// the call's snapshots are used for something else.
type answer interface {
	write(w io.Writer) // the text; w takes everything
	json() any
}

// Names of options that more than one place knows.
const (
	optCore   = "-pmd"
	wordDP    = "dp"
	maxNumber = math.MaxUint32
)

func (s *service) commands() []command {
	core := number(optCore, 0, math.MaxInt32)
	options := func(os ...option) grammar { return grammar{append(os, core), ""} }
	logOptions, ownLogOptions := logOptions()
	with := func(word string, g grammar) grammar { return grammar{g.options, word} }
	return []command{
		{name: "dpif-netdev/pmd-perf-show", usage: "[-nh] [-it iter-history-len] [-ms ms-history-len] [-pmd core] [dp]",
			grammar: with(wordDP, options(plain("-nh"), number("-it", 0, maxNumber), number("-ms", 0, maxNumber))), run: perfShow},
		{name: "dpif-netdev/pmd-stats-show", usage: "[-pmd core] [dp]", grammar: with(wordDP, options()), run: statsShow},
		{name: "dpif-netdev/pmd-stats-clear", usage: "[-pmd core] [dp]", grammar: with(wordDP, options()), run: statsClear},
		{name: "dpif-netdev/pmd-rxq-show", usage: "[-pmd core] [-secs secs] [dp]",
			grammar: with(wordDP, options(number("-secs", 0, maxNumber))), run: rxqShow},
		{name: "dpif-netdev/pmd-sleep-show", usage: "[dp]", grammar: grammar{word: wordDP}, run: sleepShow},
		{name: "dpif-netdev/pmd-perf-log-set", usage: "on|off [-b before] [-a after] [-e|-ne] [-us usec] [-q qlen]", own: ownLogOptions,
			grammar: with("on|off", options(logOptions...)), run: logSet},

		{name: "pmdperf/percentiles", usage: "[-pmd core] [-hdr] [-log] [histogram]", grammar: with("histogram", options(plain("-hdr"), plain("-log"))), run: percentiles},
		{name: "pmdperf/reloads", usage: "[-pmd core]", grammar: options(), run: reloads},
		{name: "pmdperf/packet-sizes", usage: "[-pmd core]", grammar: options(), run: packetSizes},
		{name: "pmdperf/level", usage: "[-pmd core] [off|basic|detailed]", grammar: with("level", options()), run: level},
		{name: "pmdperf/overhead", usage: "[-pmd core]", grammar: options(), run: overhead},
		{name: "pmdperf/events", usage: "[-pmd core] [-n count] [event]", grammar: with("event", options(number("-n", 1, maxNumber))), run: events},
		{name: "pmdperf/clock", usage: "", run: clock},
	}
}

// run runs a command and has render take the form of the answer that it wants.
func (s *service) run(ctx context.Context, c *command, args []string, render func(answer)) error {
	cl := &call{service: s}
	defer cl.release()
	a, err := s.answer(ctx, c, cl, args)
	if e, ok := errors.AsType[*argumentError](err); ok {
		text := e.text
		if e.option == optCore {
			text += "; " + s.cores()
		}
		usage := strings.TrimSpace(c.name + " " + c.usage + c.own)
		return fmt.Errorf("%s\nUsage: ovs-appctl %s", text, usage)
	}
	if err != nil {
		return err
	}
	render(a)
	return nil
}

func (s *service) answer(ctx context.Context, c *command, cl *call, args []string) (answer, error) {
	var err error
	if cl.arguments, err = c.parse(args); err != nil {
		return nil, err
	}
	if dp := cl.word; c.word == wordDP && cl.hasWord && dp != s.Datapath && dp != "netdev@"+s.Datapath {
		return nil, fmt.Errorf("there is no datapath %q: please specify an existing datapath, which is %q", dp, s.Datapath)
	}
	cl.pmds = s.registry.Recorders()
	if core, ok := cl.core(); ok {
		if cl.pmds = atCore(cl.pmds, core); cl.pmds == nil {
			return nil, fmt.Errorf("there is no PMD on core %d; %s", core, s.cores())
		}
	}
	return c.run(ctx, cl)
}

func atCore(rs []*perf.Recorder, core int) []*perf.Recorder {
	for _, r := range rs {
		if r.Core() == core {
			return []*perf.Recorder{r}
		}
	}
	return nil
}

// cores says which cores have a PMD.
func (s *service) cores() string {
	rs := s.registry.Recorders()
	names := make([]string, len(rs))
	for i, r := range rs {
		names[i] = strconv.Itoa(r.Core())
	}
	switch len(names) {
	case 0:
		return "there are no PMDs"
	case 1:
		return "the only PMD is on core " + names[0]
	}
	return "there are PMDs on cores " + strings.Join(names, ", ")
}
