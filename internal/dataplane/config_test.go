package dataplane

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("the zero configuration is invalid: %v", err)
	}
	core := usableCores()[0]
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Ports: []string{"dpdk0"}}, "choose mem, afpacket:INTERFACE or afxdp:INTERFACE"},
		{Config{Ports: []string{"afxdp:eth0/fast"}}, "choose native or generic"},
		{Config{Ports: []string{"afxdp:/generic"}}, "write afxdp:eth0"},
		{Config{Ports: []string{"afpacket:a", "afxdp:a/generic"}}, "listed twice"},
		{Config{Ports: []string{"afpacket:"}}, "write afpacket:eth0"},
		{Config{Ports: []string{"afpacket:a", "mem", "afpacket:a"}}, "listed twice"},
		{Config{Reload: "some"}, "choose handover, busy or blocking"},
		{Config{Stats: "some"}, "choose off, own or shared"},
		{Config{Normal: true, Drop: true}, "contradict each other"},
		{Config{Sinks: -1}, "sinks -1: choose 0 to 63"},
		{Config{Sinks: 63, Ports: []string{"mem", "mem"}}, "use at most 64"},
		{Config{Queues: -1}, "queues -1: choose 1 to 64"},
		{Config{Queues: 64, Ports: make([]string, 64)}, "use fewer"},
		{Config{Flows: MaxFlows + 1}, "choose 1 to 16777216"},
		{Config{Subtables: 61}, "choose 1 to 60"},
		{Config{PacketSize: 59}, "choose 60 to 1518"},
		{Config{PacketSize: 60, Tunnel: true}, "choose 110 to 1518"},
		{Config{RingSize: 1000}, "try 1024"},
		{Config{RingSize: 16}, "choose 32 to 1048576"},
		{Config{FlowLimit: -1}, "flow limit"},
		{Config{EMCInverse: -2}, "EMC"},
		{Config{Rate: -1}, "choose 0 (unlimited)"},
		{Config{Rate: math.NaN()}, "choose 0 (unlimited)"},
		{Config{Rate: math.Inf(1)}, "choose 0 (unlimited)"},
		{Config{Duration: -1}, "use 0 for no end"},
		{Config{MaxSleep: time.Second}, "choose 0 (never) to 10ms"},
		{Config{FlushInterval: time.Minute}, "choose 0 (every pass) to 1s"},
		{Config{FlushInterval: 1, SendAtOnce: true}, "contradict"},
		{Config{Profile: "random"}, "choose burst, scatter or idle"},
		{Config{Inject: []Injection{{InjectGC, 2, 1}}}, "longer than the duration"},
		{Config{Cores: []int{100_000}}, "core 100000 is not there"},
		{Config{Cores: []int{-1}}, "core -1 is not there"},
		{Config{Cores: []int{core, core}}, "listed twice"},
	} {
		err := c.cfg.Validate()
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: error %v, want one line with %q", c.cfg, err, c.want)
		}
	}
}

func TestCoreList(t *testing.T) {
	for want, cores := range map[string][]int{"": nil, "3": {3}, "0-1": {0, 1}, "0-2,5,7-8": {0, 1, 2, 5, 7, 8}} {
		if got := coreList(cores); got != want {
			t.Errorf("%v: %q, want %q", cores, got, want)
		}
	}
}
