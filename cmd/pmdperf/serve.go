package main

import (
	"context"
	"fmt"
	"os"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/export/appctl/pmd"
	"github.com/pmdperf/pmdperf/internal/dataplane"
)

// defaultName is the name of the control server where only its directory is given.
const defaultName = "pmdperf"

// serveFlags say whether and where the verb run answers ovs-appctl.
type serveFlags struct {
	runDir, name, group string
}

// wanted reports whether a control server was asked for.
func (f *serveFlags) wanted() bool { return f.runDir != "" || f.name != "" }

// check returns what is wrong with the flags on any machine.
func (f *serveFlags) check() error {
	if f.group != "" && !f.wanted() {
		return usagef("--group is for the control socket and there is none: add --rundir or --name")
	}
	return nil
}

// serve answers ovs-appctl with the recorders of the forwarder that cfg describes,
// until the function that it returns is called. The command exit calls stop.
func (f *serveFlags) serve(cfg dataplane.Config, watch *supervision, stop context.CancelFunc) (end func() error, err error) {
	if !f.wanted() {
		return func() error { return nil }, nil
	}
	name := f.name
	if name == "" {
		name = defaultName
	}
	if f.runDir != "" {
		if err := os.MkdirAll(f.runDir, 0o755); err != nil {
			return nil, fmt.Errorf("--rundir: %w", err)
		}
	}
	server, err := appctl.Listen(appctl.Config{
		Name:    name,
		RunDir:  f.runDir,
		Version: moduleVersion(buildInfo()),
		Group:   f.group,
		Exit:    stop,
	}, pmd.Commands(cfg.Registry, pmd.Options{MaxSleep: cfg.MaxSleep, Events: watch.events, Reports: watch.Counts, Probes: watch.probes})...)
	if err != nil {
		return nil, err
	}
	return server.Close, nil
}
