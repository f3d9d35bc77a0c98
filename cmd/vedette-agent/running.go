package main

import (
	"context"

	"github.com/vedette-io/vedette/agent/config"
	"github.com/vedette-io/vedette/internal/configreload"
)

// running returns what `check --effective` says about the agent that runs on this machine.
func running(ctx context.Context, cfg *config.Config) []string {
	s := cfg.Server
	endpoint := configreload.Endpoint{Host: s.Host, Port: s.Port, TLS: s.SSL.Enabled,
		NeedsCertificate: s.SSL.DemandsCertificate(), Guard: s.Guard(nil)}
	if m := cfg.Management; m.IsEnabled() {
		endpoint.Host = m.Host()
		endpoint.Port = m.Server.Port
		endpoint.TLS = m.Server.SSL.Enabled
		endpoint.NeedsCertificate = m.Server.SSL.DemandsCertificate()
	}
	return configreload.Remarks(ctx, "agent", endpoint, cfg.Effective())
}
