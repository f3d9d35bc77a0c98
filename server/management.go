package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/vedette-io/vedette/internal/admin"
	"github.com/vedette-io/vedette/internal/configreload"
	"github.com/vedette-io/vedette/internal/httpserver"
	"github.com/vedette-io/vedette/internal/logthrottle"
	"github.com/vedette-io/vedette/server/middleware"
)

// Management configures a port for probes and metrics, for clients that have no certificate for the REST port.
type Management struct {
	Address string      // host:port; empty for no port
	TLS     *tls.Config // nil means plain HTTP
	// Guard decides who sees more than a status.
	Guard admin.Guard
}

// managementWriteTimeout ends answers that a client does not read.
const managementWriteTimeout = 20 * time.Second

// Management returns the address of the port for probes and metrics, or nil if there is none.
func (s *Server) Management() net.Addr {
	if s.managementListener == nil {
		return nil
	}
	return s.managementListener.Addr()
}

// serveManagement serves probes and metrics until ctx ends, on a port of their own if one is configured.
func (s *Server) serveManagement(ctx context.Context) error {
	if s.managementListener == nil {
		return nil
	}
	handler := middleware.GuardHost(middleware.LimitURLs(s.managementHandler()), s.managementListener.Addr(), s.cfg.RESTHosts)
	srv := httpserver.New(handler, s.cfg.Management.TLS)
	srv.WriteTimeout = managementWriteTimeout
	srv.BaseContext = func(net.Listener) context.Context { return ctx }
	if err := httpserver.Serve(ctx, srv, httpserver.Limit(srv, s.managementListener, logthrottle.Logger(s.log)), 0, s.log); err != nil {
		return fmt.Errorf("serve probes and metrics on %s: %w", s.managementListener.Addr(), err)
	}
	return nil
}

// managementHandler serves what may be asked without a client certificate: states, metrics, and to operators
// also reasons and the configuration.
func (s *Server) managementHandler() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{healthPath, livenessPath, readinessPath, readyPath} {
		mux.HandleFunc("GET "+path, s.answerProbe)
	}
	if s.cfg.ConfigHandler != nil {
		mux.Handle("GET "+configreload.Path, s.cfg.ConfigHandler)
	}
	if s.cfg.MetricsAddress != "" {
		scrape := s.cfg.Metrics.Handler(s.log)
		mux.Handle("GET /metrics", scrape)
		mux.Handle("GET /prometheus_metrics", scrape)
	}
	return mux
}

// answerProbe answers a probe like the REST port if it comes from an operator. Others see a state without
// reasons, which name hosts and quote other services, and cause no query of the database.
func (s *Server) answerProbe(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Management.Guard.Trusts(r) {
		s.handler.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	isReady := s.ready.reason() == "" || r.URL.Path == livenessPath
	status := http.StatusOK
	if !isReady {
		status = http.StatusServiceUnavailable
	}
	if r.URL.Path == readyPath {
		s.handler.write(w, status, map[string]any{"ready": isReady})
		return
	}
	state := stateUp
	switch {
	case isReady:
	case r.URL.Path == healthPath:
		state = stateDown
	default:
		state = stateOutOfService
	}
	s.handler.write(w, status, map[string]any{"status": state})
}

// closeListener closes a listener that may be nil.
func closeListener(l net.Listener) error {
	if l == nil {
		return nil
	}
	return l.Close()
}
