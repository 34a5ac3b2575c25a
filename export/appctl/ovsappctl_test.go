package appctl

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmdperf/pmdperf/internal/need"
)

// These tests have Open vSwitch's own client ask the server.

// ovsAppctl runs ovs-appctl and returns its output and its status as a shell
// sees it.
func ovsAppctl(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := exec.CommandContext(soon(t), "sh", append([]string{"-c", `"$@"; exit $?`, "sh", need.Tool(t, "ovs-appctl")}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() < 0 {
		t.Fatalf("ovs-appctl %q: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestOvsAppctl(t *testing.T) {
	need.Tool(t, "ovs-appctl")
	dir := runDir(t)
	t.Setenv("OVS_RUNDIR", dir)
	s := serve(t, Config{RunDir: dir, Version: "1.2", Exit: func() {}})
	var bigText strings.Builder
	if err := big.Text(soon(t), &bigText, []string{"10000000"}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args           []string
		stdout, stderr string
		status         int
	}{
		{[]string{"version"}, "demo (pmdperf) 1.2\n", "", 0},
		{[]string{"list-commands"}, s.commands.list(), "", 0},
		{[]string{"exit"}, "", "", 0},
		{[]string{"set-options", "--format", "json"}, "", "unexpected result type in JSON rpc reply: object", 1},
		{[]string{"set-options", "--format", "text"}, "", "", 0},
		{[]string{"echo"}, "", "", 0},
		{[]string{"echo", "one", "", "two words"}, "one||two words\n", "", 0},
		{[]string{"echo", "grüße 😀 <&>"}, "grüße 😀 <&>\n", "", 0},
		{[]string{"echo", "latin1 \xfc \xff"}, "latin1 \xfc \xff\n", "", 0},
		{[]string{"echo", "\x01\t\"\\\n"}, "\x01\t\"\\\n", "", 0},
		{[]string{"big", "10000000"}, bigText.String(), "", 0},
		{[]string{"both", "x"}, "text\n", "", 0},
		{[]string{"fail", "it is \xff broken"}, "", "it is \xff broken\n", 2},
		{[]string{"nope"}, "", "\"nope\" is not a valid command (use \"list-commands\" to see a list of valid commands)\n", 2},
		{[]string{"n\xff"}, "", "\"n\xff\" is not a valid command (use \"list-commands\" to see a list of valid commands)\n", 2},
		{[]string{"version", "x"}, "", "\"version\" command takes at most 0 arguments\n", 2},
		{[]string{"fail"}, "", "\"fail\" command requires at least 1 arguments\n", 2},
		{[]string{"fail", "a", "b"}, "", "\"fail\" command takes at most 1 arguments\n", 2},
		{[]string{"panic"}, "", "\"panic\" command failed: on purpose\n", 2},
		{[]string{"-T", "1", "block"}, "", "", 142},
	} {
		for _, target := range []string{"demo", s.SocketPath()} {
			if test.args[0] == "-T" && target == "demo" {
				continue // takes its second
			}
			stdout, stderr, status := ovsAppctl(t, append([]string{"-t", target}, test.args...)...)
			if stdout != test.stdout || status != test.status || !strings.Contains(stderr, test.stderr) || test.status == 0 && stderr != "" {
				t.Errorf("-t %s %q: got status %d, %d bytes %.100q and %q\nwant status %d, %d bytes %.100q and %q", target, test.args,
					status, len(stdout), stdout, stderr, test.status, len(test.stdout), test.stdout, test.stderr)
			}
		}
	}
}

// TestOvsAppctlRefused has requests that are closed silently, and servers that
// are not there.
func TestOvsAppctlRefused(t *testing.T) {
	need.Tool(t, "ovs-appctl")
	dir := runDir(t)
	t.Setenv("OVS_RUNDIR", dir)
	s := serve(t, Config{RunDir: dir, MaxRequest: 1000})
	// One byte over the limit, so that all of it is read.
	const frame = `{"id":0,"method":"echo","params":[""]}`
	_, stderr, status := ovsAppctl(t, "-t", "demo", "echo", strings.Repeat("x", 1001-len(frame)))
	if status != 1 || !strings.Contains(stderr, "transaction error (") {
		t.Errorf("too long: status %d, %q", status, stderr)
	}
	if _, stderr, status := ovsAppctl(t, "-t", "other", "version"); status != 1 || !strings.Contains(stderr, "cannot read pidfile") {
		t.Errorf("no such name: status %d, %q", status, stderr)
	}
	if _, stderr, status := ovsAppctl(t, "-t", dir+"/other.ctl", "version"); status != 1 || !strings.Contains(stderr, "cannot connect") {
		t.Errorf("no such socket: status %d, %q", status, stderr)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, stderr, status := ovsAppctl(t, "-t", "demo", "version"); status != 1 || !strings.Contains(stderr, "cannot read pidfile") {
		t.Errorf("closed: status %d, %q", status, stderr)
	}
}

// victim starts a process that is a server called "victim".
func victim(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveVariable+"="+dir)
	stdin, err := cmd.StdinPipe() // closed when this process dies
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	line := make([]byte, 4096)
	n, _ := stdout.Read(line)
	if string(line[:n]) != "ready\n" {
		t.Fatalf("the server says %q", line[:n])
	}
	return cmd
}

// TestKill kills a server again and again; what it leaves behind must stand in
// nobody's way.
func TestKill(t *testing.T) {
	dir := runDir(t)
	t.Setenv("OVS_RUNDIR", dir)
	for range 3 {
		cmd := victim(t, dir)
		want := fmt.Sprintf("%s/victim.%d.ctl", dir, cmd.Process.Pid)
		if path, err := Resolve("", "victim"); err != nil || path != want {
			t.Fatalf("found at %q, %v, want %q", path, err, want)
		}
		if files, err := filepath.Glob(dir + "/*"); len(files) != 2 {
			t.Errorf("files: %q, %v", files, err)
		}
		c := dial(t, "victim")
		if got, err := c.Call(soon(t), "echo", "x"); got != "x\n" {
			t.Errorf("got %q, %v", got, err)
		}

		// While it lives the name is refused, and looking leaves it alone.
		_, err := Listen(Config{Name: "victim"})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("in use by process %d, which is running", cmd.Process.Pid)) {
			t.Fatalf("a second server of the name: %v", err)
		}
		if path, err := Resolve("", "victim"); err != nil || path != want {
			t.Fatalf("then found at %q, %v, want %q", path, err, want)
		}

		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		if files, err := filepath.Glob(dir + "/*"); len(files) != 2 {
			t.Errorf("files of the dead: %q, %v", files, err)
		}
		if _, err := Dial(soon(t), "victim"); ExitCode(err) != 1 {
			t.Errorf("the dead one: %v", err)
		}
	}
	s := serve(t, Config{RunDir: dir, Name: "victim"})
	if files, err := filepath.Glob(dir + "/*"); len(files) != 2 || files[0] != s.SocketPath() {
		t.Errorf("files: %q, %v", files, err)
	}
}

// TestKillOvsAppctl is the restart after kill -9 as ovs-appctl sees it.
func TestKillOvsAppctl(t *testing.T) {
	need.Tool(t, "ovs-appctl")
	dir := runDir(t)
	t.Setenv("OVS_RUNDIR", dir)
	cmd := victim(t, dir)
	if stdout, stderr, status := ovsAppctl(t, "-t", "victim", "version"); status != 0 {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if stdout, stderr, status := ovsAppctl(t, "-t", "victim", "version"); status != 1 || !strings.Contains(stderr, "cannot read pidfile") {
		t.Errorf("dead: status %d, %q, %q", status, stdout, stderr)
	}
	victim(t, dir)
	if stdout, stderr, status := ovsAppctl(t, "-t", "victim", "version"); status != 0 {
		t.Errorf("restarted: status %d, %q, %q", status, stdout, stderr)
	}
}

func TestDeadSockets(t *testing.T) {
	dir := runDir(t)
	dead := func(name string) {
		l, err := listenAt(filepath.Join(dir, name), access{0o700, -1})
		if err != nil {
			t.Fatal(err)
		}
		l.Close() // a listener made from a file doesn't unlink
	}
	for _, name := range []string{"demo.1.ctl", "demo.4194305.ctl", "demo.x.ctl", "demo.5.6.ctl", "demo.007.ctl", "other.1.ctl", "demo.ctl"} {
		dead(name)
	}
	live, err := listenAt(filepath.Join(dir, "demo.2.ctl"), access{0o700, -1})
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	if err := os.WriteFile(filepath.Join(dir, "demo.3.ctl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := removeDeadSockets(dir, "demo"); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if got, want := strings.Join(left, " "), "demo.007.ctl demo.2.ctl demo.3.ctl demo.5.6.ctl demo.ctl demo.x.ctl other.1.ctl"; got != want {
		t.Errorf("left: %s\nwant: %s", got, want)
	}

	// A live one at our own path, say of another container with the same pid, is
	// not pushed aside.
	own := socketPath(dir, "demo", os.Getpid())
	taken, err := listenAt(own, access{0o700, -1})
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := Listen(Config{RunDir: dir, Name: "demo"}); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("a live socket at our path: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "demo.pid")); !os.IsNotExist(err) {
		t.Errorf("the pidfile: %v", err)
	}
}
