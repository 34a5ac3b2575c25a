// Package ovslab runs a real Open vSwitch for a test: ovsdb-server and
// ovs-vswitchd in a directory of their own, with a userspace datapath of dummy
// ports and poll-mode threads. It needs no root and touches nothing outside its
// directory.
package ovslab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/daemon"
	"github.com/pmdperf/pmdperf/internal/need"
)

// patience is how long to wait for a program to come up or to end. It is only
// ever used up by something broken.
const patience = 60 * time.Second

// Options is the shape of the switch. The zero value has one poll-mode thread
// that serves two ports of one queue.
type Options struct {
	// PMDs is the number of poll-mode threads, on cores 0, 1, ... that need not
	// exist.
	PMDs int

	// Ports is the number of ports p0, p1, ... of the bridge br0, and Queues the
	// number of receive queues of each.
	Ports, Queues int

	// Spin has the threads poll without ever sleeping, as they do by default in
	// Open vSwitch. It takes a processor for each of them, and other tests suffer,
	// so that here they sleep for up to half a millisecond unless told to spin.
	Spin bool
}

// Lab is a running Open vSwitch.
type Lab struct {
	// RunDir holds the sockets, pidfiles, logs and the database.
	RunDir string

	// Name is what the switch is called in RunDir: ovs-vswitchd.
	Name string

	stops []func()
	once  sync.Once
}

// Start starts an Open vSwitch with performance metrics on, which is stopped
// when the test ends. It skips the test if a program is missing.
func Start(t testing.TB, o Options) *Lab {
	t.Helper()
	tool := map[string]string{}
	for _, name := range []string{"ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-appctl"} {
		tool[name] = need.Tool(t, name)
	}
	const schema = "/usr/share/openvswitch/vswitch.ovsschema"
	if _, err := os.Stat(schema); err != nil {
		need.Skip(t, "Open vSwitch's database schema is missing: "+err.Error())
	}
	o.PMDs, o.Ports, o.Queues = max(o.PMDs, 1), max(o.Ports, 2), max(o.Queues, 1)

	// t.TempDir is too long for the path of a socket when test names are.
	dir, err := os.MkdirTemp("", "ovslab")
	if err != nil {
		t.Fatal(err)
	}
	l := &Lab{RunDir: dir, Name: "ovs-vswitchd"}
	l.stops = append(l.stops, func() { os.RemoveAll(dir) })
	t.Cleanup(l.Stop)

	remote := "unix:" + filepath.Join(dir, "db.sock")
	l.run(t, tool["ovsdb-tool"], "create", filepath.Join(dir, "conf.db"), schema)
	l.start(t, tool["ovsdb-server"], "--remote=p"+remote, "--pidfile", "-vconsole:off",
		"--log-file="+filepath.Join(dir, "ovsdb-server.log"), filepath.Join(dir, "conf.db"))
	l.await(t, "ovsdb-server", tool["ovs-appctl"], "-T5", "-t", "ovsdb-server", "version")

	cores := make([]string, o.PMDs)
	for i := range cores {
		cores[i] = "0" // its NUMA node
	}
	l.start(t, tool["ovs-vswitchd"], "--enable-dummy=override", "--disable-system",
		"--dummy-numa="+strings.Join(cores, ","), "--pidfile", "-vconsole:off",
		"--log-file="+filepath.Join(dir, "ovs-vswitchd.log"), remote)
	l.await(t, "ovs-vswitchd", tool["ovs-appctl"], "-T5", "-t", l.Name, "version")

	vsctl := []string{"--db=" + remote, "--timeout=" + strconv.Itoa(int(patience/time.Second)),
		"set", "Open_vSwitch", ".", "other_config:pmd-perf-metrics=true",
		fmt.Sprintf("other_config:pmd-cpu-mask=%x", 1<<o.PMDs-1)}
	if !o.Spin {
		// The first name is that of 3.1, the second that of later versions.
		vsctl = append(vsctl, "other_config:pmd-maxsleep=500", "other_config:pmd-sleep-max=500")
	}
	vsctl = append(vsctl, "--", "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy")
	for i := range o.Ports {
		port := fmt.Sprintf("p%d", i)
		vsctl = append(vsctl, "--", "add-port", "br0", port, "--", "set", "interface", port,
			"type=dummy-pmd", fmt.Sprintf("options:n_rxq=%d", o.Queues))
	}
	l.run(t, tool["ovs-vsctl"], vsctl...)
	return l
}

// Appctl asks the switch with ovs-appctl and returns what that prints.
func (l *Lab) Appctl(t testing.TB, args ...string) string {
	t.Helper()
	return l.run(t, need.Tool(t, "ovs-appctl"), append([]string{"-T60", "-t", l.Name}, args...)...)
}

// Stop ends the programs and removes the directory. Further calls do nothing.
func (l *Lab) Stop() {
	l.once.Do(func() {
		for i := len(l.stops) - 1; i >= 0; i-- {
			l.stops[i]()
		}
	})
}

func (l *Lab) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Env = os.Environ()
	for _, v := range []string{"OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR"} {
		cmd.Env = append(cmd.Env, v+"="+l.RunDir)
	}
	return cmd
}

func (l *Lab) run(t testing.TB, path string, args ...string) string {
	t.Helper()
	out, err := l.command(path, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s%s", path, args, err, out, l.logs())
	}
	return string(out)
}

// start starts a program that runs until Stop.
func (l *Lab) start(t testing.TB, path string, args ...string) {
	t.Helper()
	cmd := l.command(path, args...)
	cmd.Stderr = os.Stderr
	d := daemon.Start(t, cmd)
	l.stops = append(l.stops, func() { d.Stop(patience) })
}

// await runs a command until it succeeds.
func (l *Lab) await(t testing.TB, what, path string, args ...string) {
	t.Helper()
	var out []byte
	err := errors.New("not tried")
	for end := time.Now().Add(patience); err != nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s doesn't come up: %v\n%s%s", what, err, out, l.logs())
		}
		out, err = l.command(path, args...).CombinedOutput()
	}
}

// logs returns the ends of the log files.
func (l *Lab) logs() string {
	var b strings.Builder
	files, _ := filepath.Glob(filepath.Join(l.RunDir, "*.log"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		text = text[max(0, len(text)-4096):]
		fmt.Fprintf(&b, "--- %s\n%s", filepath.Base(file), text)
	}
	return b.String()
}
