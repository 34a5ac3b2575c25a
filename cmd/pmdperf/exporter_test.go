package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/internal/ovslab"
	"github.com/pmdperf/pmdperf/internal/promlab"
)

// startExporter starts the verb exporter for targets and returns the URL of its metrics.
func startExporter(t *testing.T, runDir string, args ...string) (cmd *exec.Cmd, url string) {
	t.Helper()
	cmd = exec.Command("pmdperf", append([]string{"exporter", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(cmd.Environ(), "OVS_RUNDIR="+runDir)
	return cmd, metricsURL(t, cmd)
}

// metricsURL starts a program that serves metrics, and returns where.
func metricsURL(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	stderr := start(t, cmd)
	for {
		line, err := stderr.ReadString('\n')
		if err != nil {
			t.Fatalf("the program does not say where its metrics are: %v", err)
		}
		if _, url, ok := strings.Cut(line, "metrics are at "); ok {
			go io.Copy(io.Discard, stderr)
			return strings.TrimSpace(url)
		}
	}
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	return string(body)
}

// metric returns the value of the first sample whose name and labels the expression
// matches.
func metric(t *testing.T, text, expr string) float64 {
	t.Helper()
	m := regexp.MustCompile(`(?m)^` + expr + ` (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no sample matches %s", expr)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestExporter asks a real Open vSwitch by path and by name, and one that isn't there. An
// interrupt ends the exporter, also while a target hangs.
func TestExporter(t *testing.T) {
	lab := ovslab.Start(t, ovslab.Options{})
	socket, err := appctl.Resolve(lab.RunDir, lab.Name)
	if err != nil {
		t.Fatal(err)
	}
	cmd, url := startExporter(t, lab.RunDir, "-t", socket, "-t", lab.Name, "-t", "nobody", "--compat-names")
	text := fetch(t, url)
	for target, up := range map[string]float64{socket: 1, lab.Name: 1, "nobody": 0} {
		if got := metric(t, text, fmt.Sprintf(`ovs_pmd_up\{target=%q\}`, target)); got != up {
			t.Errorf("target %s: up is %v, want %v", target, got, up)
		}
	}
	for _, name := range []string{`ovs_pmd_iterations_total\{.*state="idle".*\}`, `ovs_pmd_iteration_duration_seconds_count\{.*\}`, `ovs_pmd_total_iterations\{.*\}`} {
		if v := metric(t, text, name); v <= 0 {
			t.Errorf("%s is %v", name, v)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("an interrupted exporter ended with %v, want status 0", err)
	}

	cmd, url = startExporter(t, lab.RunDir, "--timeout", "200ms")
	promlab.CheckMetrics(t, fetch(t, url))
	var pid int
	if _, err := fmt.Sscanf(filepath.Base(socket), "ovs-vswitchd.%d.ctl", &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGCONT)
	text = fetch(t, url)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("a terminated exporter ended with %v, want status 0", err)
		}
	case <-time.After(time.Minute):
		t.Error("a target that hangs keeps the exporter from ending")
	}
	if up := metric(t, text, `ovs_pmd_up\{target="ovs-vswitchd"\}`); up != 0 {
		t.Error("a stopped target is up")
	}
}

// TestScrapeTimeout has a scraper that doesn't wait as long as the exporter does get its
// answer in time.
func TestScrapeTimeout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.ctl")
	hangs, err := net.Listen("unix", path) // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	_, url := startExporter(t, t.TempDir(), "-t", path, "--timeout", "10m")
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(scrapeTimeout, "0.5")
	client := http.Client{Timeout: time.Minute}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if up := metric(t, string(text), `ovs_pmd_up\{.*\}`); up != 0 {
		t.Error("a target that hangs is up")
	}
}
