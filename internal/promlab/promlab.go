// Package promlab runs the real Prometheus for a test: a server in a directory of
// its own, and promtool. It needs no root and touches nothing outside that
// directory.
package promlab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/daemon"
	"github.com/pmdperf/pmdperf/internal/need"
)

// patience is how long to wait for the server to come up, to end or to answer. It is
// only ever used up by something broken.
const patience = 60 * time.Second

// Options is what a server scrapes and how. The zero value scrapes nothing.
type Options struct {
	// Jobs are the addresses (host:port) to scrape, by the name of their job.
	Jobs map[string][]string

	// Interval is the time between two scrapes and two evaluations of rules. The
	// default is 200 ms.
	Interval time.Duration

	// Rules are the paths of rule files.
	Rules []string

	// NativeHistograms has the server ask for and keep native histograms, and
	// exemplars.
	NativeHistograms bool
}

// Prometheus is a running server.
type Prometheus struct {
	URL string // "http://127.0.0.1:PORT"
}

// Start starts a server, which is stopped when the test ends. It skips the test if
// Prometheus is missing.
func Start(t testing.TB, o Options) *Prometheus {
	t.Helper()
	binary := need.Tool(t, "prometheus")
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, configOf(t, o), 0o644); err != nil {
		t.Fatal(err)
	}
	// The port is free when it is picked; should somebody take it before the server
	// does, another is picked.
	const attempts = 5
	for i := range attempts {
		if p := start(t, binary, config, filepath.Join(dir, "data"+strconv.Itoa(i)), o); p != nil {
			return p
		}
	}
	t.Fatalf("prometheus found no free port in %d attempts", attempts)
	return nil
}

// configOf returns the configuration, as JSON, which YAML contains.
func configOf(t testing.TB, o Options) []byte {
	t.Helper()
	type object map[string]any
	if o.Interval == 0 {
		o.Interval = 200 * time.Millisecond
	}
	interval := fmt.Sprintf("%dms", o.Interval.Milliseconds())
	jobs := []object{}
	for name, targets := range o.Jobs {
		jobs = append(jobs, object{"job_name": name, "static_configs": []object{{"targets": targets}}})
	}
	rules := []string{}
	for _, path := range o.Rules {
		abs, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, abs)
	}
	text, err := json.Marshal(object{
		"global": object{
			"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval,
		},
		"rule_files":     rules,
		"scrape_configs": jobs,
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// start returns nil if somebody else has the port.
func start(t testing.TB, binary, config, data string, o Options) *Prometheus {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()

	args := []string{"--config.file=" + config, "--web.listen-address=" + address,
		"--storage.tsdb.path=" + data, "--log.level=warn"}
	if o.NativeHistograms {
		args = append(args, "--enable-feature=native-histograms,exemplar-storage")
	}
	log, err := os.Create(data + ".log")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	server := daemon.Start(t, cmd)
	t.Cleanup(func() { server.Stop(patience) })

	p := &Prometheus{URL: "http://" + address}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		body, err := p.get(t.Context(), "/-/ready", nil)
		if err == nil {
			return p
		}
		select {
		case <-server.Done:
			text, _ := os.ReadFile(log.Name())
			if strings.Contains(string(text), "address already in use") {
				return nil
			}
			t.Fatalf("prometheus ended:\n%s", text)
		default:
		}
		if time.Now().After(end) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("prometheus doesn't come up: %v\n%s%s", err, body, text)
		}
	}
}

// get returns the body of an answer; a status other than 200 is an error.
func (p *Prometheus) get(ctx context.Context, path string, args url.Values) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+path+"?"+args.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return body, err
}

// Sample is one series of a result.
type Sample struct {
	Labels map[string]string
	Value  float64 // NaN for a native histogram
	Points []Point // of a range of time
	// Native reports that the value is a native histogram.
	Native bool
}

// Point is a value at a time.
type Point struct {
	Time  time.Time
	Value float64
}

// Query returns the result of an expression now.
func (p *Prometheus) Query(ctx context.Context, expr string) ([]Sample, error) {
	return p.query(ctx, "/api/v1/query", url.Values{"query": {expr}})
}

// QueryAt returns the result of an expression at a time.
func (p *Prometheus) QueryAt(ctx context.Context, expr string, at time.Time) ([]Sample, error) {
	return p.query(ctx, "/api/v1/query", url.Values{"query": {expr}, "time": {seconds(at)}})
}

// QueryRange returns the results of an expression from a time to another in steps.
func (p *Prometheus) QueryRange(ctx context.Context, expr string, from, to time.Time, step time.Duration) ([]Sample, error) {
	return p.query(ctx, "/api/v1/query_range", url.Values{"query": {expr},
		"start": {seconds(from)}, "end": {seconds(to)}, "step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)}})
}

// Await repeats a query until ok says that its result is right, and returns that. It
// fails the test with the last result if it never is.
func (p *Prometheus) Await(t testing.TB, expr string, ok func([]Sample) bool) []Sample {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		got, err := p.Query(t.Context(), expr)
		if err != nil {
			t.Fatalf("query %s: %v", expr, err)
		}
		if ok(got) {
			return got
		}
		if time.Now().After(end) {
			t.Fatalf("query %s: still %v", expr, got)
		}
	}
}

func seconds(t time.Time) string {
	return strconv.FormatFloat(float64(t.UnixMicro())/1e6, 'f', 6, 64)
}

func (p *Prometheus) query(ctx context.Context, path string, args url.Values) ([]Sample, error) {
	body, err := p.get(ctx, path, args)
	if err != nil {
		return nil, err
	}
	return parseAnswer(body)
}

// parseAnswer reads what the HTTP API answers to a query.
func parseAnswer(body []byte) ([]Sample, error) {
	var answer struct {
		Data struct {
			ResultType string          `json:"resultType"`
			Result     json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	if answer.Data.ResultType == "scalar" {
		var v point
		if err := json.Unmarshal(answer.Data.Result, &v); err != nil {
			return nil, err
		}
		return []Sample{{Value: v.Value}}, nil
	}
	var series []struct {
		Metric    map[string]string `json:"metric"`
		Value     *point            `json:"value"`
		Values    []point           `json:"values"`
		Histogram json.RawMessage   `json:"histogram"`
	}
	if err := json.Unmarshal(answer.Data.Result, &series); err != nil {
		return nil, err
	}
	var samples []Sample
	for _, s := range series {
		sample := Sample{Labels: s.Metric, Value: math.NaN(), Native: s.Histogram != nil}
		if s.Value != nil {
			sample.Value = s.Value.Value
		}
		for _, v := range s.Values {
			sample.Points = append(sample.Points, Point(v))
		}
		samples = append(samples, sample)
	}
	return samples, nil
}

// point is [seconds, "value"].
type point Point

func (v *point) UnmarshalJSON(text []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(text, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return errors.New("no pair of time and value")
	}
	var at float64
	var value string
	if err := errors.Join(json.Unmarshal(pair[0], &at), json.Unmarshal(pair[1], &value)); err != nil {
		return err
	}
	f, err := strconv.ParseFloat(value, 64)
	v.Time, v.Value = time.UnixMilli(int64(math.Round(at*1000))), f
	return err
}
