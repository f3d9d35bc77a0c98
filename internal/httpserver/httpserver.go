// Package httpserver serves HTTP until a context ends, for the agent's health checks and the
// server's REST.
package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/vedette-io/vedette/internal/connlimit"
)

// Serve serves srv on listener until ctx ends. Requests that are under way then have the
// time grace before their connections are closed; Serve itself returns at once. It uses TLS
// if srv has a TLS configuration.
// Errors of single connections are logged at the debug level, because anybody who can reach
// the port causes them at will.
func Serve(ctx context.Context, srv *http.Server, listener net.Listener, grace time.Duration, log *slog.Logger) error {
	srv.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	stop := context.AfterFunc(ctx, func() {
		shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if grace == 0 || srv.Shutdown(shutdownCtx) != nil {
			_ = srv.Close()
		}
	})
	defer stop()
	serve := srv.Serve
	if srv.TLSConfig != nil {
		serve = func(l net.Listener) error { return srv.ServeTLS(l, "", "") }
	}
	if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Limits of servers for health checks and operators, whose requests are small and have no bodies.
const (
	readTimeout    = 5 * time.Second // for the header, and for a body
	idleTimeout    = time.Minute
	maxHeaderBytes = 16 << 10
)

// MaxConnections limits the connections of a port for health checks and operators. One address has half.
const MaxConnections = 128

// Limit limits the connections of a server that New returned, whose headers are small, and returns the listener to
// serve. Without a limit, idle connections of one host would take the memory of the program.
func Limit(srv *http.Server, listener net.Listener, log *slog.Logger) net.Listener {
	limited := connlimit.New(listener, connlimit.Config{Connections: MaxConnections, Log: log,
		Reject: func(w http.ResponseWriter, _ *http.Request, message string) {
			http.Error(w, message, http.StatusServiceUnavailable)
		}})
	srv.Handler, srv.ConnContext = limited.Handler(srv.Handler), limited.ConnContext
	srv.Protocols = new(http.Protocols)
	srv.Protocols.SetHTTP1(true) // no HTTP/2: limits are those of a connection
	return limited
}

// New returns a server for health checks and operators. Clients that send slowly, or nothing, do not
// keep their connections: a client whom a handler rejects may still send its body.
// http.Server.ReadTimeout would do, but it also cancels requests that take longer, such as profiles.
func New(handler http.Handler, tlsConfig *tls.Config) *http.Server {
	limited := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTimeout)) // of connections, which have one
		}
		handler.ServeHTTP(w, r)
	})
	return &http.Server{Handler: limited, TLSConfig: tlsConfig, ReadHeaderTimeout: readTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes}
}
