package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"

	"github.com/vedette-io/vedette/internal/configstatus"
	"github.com/vedette-io/vedette/server/config"
)

// configHandler serves the configuration that is in effect to operators.
func configHandler(cfg *config.Config, r *reloader, log *slog.Logger) http.Handler {
	guard := cfg.Server.Guard(log)
	guard.IgnoreCertificates = true // all readers of the REST API may have one
	return configstatus.Handler(guard, r.Effective)
}

// running returns what `check --effective` says about the server that runs on this machine.
func running(ctx context.Context, cfg *config.Config) []string {
	s := cfg.Server
	host, _, _ := net.SplitHostPort(cfg.RESTListen().Address) // RESTListen has joined them
	endpoint := configstatus.Endpoint{Host: host, Port: s.Port, TLS: s.SSL.Enabled, Guard: s.Guard(nil)}
	return configstatus.Remarks(ctx, "server", endpoint, cfg.Effective())
}
