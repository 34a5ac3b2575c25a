package dataplane

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pmdperf/pmdperf/history"
	"github.com/pmdperf/pmdperf/perf"
)

// Config says what the forwarder does. Zero values mean what the fields' comments
// say.
type Config struct {
	// Ports are the ports that packets are received from: "mem" for one in
	// memory, "afpacket:IF" or "afxdp:IF" for a network interface, by packet sockets or
	// by AF_XDP ("afxdp:IF/native" and "afxdp:IF/generic" say where). Packets of one go out of
	// the next, those of the last out of the first. None means one "mem".
	Ports []string

	// Sinks is a number of ports in memory that only send. If there are any, the
	// flows of all ports are spread over them.
	Sinks int

	Queues   int           // receive queues of each port; 0 = 1
	Cores    []int         // one PMD on each; none = one PMD on the last core there is
	Duration time.Duration // 0 = until the context is done

	// What the generators behind ports in memory send.
	Rate       float64 // packets a second and port; 0 = as fast as the loop takes them
	Flows      int     // 0 = 1
	Profile    Profile // "" = ProfileBurst
	PacketSize int     // bytes without frame check sequence; 0 = the smallest
	RingSize   int     // packets a queue holds, a power of two; 0 = 1024
	Tunnel     bool    // packets come in VXLAN, which is taken off
	OneWay     bool    // only the first port gets packets

	// The pipeline.
	Subtables   int  // rules of the slow path with a mask of their own; 0 = 1
	Recirculate bool // every packet takes a second pass
	Drop        bool // every packet is dropped
	Normal      bool // packets go where their destination's address was seen last, if it was: MAC learning
	EMCInverse  int  // one in so many flows enters the exact-match cache; 0 = 100, -1 = none
	FlowLimit   int  // megaflows a PMD may hold; 0 = enough for the flows of all ports, up to some 4 million, and always for those of one

	// How packets are sent: at the end of a pass or when 32 are there for a port.
	// With FlushInterval they may wait that long, over several passes; with
	// SendAtOnce they go out flow by flow.
	FlushInterval time.Duration
	SendAtOnce    bool

	MaxSleep time.Duration // longest sleep of a PMD that has little to do; 0 = never sleeps
	Inject   []Injection

	// Reload is how PMDs change what they poll; "" = ReloadHandover.
	Reload ReloadScheme

	// Stats has packets counted by port and size besides; "" = StatsOff.
	Stats StatsMode

	Level    perf.Level     // of the recorders
	Sizes    bool           // record the sizes of packets
	Registry *perf.Registry // where the recorders are registered, and stay after the end; nil = one of the forwarder's own

	// Warn gets one-line messages about what makes measurements worse. It may be nil.
	Warn func(string)

	// Opened is called by Run when everything is open and the recorders are in the
	// registry, before the first pass. An error ends the run. It may be nil.
	Opened func() error

	// Progress gets what was done so far once a second, on a goroutine of the
	// forwarder. It may be nil.
	Progress func(Result)
}

// Limits of a Config.
const (
	maxPorts    = 64 // one bit each in a PMD's set of ports with packets to send
	maxQueues   = 64
	maxRing     = 1 << 20
	maxMaxSleep = 10 * time.Millisecond // as pmd-sleep-max in Open vSwitch
)

// withDefaults returns c with the zero values replaced by what they mean.
func (c Config) withDefaults() Config {
	if len(c.Ports) == 0 {
		c.Ports = []string{"mem"}
	}
	if len(c.Cores) == 0 {
		if all := usableCores(); len(all) > 0 {
			c.Cores = all[len(all)-1:]
		}
	}
	if c.Profile == "" {
		c.Profile = ProfileBurst
	}
	if c.PacketSize == 0 {
		c.PacketSize = c.minSize()
	}
	if c.Reload == "" {
		c.Reload = ReloadHandover
	}
	if c.Stats == "" {
		c.Stats = StatsOff
	}
	if c.Registry == nil {
		c.Registry = new(perf.Registry)
	}
	orDefault(&c.Queues, 1)
	orDefault(&c.Flows, 1)
	orDefault(&c.Subtables, 1)
	orDefault(&c.RingSize, 1024)
	orDefault(&c.EMCInverse, 100)
	if c.FlowLimit == 0 {
		passes := 1
		if c.Recirculate {
			passes++
		}
		one := c.Flows*passes + 1024 // some for whatever else an interface brings
		c.FlowLimit = min(one*len(c.Ports), max(one, roomyLimit))
	}
	return c
}

// Megaflows take 41 to 82 bytes each, in every PMD.
const (
	maxFlowLimit = 4 * MaxFlows
	roomyLimit   = 1 << 22
)

func orDefault(n *int, d int) {
	if *n == 0 {
		*n = d
	}
}

func (c *Config) minSize() int {
	if c.Tunnel {
		return MinTunnelSize
	}
	return MinPacketSize
}

// Validate returns an error of one line that says what is wrong and what to do. It
// does not look at the network interfaces.
func (c Config) Validate() error {
	c = c.withDefaults()
	for _, check := range []struct {
		name   string
		n      int
		lo, hi int
	}{
		{"sinks", c.Sinks, 0, maxPorts - 1},
		{"queues", c.Queues, 1, maxQueues},
		{"flows", c.Flows, 1, MaxFlows},
		{"subtables", c.Subtables, 1, MaxSubtables},
		{"packet size", c.PacketSize, c.minSize(), MaxPacketSize},
		{"ring size", c.RingSize, Burst, maxRing},
		{"flow limit", c.FlowLimit, 1, maxFlowLimit},
		{"inverse EMC insertion probability", c.EMCInverse, -1, 1 << 30},
	} {
		if check.n < check.lo || check.n > check.hi {
			return fmt.Errorf("%s %d: choose %d to %d", check.name, check.n, check.lo, check.hi)
		}
	}
	switch {
	case len(c.Ports)+c.Sinks > maxPorts:
		return fmt.Errorf("%d ports are too many: use at most %d", len(c.Ports)+c.Sinks, maxPorts)
	case len(c.Ports)*c.Queues > history.MaxQueues:
		return fmt.Errorf("%d ports with %d queues are more than the %d queues that a PMD can poll: use fewer", len(c.Ports), c.Queues, history.MaxQueues)
	case c.RingSize&(c.RingSize-1) != 0:
		return fmt.Errorf("ring size %d is no power of two: try %d", c.RingSize, 1<<bitLen(c.RingSize))
	case c.Rate < 0 || c.Rate != c.Rate || c.Rate > 1e9:
		return fmt.Errorf("rate %v: choose 0 (unlimited) to 1e9 packets a second", c.Rate)
	case c.Duration < 0:
		return fmt.Errorf("duration %s is negative: use 0 for no end", c.Duration)
	case c.MaxSleep < 0 || c.MaxSleep > maxMaxSleep:
		return fmt.Errorf("longest sleep %s: choose 0 (never) to %s", c.MaxSleep, maxMaxSleep)
	case c.FlushInterval < 0 || c.FlushInterval > time.Second:
		return fmt.Errorf("flush interval %s: choose 0 (every pass) to 1s", c.FlushInterval)
	case c.Normal && c.Drop:
		return fmt.Errorf("forwarding by address and dropping everything contradict each other: choose one")
	case c.FlushInterval > 0 && c.SendAtOnce:
		return fmt.Errorf("a flush interval and sending at once contradict each other: drop one")
	}
	switch c.Profile {
	case ProfileBurst, ProfileScatter, ProfileIdle:
	default:
		return fmt.Errorf("unknown profile %q: choose %s, %s or %s", c.Profile, ProfileBurst, ProfileScatter, ProfileIdle)
	}
	if !c.Reload.known() {
		return fmt.Errorf("unknown scheme %q of a reload: choose %s, %s or %s", c.Reload, ReloadHandover, ReloadBusy, ReloadBlocking)
	}
	switch c.Stats {
	case StatsOff, StatsOwn, StatsShared:
	default:
		return fmt.Errorf("unknown statistics %q: choose %s, %s or %s", c.Stats, StatsOff, StatsOwn, StatsShared)
	}
	for _, in := range c.Inject {
		if err := in.validate(); err != nil {
			return err
		}
	}
	if err := c.validateCores(); err != nil {
		return err
	}
	return c.validatePorts()
}

func bitLen(n int) (bits int) {
	for ; n > 0; n >>= 1 {
		bits++
	}
	return bits
}

func (c *Config) validateCores() error {
	usable := usableCores()
	if len(c.Cores) == 0 {
		return fmt.Errorf("it is not known which cores there are: name some")
	}
	for i, core := range c.Cores {
		if !slices.Contains(usable, core) {
			return fmt.Errorf("core %d is not there for this process: choose among %s", core, coreList(usable))
		}
		if slices.Contains(c.Cores[:i], core) {
			return fmt.Errorf("core %d is listed twice: one PMD runs on a core", core)
		}
	}
	return nil
}

// coreList returns core numbers with ranges, say 0-3,8.
func coreList(cores []int) string {
	var b strings.Builder
	for i := 0; i < len(cores); {
		j := i
		for j+1 < len(cores) && cores[j+1] == cores[j]+1 {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, cores[i])
		if j > i {
			fmt.Fprintf(&b, "-%d", cores[j])
		}
		i = j + 1
	}
	return b.String()
}

// What the names of ports on network interfaces start with.
const (
	afpacketPrefix = "afpacket:"
	afxdpPrefix    = "afxdp:"
)

func (c *Config) validatePorts() error {
	seen := make(map[string]bool)
	for _, p := range c.Ports {
		if p == "mem" {
			continue
		}
		name, ok := strings.CutPrefix(p, afpacketPrefix)
		if !ok {
			if name, ok = strings.CutPrefix(p, afxdpPrefix); !ok {
				return fmt.Errorf("unknown port %q: choose mem, afpacket:INTERFACE or afxdp:INTERFACE", p)
			}
			var mode string
			if name, mode, ok = strings.Cut(name, "/"); ok && mode != "native" && mode != "generic" {
				return fmt.Errorf("port %q: unknown mode %q: choose native or generic", p, mode)
			}
		}
		if name == "" {
			return fmt.Errorf("port %q names no interface: write %seth0", p, p[:strings.IndexByte(p, ':')+1])
		}
		if seen[name] {
			return fmt.Errorf("interface %s of port %q is listed twice: an interface can be used once", name, p)
		}
		seen[name] = true
	}
	return nil
}
