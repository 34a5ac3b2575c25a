package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pmdperf/pmdperf/internal/promlab"
)

func TestParseListen(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"127.0.0.1:9200", "127.0.0.1:9200"},
		{":9200", "127.0.0.1:9200"},
		{"9200", "127.0.0.1:9200"},
		{"0.0.0.0:0", "0.0.0.0:0"},
		{"[::]:9200", "[::]:9200"},
		{"node1:http", "node1:http"},
	} {
		if got, err := parseListen(c.in); err != nil || got != c.want {
			t.Errorf("%q: %q, %v, want %q", c.in, got, err, c.want)
		}
	}
	for _, in := range []string{"", ":", "127.0.0.1:", "127.0.0.1", "1:2:3", "::1", "x:99999", "x:nothing"} {
		if got, err := parseListen(in); err == nil {
			t.Errorf("%q: %q, want an error", in, got)
		}
	}
}

// said keeps what a server says.
type said struct {
	mu    sync.Mutex
	lines []string
}

func (s *said) add(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.lines, "\n")
}

// served returns where a server says that metrics are.
func (s *said) served(t *testing.T) string {
	t.Helper()
	m := regexp.MustCompile(`metrics are at (?:http://)?([^/,]+)`).FindStringSubmatch(s.String())
	if m == nil {
		t.Fatalf("it says not where: %q", s)
	}
	return m[1]
}

// get returns the status and the body of an answer.
func get(t *testing.T, c *http.Client, url string, auth ...string) (status int, body string, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(auth) == 2 {
		req.SetBasicAuth(auth[0], auth[1])
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// client returns one that keeps no connections.
func client(c *tls.Config) *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: c}}
}

var answer = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "up 1\n") })

func TestListenPages(t *testing.T) {
	for _, pprof := range []bool{false, true} {
		f := listenFlags{address: "127.0.0.1:0", pprof: pprof}
		var say, warn said
		end, err := f.serve(answer, say.add, warn.add)
		if err != nil {
			t.Fatal(err)
		}
		url := "http://" + say.served(t)
		profiles := http.StatusNotFound
		if pprof {
			profiles = http.StatusOK
		}
		for path, want := range map[string]int{
			"/": 200, "/metrics": 200, "/nothing": 404, "/debug/pprof/": profiles, "/debug/pprof/heap": profiles, "/debug/pprof/cmdline": profiles,
		} {
			if status, body, err := get(t, client(nil), url+path); status != want {
				t.Errorf("profiles %v: %s: %d %v, want %d: %s", pprof, path, status, err, want, body)
			}
		}
		if err := end(); err != nil || warn.String() != "" {
			t.Errorf("end: %v, warnings %q", err, warn.String())
		}
		if _, _, err := get(t, client(nil), url+"/metrics"); err == nil {
			t.Error("it answers after its end")
		}
	}
}

// A request that is under way is answered before the server ends.
func TestListenGraceful(t *testing.T) {
	begun, release := make(chan bool), make(chan bool)
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-release
		answer(w, r)
	})
	f := listenFlags{address: "127.0.0.1:0"}
	var say, warn said
	end, err := f.serve(slow, say.add, warn.add)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	go func() {
		status, body, err := get(t, client(nil), "http://"+say.served(t)+"/metrics")
		got <- fmt.Sprintf("%d %s %v", status, body, err)
	}()
	<-begun
	ended := make(chan error)
	go func() { ended <- end() }()
	select {
	case err := <-ended:
		close(release)
		t.Fatalf("it ended with a request under way: %v, answer %q", err, <-got)
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	if s := <-got; s != "200 up 1\n <nil>" {
		t.Errorf("answer %q", s)
	}
	if err := <-ended; err != nil || warn.String() != "" {
		t.Errorf("end: %v, warnings %q", err, warn.String())
	}
}

// What others can reach is warned about, unless somebody thought of it.
func TestListenWarns(t *testing.T) {
	f := listenFlags{address: "0.0.0.0:0"}
	var say, warn said
	end, err := f.serve(answer, say.add, warn.add)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if !strings.Contains(warn.String(), "whoever reaches") {
		t.Errorf("warnings: %q", warn.String())
	}
	_, port, err := net.SplitHostPort(say.served(t))
	if err != nil {
		t.Fatal(err)
	}
	f.address = "0.0.0.0:" + port
	if _, err := f.serve(answer, say.add, warn.add); err == nil || !strings.HasPrefix(err.Error(), "--listen: ") {
		t.Errorf("a port that is taken: %v", err)
	}
}

// certificate writes a certificate for this machine, and returns who trusts it.
func certificate(t *testing.T, dir string) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &tls.Config{RootCAs: pool}
}

// The web configuration asks for TLS and a password.
func TestListenWebConfig(t *testing.T) {
	dir := t.TempDir()
	trusted := certificate(t, dir)
	config := filepath.Join(dir, "web.yml")
	// Of "secret", by bcrypt at its lowest cost.
	const secretHash = "$2a$04$YbhGr9vp1FmX5LhSW4dMOOfTDw5tjITFvu4LrzgGqIbKxfccD6BfW"
	const text = `tls_server_config:
  cert_file: cert.pem
  key_file: key.pem
basic_auth_users:
  ann: HASH
`
	if err := os.WriteFile(config, []byte(strings.Replace(text, "HASH", secretHash, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	f := listenFlags{address: "127.0.0.1:0", webConfig: config}
	var say, warn said
	end, err := f.serve(answer, say.add, warn.add)
	if err != nil {
		t.Fatal(err)
	}
	address := say.served(t)
	for _, c := range []struct {
		what   string
		client *http.Client
		url    string
		auth   []string
		want   int
	}{
		{"the password", client(trusted), "https://" + address, []string{"ann", "secret"}, 200},
		{"another password", client(trusted), "https://" + address, []string{"ann", "guess"}, 401},
		{"no password", client(trusted), "https://" + address, nil, 401},
		{"no TLS", client(nil), "http://" + address, []string{"ann", "secret"}, 400},
		{"a client that doesn't trust it", client(nil), "https://" + address, []string{"ann", "secret"}, 0},
	} {
		if status, body, err := get(t, c.client, c.url+"/metrics", c.auth...); status != c.want || status == 200 && body != "up 1\n" {
			t.Errorf("with %s: %d, %q, %v, want %d", c.what, status, body, err, c.want)
		}
	}
	if err := end(); err != nil || warn.String() != "" {
		t.Errorf("end: %v, warnings %q", err, warn.String())
	}

	for name, text := range map[string]string{"nonsense": "tls_server_config: 3\n", "without key": "tls_server_config:\n  cert_file: cert.pem\n"} {
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.serve(answer, say.add, warn.add); err == nil || !strings.HasPrefix(err.Error(), "--web.config.file: ") {
			t.Errorf("a configuration %s: %v", name, err)
		}
	}
	f.webConfig = filepath.Join(dir, "nothing.yml")
	if _, err := f.serve(answer, say.add, warn.add); err == nil {
		t.Error("a configuration that isn't there is no error")
	}
}

// TestRunListen: a run serves its PMDs to Prometheus, and promtool has nothing to say.
func TestRunListen(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "pmdperf", "run", "--duration", "0", "--listen", "127.0.0.1:0", "--inject", "compute=2ms@100ms")
	stderr := start(t, cmd)
	var url string
	for url == "" {
		line, err := stderr.ReadString('\n')
		if err != nil {
			t.Fatalf("it never said where the metrics are: %v", err)
		}
		if _, after, ok := strings.Cut(line, "metrics are at "); ok {
			url = strings.TrimSpace(after)
		}
	}
	go io.Copy(io.Discard, stderr)
	var text string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		status, body, err := get(t, client(nil), url)
		if err != nil || status != http.StatusOK {
			t.Fatalf("%d, %v: %s", status, err, body)
		}
		text = body
		if regexp.MustCompile(`(?m)^ovs_pmd_suspicious_iterations_reported_total\{.*\} [1-9]`).MatchString(text) || time.Now().After(deadline) {
			break
		}
	}
	promlab.CheckMetrics(t, text)
	for _, want := range []string{
		`ovs_pmd_up 1`, `ovs_pmd_rxq_enabled\{cpu="\d+",interface="mem0",numa="\d+",rxq="0"\} 1`,
		`ovs_pmd_rx_packets_total\{cpu="\d+",numa="\d+"\} [1-9].*`, `ovs_pmd_suspicious_iterations_reported_total\{.*\} [1-9].*`,
		`ovs_pmd_suspicious_iterations_by_cause_total\{cause="work",.*\} \d+`,
		`ovs_pmd_context_switches_total\{cpu="\d+",kind="voluntary",numa="\d+"\} \d+`,
	} {
		if !regexp.MustCompile(`(?m)^` + want + `$`).MatchString(text) {
			t.Errorf("no line %s in\n%s", want, text)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}
