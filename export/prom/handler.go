package prom

import (
	"log"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// mostRequests is how many scrapes are answered at the same time; others are told to
// come again (503). A scraper asks one at a time.
const mostRequests = 16

// Handler serves the metrics of g as text, OpenMetrics or protobuf, whichever a scraper
// prefers. Metrics that can't be gathered are left out, and errors go to errorLog, which
// may be nil.
//
// With CompatNames there is no OpenMetrics, which has no counters of such names. The
// other options have no effect.
func Handler(g prometheus.Gatherer, o Options, errorLog *log.Logger) http.Handler {
	opts := promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError,
		EnableOpenMetrics:   !o.CompatNames,
		MaxRequestsInFlight: mostRequests,
	}
	if errorLog != nil {
		opts.ErrorLog = errorLog
	}
	return promhttp.HandlerFor(g, opts)
}
