// Package need lets a test say what it needs of the machine. On a developer's
// machine a test whose needs are not met is skipped with the name of what is
// missing; in CI (environment CI=true) it fails instead, so that a skip can't
// hide there.
package need

import (
	"os"
	"os/exec"
	"testing"
)

// Tool returns the path of a program, looked up in PATH and in the sbin
// directories that an ordinary user's PATH lacks.
func Tool(t testing.TB, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/sbin/", "/sbin/", "/usr/local/sbin/"} {
		if path, err := exec.LookPath(dir + name); err == nil {
			return path
		}
	}
	Skip(t, "program "+name+" is not installed ('make test' as root on Debian installs it)")
	return ""
}

// Root wants the test to run as root.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Skip(t, "needs root")
	}
}

// Long wants the long versions of tests, which 'make check' asks for with
// PMDPERF_LONG=1. It only reports; callers choose their sizes by it.
func Long() bool { return os.Getenv("PMDPERF_LONG") == "1" }

// Skip skips the test because of why, or fails it in CI.
func Skip(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("missing in CI: %s", why)
	}
	t.Skipf("skipped: %s", why)
}
