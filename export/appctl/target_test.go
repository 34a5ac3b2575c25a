package appctl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRunDir(t *testing.T) {
	t.Setenv("OVS_RUNDIR", "")
	if got := RunDir(); got != "/var/run/openvswitch" {
		t.Errorf("default: %s", got)
	}
	t.Setenv("OVS_RUNDIR", "/x")
	if got := RunDir(); got != "/x" {
		t.Errorf("set: %s", got)
	}
}

func TestResolve(t *testing.T) {
	dir := runDir(t)
	t.Setenv("OVS_RUNDIR", dir)
	if err := os.Mkdir(dir+"/below", 0o755); err != nil {
		t.Fatal(err)
	}
	serve(t, Config{RunDir: dir})
	serve(t, Config{RunDir: dir + "/below", Name: "deep"})
	if err := os.WriteFile(dir+"/stale.pid", []byte("1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		target, want string
		err          error
		text         string
	}{
		{"/a/b.ctl", "/a/b.ctl", nil, ""},
		{"/" + strings.Repeat("x", 106), "/" + strings.Repeat("x", 106), nil, ""},
		{"demo", fmt.Sprintf("%s/demo.%d.ctl", dir, os.Getpid()), nil, ""},
		{"below/deep", fmt.Sprintf("%s/below/deep.%d.ctl", dir, os.Getpid()), nil, ""},
		{"/" + strings.Repeat("x", 107), "", nil, "at most 107"},
		{"missing", "", os.ErrNotExist, "missing.pid"},
		{"stale", "", unix.ESRCH, "nobody holds its lock"},
		{"", "", nil, "no target"},
		{"below/", "", nil, "slash"},
		{"a\x00", "", nil, "NUL"},
	} {
		got, err := Resolve("", test.target)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q: got %q, %v, want %q", test.target, got, err, test.want)
		}
		if test.err != nil && !errors.Is(err, test.err) || err != nil && !strings.Contains(err.Error(), test.text) {
			t.Errorf("%q: got error %v, want %v, %q", test.target, err, test.err, test.text)
		}
	}
}

func TestResolveRelative(t *testing.T) {
	dir := runDir(t)
	serve(t, Config{RunDir: dir})
	t.Chdir(filepath.Dir(dir))
	t.Setenv("OVS_RUNDIR", "/nowhere")
	got, err := Resolve(filepath.Base(dir), "demo")
	if want := fmt.Sprintf("%s/demo.%d.ctl", dir, os.Getpid()); err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func FuzzTarget(f *testing.F) {
	for _, s := range []string{"/a/b.ctl", "ovs-vswitchd", "below/name", "../up", "below/", "", ".", "//x", "a\x00b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, target string) {
		path, name, err := splitTarget("/run/dir", target)
		switch {
		case err != nil:
			if path != "" || name != "" {
				t.Fatalf("%q: got %q and %q with %v", target, path, name, err)
			}
		case target[0] == '/':
			if path != target || name != "" {
				t.Fatalf("%q: got %q and %q", target, path, name)
			}
		default:
			if name == "" || strings.Contains(name, "/") || !filepath.IsAbs(path) {
				t.Fatalf("%q: got %q and %q", target, path, name)
			}
			if got, want := filepath.Join(path, name+".pid"), filepath.Clean("/run/dir/"+target+".pid"); got != want {
				t.Fatalf("%q: the pidfile is %q, want %q", target, got, want)
			}
		}
		// No such server can be there.
		if got, err := Resolve("/nonexistent", target); err == nil && got != target {
			t.Fatalf("%q is found at %q", target, got)
		}
	})
}
