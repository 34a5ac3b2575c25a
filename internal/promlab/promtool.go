package promlab

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/pmdperf/pmdperf/internal/need"
)

// Promtool runs promtool and returns what it prints; err says that it complains. It
// skips the test if promtool is missing.
func Promtool(t testing.TB, stdin string, args ...string) (output string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), need.Tool(t, "promtool"), args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// CheckMetrics fails the test if 'promtool check metrics' says anything about the
// text of a scrape.
func CheckMetrics(t testing.TB, text string) {
	t.Helper()
	if out, err := Promtool(t, text, "check", "metrics"); err != nil || out != "" {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}
