package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"github.com/pmdperf/pmdperf/export/prom"
	"github.com/pmdperf/pmdperf/internal/exporter"
)

// exporterFlags is what the flags of the verb exporter say.
type exporterFlags struct {
	targets []string
	timeout time.Duration
	listen  listenFlags
}

func newExporterCmd() *cobra.Command {
	var f exporterFlags
	cmd := &cobra.Command{
		Use:   "exporter",
		Short: "Serve Prometheus the PMDs of other programs",
		Long: `Exporter asks any number of programs over their control sockets what their PMDs did,
each time that Prometheus asks it, and serves that as metrics with the label target:
programs that pmdperf's recorder is in, and ovs-vswitchd from Open vSwitch 2.10 to 4.0,
which has to record in detail for all histograms:

  ovs-vsctl set Open_vSwitch . other_config:pmd-perf-metrics=true

A target that doesn't answer within --timeout, or not in a way that is understood, has
the metric ovs_pmd_up 0; the log on standard error says why. One that hangs delays the
others' metrics by that time once, and hardly at all as long as it hangs.

A target by name is found again after a restart, one by its path only if that stays.`,
		Example: `  pmdperf exporter
  pmdperf exporter -t ovs-vswitchd -t demo --listen 127.0.0.1:9201
  pmdperf exporter -t /run/openvswitch/ovs-vswitchd.4711.ctl --timeout 500ms
  curl http://127.0.0.1:9201/metrics`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	targets := &list[string]{to: &f.targets, parse: parseTarget, kind: "target"}
	must(targets.Set(defaultTarget))
	targets.given = false
	flags.VarP(targets, "target", "t", "whom to ask: the path of a control socket, or the name of a program that has its pidfile in $OVS_RUNDIR (/var/run/openvswitch); repeat it for several")
	must(cmd.RegisterFlagCompletionFunc("target", completeTarget))
	addFlag(flags, &f.timeout, "timeout", "duration", exporter.DefaultTimeout.String(), "how long to wait for a target", parseTimeout)
	must(cmd.RegisterFlagCompletionFunc("timeout", cobra.NoFileCompletions))
	f.listen.add(flags, "127.0.0.1:9201", "metrics of all targets")
	return cmd
}

// minTimeout is a time in which a healthy target answers on a busy machine.
const minTimeout = 50 * time.Millisecond

func parseTimeout(s string) (time.Duration, error) {
	d, err := parseDuration(s)
	if err == nil && d < minTimeout {
		err = fmt.Errorf("%v is too short: write %v or more", d, minTimeout)
	}
	return d, err
}

// run serves until the program is interrupted.
func (f *exporterFlags) run(cmd *cobra.Command) error {
	ctx, restore := untilInterrupted(cmd)
	defer restore()
	context.AfterFunc(ctx, restore) // a second signal kills
	events := slog.NewTextHandler(cmd.ErrOrStderr(), nil)
	e, err := exporter.New(exporter.Options{Targets: f.targets, Timeout: f.timeout, Log: slog.New(events)})
	if err != nil {
		return asUsage(err)
	}
	defer e.Close()
	o := f.listen.options()
	o.Labels = []string{exporter.Label}
	handler := &exporterHandler{prom.New(o), e, o, slog.NewLogLogger(events, slog.LevelWarn)}
	say := func(what string) { fmt.Fprintf(cmd.ErrOrStderr(), "pmdperf: %s\n", what) }
	warn := func(what string) { say("warning: " + what) }
	end, err := f.listen.serve(handler, say, warn)
	if err != nil {
		return err
	}
	<-ctx.Done()
	return end()
}

// exporterHandler serves the metrics of an exporter's targets.
type exporterHandler struct {
	metrics  *prom.Metrics
	exporter *exporter.Exporter
	options  prom.Options
	log      *log.Logger
}

// scrapeTimeout is the header in which Prometheus says how many seconds it waits.
const scrapeTimeout = "X-Prometheus-Scrape-Timeout-Seconds"

// ServeHTTP serves what is known when nine tenths of the time are over that the scraper
// waits: without an answer it would have nothing of any target.
func (h *exporterHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	if s, err := strconv.ParseFloat(r.Header.Get(scrapeTimeout), 64); err == nil && s > 0 && s < time.Hour.Seconds() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(0.9*s*float64(time.Second)))
		defer cancel()
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(&targetCollector{h.metrics, h.exporter, ctx}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	prom.Handler(registry, h.options, h.log).ServeHTTP(w, r)
}

// targetCollector collects the metrics of an exporter's targets for one scrape.
type targetCollector struct {
	*prom.Metrics
	exporter *exporter.Exporter
	ctx      context.Context
}

// Collect implements prometheus.Collector.
func (c *targetCollector) Collect(ch chan<- prometheus.Metric) {
	c.Metrics.Collect(ch, c.exporter.Read(c.ctx)...)
}
