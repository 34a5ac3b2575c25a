package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/spf13/pflag"

	"github.com/pmdperf/pmdperf/export/prom"
	"github.com/pmdperf/pmdperf/perf"
)

// listenFlags say whether and where metrics are served.
type listenFlags struct {
	address     string // as net.Listen takes it, empty for nowhere
	webConfig   string
	pprof       bool
	compatNames bool
}

// add adds the flags to a command that serves what at an address, by default at def.
func (f *listenFlags) add(flags *pflag.FlagSet, def, what string) {
	addFlag(flags, &f.address, "listen", "address", def, "serve "+what+" for Prometheus at this address, as HOST:PORT; without HOST this machine only can reach it", parseListen)
	addFlag(flags, &f.webConfig, "web.config.file", "file", "", "serve it with the TLS and the users of this web configuration file of Prometheus's exporter-toolkit", anyText)
	flags.BoolVar(&f.pprof, "pprof", false, "serve profiles of this program there too, at /debug/pprof/")
	flags.BoolVar(&f.compatNames, "compat-names", false, "serve the metrics by their names in openstack-network-exporter too")
}

// parseListen reads the address to listen at. One without a host is this machine's
// own: that others reach it has to be asked for by name.
func parseListen(s string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil && !strings.Contains(s, ":") {
		host, port, err = "", s, nil
	}
	if err != nil {
		return "", fmt.Errorf("%q is no address: write HOST:PORT, say 127.0.0.1:9200, or [::]:9200 for everybody", s)
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return "", fmt.Errorf("%q has no port from 0 to 65535: write HOST:PORT, say 127.0.0.1:9200", s)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// wanted reports whether anything is to be served.
func (f *listenFlags) wanted() bool { return f.address != "" }

// check returns what is wrong with the flags on any machine.
func (f *listenFlags) check() error {
	if f.wanted() {
		return nil
	}
	for _, flag := range []struct {
		name  string
		given bool
	}{{"web.config.file", f.webConfig != ""}, {"pprof", f.pprof}, {"compat-names", f.compatNames}} {
		if flag.given {
			return usagef("--%s is for what --listen serves: add --listen", flag.name)
		}
	}
	return nil
}

// options are those of the metrics that are served.
func (f *listenFlags) options() prom.Options { return prom.Options{CompatNames: f.compatNames} }

// patienceOfServer is how long a request may take until it is read, and how long
// requests may go on when the server ends.
const patienceOfServer = 5 * time.Second

// serve serves metrics at /metrics until end is called. It calls say with where, and warn
// with what goes wrong meanwhile.
func (f *listenFlags) serve(metrics http.Handler, say, warn func(string)) (end func() error, err error) {
	if f.webConfig != "" {
		if err := web.Validate(f.webConfig); err != nil {
			return nil, fmt.Errorf("--web.config.file: %w", err)
		}
	}
	l, err := net.Listen("tcp", f.address)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	server := &http.Server{
		Handler:           f.pages(metrics),
		ReadHeaderTimeout: patienceOfServer,
		WriteTimeout:      time.Minute, // more than any profile takes by default
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // of clients that speak no TLS and the like
	}
	if f.webConfig == "" {
		say(fmt.Sprintf("metrics are at http://%s/metrics", l.Addr()))
	} else {
		say(fmt.Sprintf("metrics are at %s, as %s says", l.Addr(), f.webConfig))
	}
	if f.webConfig == "" && !isLoopback(l.Addr()) {
		warn(fmt.Sprintf("whoever reaches %s can read the metrics: --web.config.file can have them asked for a password", l.Addr()))
	}
	served := make(chan error, 1)
	go func() {
		err := web.Serve(l, server, &web.FlagConfig{WebConfigFile: &f.webConfig}, slog.New(slog.DiscardHandler))
		if !errors.Is(err, http.ErrServerClosed) {
			warn(fmt.Sprintf("metrics are no longer served: %v", err))
		} else {
			err = nil
		}
		served <- err
	}()
	return func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patienceOfServer)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			server.Close()
		}
		return <-served
	}, nil
}

// serveRegistry serves the metrics of the recorders of a registry, if that is wanted.
func (f *listenFlags) serveRegistry(g *perf.Registry, watch *supervision, say, warn func(string)) (end func() error, err error) {
	if !f.wanted() {
		return func() error { return nil }, nil
	}
	r := prometheus.NewRegistry()
	err = r.Register(prom.NewCollector(g, prom.CollectorOptions{
		Options: f.options(), Supervisor: watch.Supervisor, Reports: watch.events,
	}))
	if err != nil {
		return nil, err
	}
	return f.serve(prom.Handler(r, f.options(), nil), say, warn)
}

// pages are what is served.
func (f *listenFlags) pages(metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	index := "pmdperf\n\n/metrics\n"
	if f.pprof {
		index += "/debug/pprof/\n"
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, index) })
	return mux
}

// isLoopback reports whether only this machine can reach an address.
func isLoopback(a net.Addr) bool {
	ap, err := netip.ParseAddrPort(a.String())
	return err == nil && ap.Addr().IsLoopback()
}
