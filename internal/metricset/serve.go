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

	"github.com/vedette-io/vedette/internal/connlimit"
	"github.com/vedette-io/vedette/internal/fair"
	"github.com/vedette-io/vedette/internal/httpserver"
	"github.com/vedette-io/vedette/internal/logthrottle"
)

// Limits of scrapes. A scrape takes milliseconds, so more than a few at once come from a client that floods the port, or that reads
// slowly: each answer is in memory until its reader has taken it.
const (
	maxScrapes    = 4 // of all ports of the program. One address has half
	scrapeTimeout = 10 * time.Second
	answerTimeout = 10 * time.Second // for a scrape and its reader; Prometheus' default
	queueTimeout  = 15 * time.Second
	writeTimeout  = 20 * time.Second // for everything, also errors
)

func newScrapeLine() *fair.Line {
	return fair.New(fair.Config{Capacity: maxScrapes, Wait: queueTimeout})
}

// Handler serves the metrics on /metrics and on /prometheus_metrics, the second path of the
// predecessor. It belongs to a server with a WriteTimeout, which ends the deadlines that it sets.
func (s *Set) Handler(log *slog.Logger) http.Handler {
	scrape := s.limit(promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout,
	}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", scrape)
	mux.Handle("GET /prometheus_metrics", scrape)
	return mux
}

// limit limits how many answers are in memory. promhttp's own limit ends before the answer is written.
func (s *Set) limit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		grant, err := s.scrapes.Acquire(r.Context(), connlimit.SourceOf(r.RemoteAddr), 1)
		if err != nil {
			http.Error(w, fmt.Sprintf("too many scrapes at a time, of which at most %d are served: %v: scrape less often, or read answers faster",
				maxScrapes, err), http.StatusServiceUnavailable)
			return
		}
		defer grant.Release()
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout)) // of connections, which have one
		next.ServeHTTP(w, r)
	})
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
	if err := httpserver.Serve(ctx, srv, httpserver.Limit(srv, listener, logthrottle.Logger(log)), 0, log); err != nil {
		return fmt.Errorf("serve metrics on %s: %w", listener.Addr(), err)
	}
	return nil
}
