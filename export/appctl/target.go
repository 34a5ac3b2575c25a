package appctl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// RunDir returns the directory in which servers are looked up by name:
// $OVS_RUNDIR, or else /var/run/openvswitch.
func RunDir() string {
	if dir := os.Getenv("OVS_RUNDIR"); dir != "" {
		return dir
	}
	return "/var/run/openvswitch"
}

// Resolve returns the absolute path of the socket that ovs-appctl's option
// -t TARGET means. A target that begins with a slash is that path. Any other is
// the name of a server, looked up by its pidfile in the run directory; a slash in
// it leads to a directory below. An empty runDir stands for that of the function
// RunDir. If no live process holds the pidfile's lock the error is ESRCH.
func Resolve(runDir, target string) (string, error) {
	if runDir == "" {
		runDir = RunDir()
	}
	runDir, err := filepath.Abs(runDir)
	if err != nil {
		return "", fmt.Errorf("appctl: %w", err)
	}
	path, name, err := splitTarget(runDir, target)
	if err != nil {
		return "", err
	}
	if name != "" {
		pidfile := filepath.Join(path, name+".pid")
		pid, err := readPidfile(pidfile)
		if err != nil {
			return "", fmt.Errorf("appctl: find %s: %w", target, err)
		}
		path = socketPath(path, name, pid)
	}
	if err := checkSocketPath(path); err != nil {
		return "", fmt.Errorf("appctl: %w", err)
	}
	return path, nil
}

// splitTarget returns the socket that a target is the path of, or the run
// directory and the name to look up there.
func splitTarget(runDir, target string) (path, name string, err error) {
	switch {
	case target == "":
		return "", "", errors.New("appctl: no target")
	case strings.IndexByte(target, 0) >= 0:
		return "", "", fmt.Errorf("appctl: target %q has a NUL byte", target)
	case target[0] == '/':
		return target, "", nil
	}
	dir, name := filepath.Split(target)
	if name == "" {
		return "", "", fmt.Errorf("appctl: target %q ends with a slash", target)
	}
	return filepath.Join(runDir, dir), name, nil
}
