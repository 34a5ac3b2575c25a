package main

import (
	"os"
	"slices"
	"strings"
	"syscall"
)

const preemptionSetting = "asyncpreemptoff="

// execUninterrupted has this process begin anew, with the same command line, so that
// the Go runtime doesn't interrupt busy threads: it looks at that setting only once,
// before main. It returns where there is nothing to do: when the environment has the
// setting, with whatever value (so it can't begin anew for ever), or when args is not
// the process's own command line but that of a test. It also returns where the system
// doesn't let it; the forwarder then warns of what that means.
func execUninterrupted(args []string) {
	settings := os.Getenv("GODEBUG")
	if strings.Contains(settings, preemptionSetting) || !slices.Equal(args, os.Args[1:]) {
		return
	}
	path, err := os.Executable()
	if err != nil {
		return
	}
	if settings != "" {
		settings += ","
	}
	// Of two values of the same name Go and C take the first or the last: leave one.
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "GODEBUG=") })
	_ = syscall.Exec(path, os.Args, append(env, "GODEBUG="+settings+preemptionSetting+"1"))
}
