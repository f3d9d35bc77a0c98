package metricset

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/vedette-io/vedette/internal/httpserver"
)

// Limits of scrapes. A scrape takes milliseconds, so more than a few at once come from a client
// that floods the port.
const (
	maxScrapes    = 4
	scrapeTimeout = 10 * time.Second
	writeTimeout  = 20 * time.Second
)

// Handler serves the metrics on /metrics and on /prometheus_metrics, the second path of the
// predecessor.
func (s *Set) Handler(log *slog.Logger) http.Handler {
	scrape := promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout,
	})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", scrape)
	mux.Handle("GET /prometheus_metrics", scrape)
	return mux
}

// Listen opens the port for scrapes.
func Listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for metrics on %s: %w: set prometheus.port to a free port", address, err)
	}
	return listener, nil
}

// Serve serves the metrics on a listener until ctx ends.
func (s *Set) Serve(ctx context.Context, listener net.Listener, tlsConfig *tls.Config, log *slog.Logger) error {
	srv := &http.Server{Handler: s.Handler(log), TLSConfig: tlsConfig, ReadTimeout: 5 * time.Second, WriteTimeout: writeTimeout,
		MaxHeaderBytes: 16 << 10}
	if err := httpserver.Serve(ctx, srv, listener, 0, log); err != nil {
		return fmt.Errorf("serve metrics on %s: %w", listener.Addr(), err)
	}
	return nil
}
