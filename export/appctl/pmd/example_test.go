package pmd_test

import (
	"fmt"
	"os"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/export/appctl/pmd"
	"github.com/pmdperf/pmdperf/perf"
)

func ExampleCommands() {
	dir, err := os.MkdirTemp("", "pmd")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	var registry perf.Registry // where the program's loops have their recorders
	server, err := appctl.Listen(appctl.Config{RunDir: dir, Name: "demo"}, pmd.Commands(&registry, pmd.Options{})...)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	fmt.Println("ovs-appctl -t demo dpif-netdev/pmd-perf-show")
	// Output: ovs-appctl -t demo dpif-netdev/pmd-perf-show
}
