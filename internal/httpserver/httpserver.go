// Package httpserver serves HTTP until a context ends, for the agent's health checks and the
// server's REST.
package httpserver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
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
