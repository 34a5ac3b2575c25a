package exporter

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/pmdperf/pmdperf/export/appctl"
	"github.com/pmdperf/pmdperf/export/appctl/pmd"
	"github.com/pmdperf/pmdperf/export/ovs"
	"github.com/pmdperf/pmdperf/export/prom"
	"github.com/pmdperf/pmdperf/histogram"
	"github.com/pmdperf/pmdperf/internal/need"
	"github.com/pmdperf/pmdperf/internal/ovslab"
	"github.com/pmdperf/pmdperf/internal/promlab"
	"github.com/pmdperf/pmdperf/perf"
)

// TestSoak has targets of all kinds restart, clear their counters, change their level,
// reload, hang and lose cycles, while a real Prometheus and a suspicious reader scrape
// them. It wants
//
//   - no counter to fall unless its created timestamp rises, and that to rise only when
//     there was a clear or a restart (checkReset);
//   - what Prometheus makes of the counters, as increase() does, to be no more than was
//     really counted: a spurious reset would count everything once more.
func TestSoak(t *testing.T) {
	length, interval := 10*time.Second, 500*time.Millisecond // which is also how long a scrape may take
	if need.Race {
		length, interval = 25*time.Second, time.Second
	}
	if need.Long() {
		length = 5 * time.Minute
	}
	ours, model := newSoakOurs(t), newSoakModel(t)
	names := []string{ours.path, model.path}
	targets := []soakTarget{ours, model}
	if real := newSoakOVS(t); real != nil {
		names, targets = append(names, real.path), append(targets, real)
	}
	e, log := newExporter(t, interval/2, names...)
	registry := prometheus.NewPedanticRegistry()
	o := prom.Options{Labels: []string{Label}}
	if err := registry.Register(collector{prom.New(o), e}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(prom.Handler(registry, o, nil))
	defer server.Close()
	p := promlab.Start(t, promlab.Options{
		Jobs:     map[string][]string{"soak": {strings.TrimPrefix(server.URL, "http://")}},
		Interval: interval,
	})

	// On a busy machine most scrapes come too late for Prometheus: it goes on until there
	// are some of everything.
	scraped := func() bool {
		for i, target := range targets {
			for metric := range target.truth() {
				if _, samples := totalIncrease(t, p, of(metric, names[i]), 2*patienceOfTests); samples == 0 {
					return false
				}
			}
		}
		return true
	}
	ctx, stop := context.WithTimeout(t.Context(), length+patienceOfTests)
	defer stop()
	began := time.Now()
	var running sync.WaitGroup
	for _, target := range targets {
		running.Go(func() { target.trouble(ctx) })
	}
	r := newResets()
	scrapes := 0
	for ; ctx.Err() == nil && (time.Since(began) < length || !scraped()); scrapes++ {
		families, err := registry.Gather()
		if err != nil {
			t.Fatalf("a strict registry complains: %v", err)
		}
		for _, f := range families {
			for _, m := range f.Metric {
				if err := r.check(f, m); err != nil {
					t.Errorf("scrape %d: %v", scrapes, err)
				}
			}
		}
		if t.Failed() {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	stop()
	running.Wait()
	t.Logf("%d scrapes of %d series: %d falls, %d epochs", scrapes, len(r.last), r.falls, r.epochs)
	if scrapes < 20 || r.falls == 0 || r.epochs == 0 {
		t.Errorf("%d scrapes saw %d falls and %d epochs: that is no soak", scrapes, r.falls, r.epochs)
	}

	for i, target := range targets {
		if got, most := r.most(names[i]), target.clears(); got > most {
			t.Errorf("%s: a created timestamp rose %d times, but there were only %d clears and restarts", names[i], got, most)
		}
		for metric, most := range target.truth() {
			got, samples := totalIncrease(t, p, of(metric, names[i]), length+2*patienceOfTests)
			if samples == 0 {
				t.Errorf("Prometheus has no %s of %s:\n%s", metric, names[i], log)
			}
			if got > most*(1+1e-9) {
				t.Errorf("Prometheus counts %v of %s{%s}, but there were only %v", got, metric, names[i], most)
			}
			t.Logf("%s of %s: Prometheus counts %.4g of %.4g", metric, filepath.Base(names[i]), got, most)
		}
	}
}

// soakTarget is a target that is given trouble.
type soakTarget interface {
	// trouble makes trouble until ctx ends.
	trouble(ctx context.Context)
	// truth returns the most that Prometheus may count, by selectors with a label.
	truth() map[string]float64
	// clears returns how often counters began anew.
	clears() int
}

// resets looks at all counters of all scrapes.
type resets struct {
	last          map[string]resetState
	falls, epochs int
}

type resetState struct {
	value   float64
	created time.Time
	epochs  int
}

func newResets() *resets { return &resets{last: make(map[string]resetState)} }

// check returns what is wrong with a metric after what it was before.
func (r *resets) check(f *dto.MetricFamily, m *dto.Metric) error {
	name := f.GetName()
	for _, l := range m.Label {
		name += fmt.Sprintf(",%s=%q", l.GetName(), l.GetValue())
	}
	switch {
	case m.Counter != nil:
		return r.see(name, m.Counter.GetValue(), m.Counter.CreatedTimestamp.AsTime())
	case m.Histogram != nil:
		h := m.Histogram
		created := h.CreatedTimestamp.AsTime()
		err := r.see(name+" count", float64(h.GetSampleCount()), created)
		for _, b := range h.Bucket {
			if err == nil {
				err = r.see(fmt.Sprintf("%s le=%v", name, b.GetUpperBound()), float64(b.GetCumulativeCount()), created)
			}
		}
		if sum := h.GetSampleSum(); err == nil && !math.IsNaN(sum) {
			err = r.see(name+" sum", sum, created)
		}
		return err
	}
	return nil
}

func (r *resets) see(name string, value float64, created time.Time) error {
	last, ok := r.last[name]
	if ok && created.After(last.created) {
		r.epochs++
		last.epochs++
	}
	r.last[name] = resetState{value, created, last.epochs}
	if !ok {
		return nil
	}
	switch {
	case created.Before(last.created):
		return fmt.Errorf("%s: its created timestamp went back from %v to %v", name, last.created, created)
	case value >= last.value:
		return nil
	case created.Equal(last.created):
		return fmt.Errorf("%s: fell from %v to %v, both created %v", name, last.value, value, created)
	}
	r.falls++
	return nil
}

// most returns how often the created timestamp of a target's counter rose.
func (r *resets) most(target string) (n int) {
	for name, state := range r.last {
		if strings.Contains(name, target) {
			n = max(n, state.epochs)
		}
	}
	return n
}

// of returns the selector of a metric of one target.
func of(metric, target string) string {
	return fmt.Sprintf(`%s,target=%q}`, strings.TrimSuffix(metric, "}"), target)
}

// totalIncrease returns what Prometheus's increase() would without extrapolation: the sum
// of all rises, a fall counting as a rise from 0.
func totalIncrease(t *testing.T, p *promlab.Prometheus, selector string, over time.Duration) (sum float64, samples int) {
	t.Helper()
	series, err := p.Query(t.Context(), fmt.Sprintf("%s[%ds]", selector, int(over.Seconds())))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range series {
		for i := 1; i < len(s.Points); i++ {
			samples++
			if rise := s.Points[i].Value - s.Points[i-1].Value; rise >= 0 {
				sum += rise
			} else {
				sum += s.Points[i].Value
			}
		}
	}
	return sum, samples
}

// soakOurs is a program with our recorder.
type soakOurs struct {
	t    *testing.T
	path string // a link to the socket, which is another one after every restart

	iterations, packets atomic.Uint64 // that there really were
	cleared             atomic.Int64
}

func newSoakOurs(t *testing.T) *soakOurs {
	return &soakOurs{t: t, path: filepath.Join(shortDir(t), "ours.ctl")}
}

func (s *soakOurs) truth() map[string]float64 {
	return map[string]float64{
		`ovs_pmd_iterations_total{state=~"busy|idle"}`:      float64(s.iterations.Load()),
		`ovs_pmd_rx_packets_total{cpu!=""}`:                 float64(s.packets.Load()),
		`ovs_pmd_iteration_packets_sum{cpu!=""}`:            float64(s.packets.Load()),
		`ovs_pmd_iteration_duration_seconds_count{cpu!=""}`: float64(s.iterations.Load()),
		`ovs_pmd_iteration_cycles_bucket{le="+Inf"}`:        float64(s.iterations.Load()),
	}
}

func (s *soakOurs) clears() int { return int(s.cleared.Load()) }

func (s *soakOurs) trouble(ctx context.Context) {
	for ctx.Err() == nil {
		life, end := context.WithTimeout(ctx, time.Second+rand.N(3*time.Second))
		s.live(life)
		end()
	}
}

// live is a program's life.
func (s *soakOurs) live(ctx context.Context) {
	s.cleared.Add(1)
	registry := new(perf.Registry)
	var running sync.WaitGroup
	defer running.Wait()
	for core := range 2 {
		r, err := registry.New(perf.Config{Core: core, ID: 8 + core, Level: perf.Detailed, Polling: soakPolling()})
		if err != nil {
			s.t.Error(err)
			return
		}
		running.Go(func() { s.loop(ctx, r) })
	}
	dir, err := os.MkdirTemp("", "soak")
	if err != nil {
		s.t.Error(err)
		return
	}
	defer os.RemoveAll(dir)
	server, err := appctl.Listen(appctl.Config{Name: "ours", RunDir: dir}, pmd.Commands(registry, pmd.Options{})...)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer server.Close()
	socket, err := appctl.Resolve(dir, "ours")
	if err != nil {
		s.t.Error(err)
		return
	}
	relink(s.t, socket, s.path)
	for ctx.Err() == nil {
		time.Sleep(rand.N(200 * time.Millisecond))
		rs := registry.Recorders()
		r := rs[rand.IntN(len(rs))]
		switch rand.IntN(3) {
		case 0:
			s.cleared.Add(1)
			r.Clear(ctx)
		case 1:
			r.SetLevel(ctx, perf.Level(rand.IntN(3)))
		default:
			registry.Shared().Batch(3)
		}
	}
}

func soakPolling() perf.Polling {
	p := perf.Polling{RxQueues: []perf.Queue{{Port: "p0", ID: 0}}}
	if rand.IntN(2) == 0 {
		p.RxQueues = append(p.RxQueues, perf.Queue{Port: "p1", ID: 0})
	}
	return p
}

func (s *soakOurs) loop(ctx context.Context, r *perf.Recorder) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer r.Close()
	if err := r.Start(); err != nil {
		s.t.Error(err)
		return
	}
	for n := 0; ctx.Err() == nil; n++ {
		if n%500 == 499 {
			r.Park()
			p := soakPolling()
			if err := r.Resume(&p); err != nil {
				s.t.Error(err)
			}
		}
		r.Poll(0)
		if n%2 == 0 {
			// The truth first: what was counted is never less than what is shown.
			s.packets.Add(32)
			r.Batch(32, 40)
			r.Tx(32, 1)
		}
		s.iterations.Add(1)
		r.End()
		time.Sleep(50 * time.Microsecond)
	}
}

// relink makes path a link to a socket, at once.
func relink(t *testing.T, socket, path string) {
	temp := path + ".new"
	if err := os.Symlink(socket, temp); err != nil {
		t.Error(err)
	}
	if err := os.Rename(temp, path); err != nil {
		t.Error(err)
	}
}

// soakModel is an Open vSwitch that counts exactly, except where it does not on purpose.
type soakModel struct {
	t    *testing.T
	path string

	mu       sync.Mutex
	cleared  time.Time
	counters map[string]uint64
	hung     time.Time // it doesn't answer until then
	conns    []net.Conn
	counted  map[string]uint64 // that there really was, whatever was cleared
	times    int               // that it was cleared
}

func newSoakModel(t *testing.T) *soakModel {
	s := &soakModel{t: t, cleared: time.Now(), counters: map[string]uint64{}, counted: map[string]uint64{}}
	s.path = misbehave(t, s.serve)
	return s
}

func (s *soakModel) truth() map[string]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]float64{
		`ovs_pmd_rx_packets_total{cpu!=""}`:      float64(s.counted["rx"]),
		`ovs_pmd_used_cycles_total{cpu!=""}`:     float64(s.counted["cycles"]),
		`ovs_pmd_cycles_total{state="busy"}`:     float64(s.counted["cycles"]),
		`ovs_pmd_iteration_cycles_sum{cpu!=""}`:  float64(s.counted["cycles"]),
		`ovs_pmd_iterations_total{state="busy"}`: float64(s.counted["busy"]),
	}
}

func (s *soakModel) clears() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.times
}

func (s *soakModel) trouble(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(rand.N(150 * time.Millisecond))
		s.mu.Lock()
		switch rand.IntN(8) {
		case 0, 1:
			s.clear()
		case 2: // a new program
			s.clear()
			for _, c := range s.conns {
				c.Close()
			}
			s.conns = nil
		case 3: // an iteration of a second
			s.counters["cycles"] -= 1_800_000_000
		case 4:
			s.hung = time.Now().Add(rand.N(time.Second))
		}
		s.mu.Unlock()
	}
}

func (s *soakModel) clear() {
	s.counters = map[string]uint64{}
	s.cleared = time.Now()
	s.times++
}

// count counts the time on. The caller holds mu.
func (s *soakModel) count() {
	for name, n := range map[string]uint64{"rx": 1000, "busy": 100, "idle": 300, "cycles": 50_000_000} {
		n = rand.N(n) + 1
		s.counters[name] += n
		s.counted[name] += n
	}
}

func (s *soakModel) serve(c net.Conn) {
	s.mu.Lock()
	s.conns = append(s.conns, c)
	s.mu.Unlock()
	in := json.NewDecoder(c)
	for {
		var q struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if in.Decode(&q) != nil {
			return
		}
		s.mu.Lock()
		wait := time.Until(s.hung)
		s.mu.Unlock()
		time.Sleep(wait)
		text := s.answer(q.Method)
		reply := map[string]any{"id": q.ID, "result": text, "error": nil}
		if text == "" {
			reply = map[string]any{"id": q.ID, "error": "unknown"}
		}
		line, _ := json.Marshal(reply)
		if _, err := c.Write(line); err != nil {
			return
		}
	}
}

func (s *soakModel) answer(command string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count()
	n := s.counters
	thread := ovs.Thread{NUMA: 0, Core: 1}
	switch command {
	case perfShow:
		r := ovs.PerfReport{Blocks: []ovs.PerfBlock{{
			Time: time.Now().UTC().Format("15:04:05.000"), Duration: fmt.Sprintf("%d.%03d", time.Since(s.cleared).Milliseconds()/1000, time.Since(s.cleared).Milliseconds()%1000),
			Thread: thread,
			Rows: []ovs.Row{
				{Label: "Iterations", Value: n["busy"] + n["idle"]},
				{Label: usedCycles, Detail: true, Value: n["cycles"]},
				{Label: "idle iterations", Detail: true, Value: n["idle"]},
				{Label: "busy iterations", Detail: true, Value: n["busy"]},
				{Label: rxPackets, Value: n["rx"]},
				{Label: txPackets, Value: n["rx"]},
			},
			Histograms: []ovs.Histogram{
				soakHistogram("cycles/it", histogram.CyclesPerIteration, n["idle"], n["busy"]),
				soakHistogram("packets/it", histogram.PacketsPerIteration, n["idle"], n["busy"]),
			},
		}}}
		return r.String()
	case statsShow:
		number := func(name string) string { return fmt.Sprint(n[name]) }
		r := ovs.StatsReport{Blocks: []ovs.StatsBlock{
			{Thread: thread, Rows: []ovs.StatsRow{
				{Label: "packets received", Number: number("rx")},
				{Label: "idle cycles", Number: "0", Note: "0.00%"},
				{Label: "processing cycles", Number: number("cycles"), Note: "100.00%"},
			}},
			{Thread: ovs.MainThread(), Rows: []ovs.StatsRow{{Label: "packets received", Number: number("idle")}}},
		}}
		return r.String()
	}
	return ""
}

// soakHistogram has low values and high ones.
func soakHistogram(title string, m histogram.Metric, low, high uint64) ovs.Histogram {
	walls := m.Walls()
	counts := make([]uint64, histogram.NumBins)
	counts[0], counts[20] = low, high
	return ovs.Histogram{Title: title, Walls: walls[:], Counts: counts}
}

// soakOVS is a real Open vSwitch.
type soakOVS struct {
	t       *testing.T
	path    string // a link to the socket
	lab     *ovslab.Lab
	started time.Time
	times   int // that it was cleared or started
}

// newSoakOVS returns nil where there is no Open vSwitch.
func newSoakOVS(t *testing.T) *soakOVS {
	s := &soakOVS{t: t, path: filepath.Join(shortDir(t), "ovs.ctl"), started: time.Now()}
	s.start()
	return s
}

func (s *soakOVS) start() {
	s.times++
	s.lab = ovslab.Start(s.t, ovslab.Options{})
	socket, err := appctl.Resolve(s.lab.RunDir, s.lab.Name)
	if err != nil {
		s.t.Error(err)
		return
	}
	relink(s.t, socket, s.path)
}

// truth knows only that a PMD can't have more cycles than there were.
func (s *soakOVS) truth() map[string]float64 {
	wall := time.Since(s.started).Seconds() * ticksPerSecond()
	if wall == 0 {
		return nil
	}
	return map[string]float64{
		`ovs_pmd_used_cycles_total{cpu="0"}`:       wall,
		`ovs_pmd_cycles_total{state=~"busy|idle"}`: wall,
	}
}

func (s *soakOVS) clears() int { return s.times }

func (s *soakOVS) trouble(ctx context.Context) {
	restart := time.Now().Add(3 * time.Second)
	for ctx.Err() == nil {
		time.Sleep(rand.N(300 * time.Millisecond))
		switch {
		case time.Now().After(restart):
			s.lab.Stop()
			s.start()
			restart = time.Now().Add(10 * time.Second)
		case rand.IntN(2) == 0:
			s.times++
			s.lab.Appctl(s.t, "dpif-netdev/pmd-stats-clear")
		default:
			s.lab.Appctl(s.t, "netdev-dummy/receive", "p0", "in_port(1),eth(src=50:54:00:00:00:01,dst=50:54:00:00:00:ff),eth_type(0x1234)")
		}
	}
}

// TestResetsCatch has the soak's criterion find what it is to find.
func TestResetsCatch(t *testing.T) {
	created := time.Now()
	later := created.Add(time.Second)
	tests := map[string]struct {
		value   float64
		created time.Time
		wrong   bool
	}{
		"rises":               {11, created, false},
		"stays":               {10, created, false},
		"falls":               {9, created, true},
		"begins again":        {9, later, false},
		"begins before":       {11, created.Add(-1), true},
		"overtakes":           {12, later, false},
		"falls by an instant": {9.999999, created, true},
	}
	for name, test := range tests {
		r := newResets()
		if err := r.see("x", 10, created); err != nil {
			t.Fatal(err)
		}
		if err := r.see("x", test.value, test.created); (err != nil) != test.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}
