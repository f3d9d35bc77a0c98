package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/vedette-io/vedette/agent/metrics"
	"github.com/vedette-io/vedette/internal/configreload"
	"github.com/vedette-io/vedette/internal/httpserver"
	"github.com/vedette-io/vedette/internal/logthrottle"
	"github.com/vedette-io/vedette/internal/settings"
)

// managementWriteTimeout ends answers that a client does not read.
const managementWriteTimeout = 20 * time.Second

// managementHandler serves what may be asked without a client certificate: of the paths of another handler
// the probes and, for operators, the configuration, and metrics.
func managementHandler(next http.Handler, hasMetrics bool, m *metrics.Metrics, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/health", "/health/liveness", "/health/readiness", "/ready", configreload.Path} {
		mux.Handle("GET "+path, next)
	}
	if hasMetrics {
		scrape := m.Handler(log)
		mux.Handle("GET /metrics", scrape)
		mux.Handle("GET /prometheus_metrics", scrape)
	}
	return mux
}

// serveManagement serves the port for probes and metrics until ctx ends.
func serveManagement(ctx context.Context, cfg settings.Management, h http.Handler, log *slog.Logger) error {
	tlsConfig, err := cfg.Server.SSL.TLSConfig()
	if err != nil {
		return fmt.Errorf("management.server.ssl: %w", err)
	}
	listener, err := net.Listen("tcp", cfg.ListenAddress())
	if err != nil {
		return fmt.Errorf("listen for probes and metrics: %w: set management.server.port to a free port", err)
	}
	log.Info("serving probes and metrics", "address", listener.Addr().String())
	srv := httpserver.New(h, tlsConfig)
	srv.WriteTimeout = managementWriteTimeout
	if err := httpserver.Serve(ctx, srv, httpserver.Limit(srv, listener, logthrottle.Logger(log)), 0, log); err != nil {
		return fmt.Errorf("serve probes and metrics on %s: %w", listener.Addr(), err)
	}
	return nil
}
