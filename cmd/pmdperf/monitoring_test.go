package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/internal/promlab"
)

const monitoring = "../../docs/monitoring"

// TestRules has promtool run the unit tests of the recording and alerting rules, and look
// at the configuration that uses them.
func TestRules(t *testing.T) {
	for _, args := range [][]string{
		{"test", "rules", filepath.Join(monitoring, "rules_test.yml")},
		{"check", "config", filepath.Join(monitoring, "prometheus.yml")},
	} {
		if out, err := promlab.Promtool(t, "", args...); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	// Each alert has a test.
	alerts := readMonitoring(t, "alerts.yml")
	tests := readMonitoring(t, "rules_test.yml")
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(alerts, -1) {
		if !regexp.MustCompile(`alertname: ` + m[1] + `\n\s+eval_time: .*\n\s+exp_alerts:`).MatchString(tests) {
			t.Errorf("alert %s has no test in which it fires", m[1])
		}
	}
}

func readMonitoring(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitoring, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// dashboard is as much of Grafana's dashboard as is looked at here.
type dashboard struct {
	Title      string
	UID        string
	Templating struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
	Panels []struct {
		Title   string
		Type    string
		GridPos struct{ X, Y, W, H int }
		Targets []struct {
			Expr   string
			Format string
		}
	}
}

// TestDashboard has a real Prometheus scrape a forwarder with all sorts of trouble, and
// wants data for each query of the dashboard and a value for each recording rule.
func TestDashboard(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal([]byte(readMonitoring(t, "dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	if d.Title == "" || d.UID == "" || len(d.Panels) < 20 {
		t.Fatalf("dashboard %q (%s) has %d panels", d.Title, d.UID, len(d.Panels))
	}
	need.Tool(t, "prometheus")
	// New flows, and so upcalls, come for 10 s.
	cmd := exec.Command("pmdperf", "run", "--duration", "0", "--listen", "127.0.0.1:0", "--rate", "100k",
		"--flows", "1000000", "--profile", "scatter", "--slow-iteration", "1ms",
		"--inject", "compute=2ms@200ms", "--inject", "reload=2ms@300ms")
	url := metricsURL(t, cmd)
	p := promlab.Start(t, promlab.Options{
		Jobs:     map[string][]string{"pmd": {strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/metrics")}},
		Interval: 500 * time.Millisecond,
		Rules:    []string{filepath.Join(monitoring, "rules.yml"), filepath.Join(monitoring, "alerts.yml")},
	})

	// What Grafana puts in for its variables.
	variables := strings.NewReplacer("$__rate_interval", "1m", "$job", "pmd", "$instance", ".*", "$target", ".*", "$cpu", ".+")
	queries := 0
	for _, panel := range d.Panels {
		if panel.Type == "row" {
			continue
		}
		if panel.Title == "" || len(panel.Targets) == 0 || panel.GridPos.W == 0 || panel.GridPos.X+panel.GridPos.W > 24 {
			t.Errorf("panel %q: %d queries at %+v", panel.Title, len(panel.Targets), panel.GridPos)
		}
		for _, target := range panel.Targets {
			expr := variables.Replace(target.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("panel %q: unknown variable in %s", panel.Title, expr)
			}
			queries++
			awaitData(t, p, expr)
		}
	}
	if queries < 30 {
		t.Errorf("the dashboard has only %d queries", queries)
	}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		// label_values(SELECTOR, LABEL)
		query, _ := v.Query.(map[string]any)["query"].(string)
		m := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(query)
		if m == nil {
			t.Fatalf("variable %s: %q", v.Name, query)
		}
		awaitData(t, p, "count by ("+m[2]+") ("+variables.Replace(m[1])+")")
	}
	records := regexp.MustCompile(`- record: (\S+)`).FindAllStringSubmatch(readMonitoring(t, "rules.yml"), -1)
	if len(records) < 7 {
		t.Errorf("only %d recording rules", len(records))
	}
	for _, m := range records {
		awaitData(t, p, m[1])
	}
	if fired, err := p.Query(t.Context(), `ALERTS{alertname=~"PMDTargetDown|PMDVhostQueueNearlyFull"}`); err != nil || len(fired) > 0 {
		t.Errorf("alerts of what is not so: %v, %v", fired, err)
	}
}

// awaitData wants a query to return something that is a number.
func awaitData(t *testing.T, p *promlab.Prometheus, expr string) {
	t.Helper()
	p.Await(t, expr, func(samples []promlab.Sample) bool {
		for _, s := range samples {
			if s.Value == s.Value {
				return true
			}
		}
		return false
	})
}

// TestMonitoringPage carries out what the page says to try, in a copy of the directory with
// free ports and less patience.
func TestMonitoringPage(t *testing.T) {
	if !need.Long() {
		t.Skip("part of the long tests")
	}
	for _, tool := range []string{"prometheus", "promtool", "curl", "sh"} {
		need.Tool(t, tool)
	}
	program, err := exec.LookPath("pmdperf")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	short, err := os.MkdirTemp("", "page") // short enough for sockets
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(short)
	ports := strings.NewReplacer(
		"bin/pmdperf", program, "/tmp/pmdperf", short, "docs/monitoring", dir, "--duration 10m", "--duration 0",
		"127.0.0.1:9200", freeAddress(t), "127.0.0.1:9201", freeAddress(t), "127.0.0.1:9090", freeAddress(t),
		"15s", "1s", "[1m]", "[10s]",
	)
	files, err := filepath.Glob(filepath.Join(monitoring, "*.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(ports.Replace(readMonitoring(t, name))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, page, ok := strings.Cut(readMonitoring(t, "README.md"), "\n## Try it\n")
	if !ok {
		t.Fatal("the page has no section 'Try it'")
	}
	page, _, _ = strings.Cut(page, "\n## ")
	script := "set -e\ntrap 'kill $jobs' EXIT\n"
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(page, -1) {
		script += regexp.MustCompile(`(?m)&$`).ReplaceAllString(block[1], `& jobs="$$jobs $$!"`)
	}
	// A busy machine takes longer to start programs, and less time is enough for scrapes.
	script = regexp.MustCompile(`sleep \d\n`).ReplaceAllString(ports.Replace(script), "sleep 5\n")
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(script, "sleep 40", "sleep 15"))
	cmd.Dir = dir
	cmd.WaitDelay = time.Minute // should one of its jobs live on
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{
		`ovs_pmd_cycles_total\{cpu="\d+",numa="\d+",state="busy"\} \S+`, // of the forwarder
		`ovs_pmd_up\{target="demo"\} 1`,                                 // of the exporter
		`SUCCESS: .* is valid prometheus config`,
		`\{cpu="\d+", instance=".*", job="pmd", numa="\d+", state="busy"\} => \d+`,
		`\{cpu="\d+", instance=".*", job="pmd-exporter", numa="\d+", state="busy", target="demo"\} => \d+`,
	} {
		if !regexp.MustCompile(want).Match(out) {
			t.Errorf("nothing matches %s in\n%s", want, out)
		}
	}
}

// TestMonitoringPassword has the page's web configuration, less its certificate, let in who
// knows the password that the page says, and nobody else.
func TestMonitoringPassword(t *testing.T) {
	users := regexp.MustCompile(`(?m)^basic_auth_users:\n  prometheus: .*\n`).FindString(readMonitoring(t, "README.md"))
	config := filepath.Join(t.TempDir(), "web.yml")
	if err := os.WriteFile(config, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	var f listenFlags
	f.address, f.webConfig = freeAddress(t), config
	fail := func(what string) { t.Error(what) }
	end, err := f.serve(http.NotFoundHandler(), func(string) {}, fail)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	for password, want := range map[string]int{"test": http.StatusNotFound, "Test": http.StatusUnauthorized} {
		req, err := http.NewRequest(http.MethodGet, "http://"+f.address+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("prometheus", password)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("password %s: status %d, want %d", password, resp.StatusCode, want)
		}
	}
}

// freeAddress returns an address that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
