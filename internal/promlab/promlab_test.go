package promlab

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestScrape has the real server scrape a counter and evaluate a rule about it.
func TestScrape(t *testing.T) {
	var scrapes atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "scrapes_total %d\n", scrapes.Add(1))
	}))
	defer target.Close()
	rules := filepath.Join(t.TempDir(), "rules.yml")
	const text = `groups: [{name: g, rules: [{record: "twice:scrapes", expr: "2 * scrapes_total"}]}]`
	if err := os.WriteFile(rules, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p := Start(t, Options{
		Jobs:  map[string][]string{"self": {strings.TrimPrefix(target.URL, "http://")}},
		Rules: []string{rules}, NativeHistograms: true,
	})
	begin := time.Now()
	got := p.Await(t, "twice:scrapes", func(s []Sample) bool { return len(s) == 1 && s[0].Value >= 6 })
	if got[0].Labels["job"] != "self" {
		t.Errorf("labels are %v, want job self", got[0].Labels)
	}
	if n := scrapes.Load(); n < 3 {
		t.Errorf("a rule says 6 after %d scrapes", n)
	}
	series, err := p.QueryRange(t.Context(), "scrapes_total", begin.Add(-time.Second), time.Now(), 100*time.Millisecond)
	if err != nil || len(series) != 1 || len(series[0].Points) == 0 {
		t.Errorf("range query: %v, %v", series, err)
	}
	if s, err := p.Query(t.Context(), "scalar(vector(3))"); err != nil || len(s) != 1 || s[0].Value != 3 {
		t.Errorf("scalar query: %v, %v", s, err)
	}
	if _, err := p.Query(t.Context(), "not an expression"); err == nil {
		t.Error("no error for what is no expression")
	}
}

func TestPromtool(t *testing.T) {
	if out, err := Promtool(t, "# HELP a_total A.\n# TYPE a_total counter\na_total 1\n", "check", "metrics"); out != "" || err != nil {
		t.Errorf("a right text gave %q, %v", out, err)
	}
	if out, err := Promtool(t, "a 1\n", "check", "metrics"); out == "" || err == nil {
		t.Error("a text without help is right")
	}
}
