package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"

	"github.com/vedette-io/vedette/internal/admin"
	"github.com/vedette-io/vedette/internal/configreload"
	"github.com/vedette-io/vedette/server/config"
)

// configHandler serves the configuration that is in effect to operators.
func configHandler(cfg *config.Config, r *reloader, log *slog.Logger) http.Handler {
	return configreload.Handler(operators(cfg, log), r.Effective)
}

// operators decides who is an operator.
func operators(cfg *config.Config, log *slog.Logger) admin.Guard {
	guard := cfg.Server.Guard(log)
	guard.IgnoreCertificates = true // all readers of the REST API may have one
	return guard
}

// running returns what `check --effective` says about the server that runs on this machine.
func running(ctx context.Context, cfg *config.Config) []string {
	s := cfg.Server
	host, _, _ := net.SplitHostPort(cfg.RESTListen().Address) // RESTListen has joined them
	endpoint := configreload.Endpoint{Host: host, Port: s.Port, TLS: s.SSL.Enabled,
		NeedsCertificate: s.SSL.DemandsCertificate(), Guard: s.Guard(nil)}
	if m := cfg.Management; m.IsEnabled() {
		endpoint.Host = m.Host()
		endpoint.Port = m.Server.Port
		endpoint.TLS = m.Server.SSL.Enabled
		endpoint.NeedsCertificate = m.Server.SSL.DemandsCertificate()
	}
	return configreload.Remarks(ctx, "server", endpoint, cfg.Effective())
}
